"""What all operators of a drawn graph are made with: values, constants, choices.

A graph is drawn in one of two modes. In exact mode the numbers lie on a grid: a tensor
has a step, a power of two of which all its values are multiples, and a bound, and only
operators are drawn whose sums and products float32 holds. Whatever order they are
computed in, the result is one and the same. A tensor is `once` where it is a product of
grid values that was rounded once, as by a scale that is no power of two: what follows
may compare or round it, not calculate with it. It is `zeroed` where only its zeros and
signs are certain, as behind a DEQUANTIZE with a zero point. In rounding mode all numbers are drawn
freely.
"""

import numpy as np

from .flat import SAME, Graph, Operator, Tensor

WORD = 32  # channels in a word of packed bits
HOLDS = 2.0**22  # steps that a bound may be from 0
EXACT = ";exact"  # ends the name of a tensor of which float32 holds all values, so that a file tells it

# The operators by name: how often each is tried, and the function that draws it.
OPERATORS = {}


class Skip(Exception):
    """An operator does not fit what has been drawn."""


def operator(weight, *names):
    """Registers a function that draws the operators of some names."""
    def register(f):
        for name in names:
            OPERATORS[name] = (weight / len(names), lambda d, name=name: f(d, name))
        return f
    return register


def words(channels):
    return -(-channels // WORD)


def out_size(n, kernel, stride, dilation, padding):
    """How many positions a window has along n pixels."""
    span = (kernel - 1) * dilation + 1
    return -(-n // stride) if padding == SAME else -(-(n - span + 1) // stride)


def power(x):
    """Whether x is a power of two."""
    return x > 0 and np.frexp(float(x))[0] == 0.5


class Draw:
    """A graph that is being drawn."""

    def __init__(self, r, exact):
        self.r, self.exact, self.g = r, exact, Graph()
        self.batch = int(r.choice([1, 1, 1, 1, 2, 3]))
        self.values = []  # indices of computed tensors

    # Choices.

    def chance(self, p):
        return self.r.random() < p

    def choice(self, list_):
        return list_[int(self.r.integers(len(list_)))]

    def need(self, condition):
        if not condition:
            raise Skip

    def tensor(self, index):
        return self.g.tensors[index]

    def pick(self, dtype="float32", rank=None, test=None):
        """A computed tensor, rather one of the last."""
        fits = [i for i in self.values if self.tensor(i).dtype == dtype and (rank is None or len(self.tensor(i).dims) == rank)
                and (test is None or test(self.tensor(i)))]
        self.need(fits)
        return fits[-1] if self.chance(0.6) else self.choice(fits)

    def grid(self, least=1):
        """A test of tensors that exact arithmetic may be done on."""
        return lambda t: not self.exact or t.step > 0 and t.bound / t.step * least <= HOLDS

    def comparable(self, t):
        """A test of tensors whose values may be compared or rounded."""
        return not self.exact or t.step > 0 or t.once

    def signed(self, t):
        """A test of tensors whose values may be compared with 0."""
        return self.comparable(t) or t.zeroed

    def calm(self, t):
        """A test of tensors whose values continuous functions may be taken of."""
        return self.signed(t)

    # Constants.

    def constant(self, data, scale=None, zero=0, axis=0):
        data = np.asarray(data)
        return self.g.add(Tensor(data.shape, data.dtype.name, data, scale, zero, axis))

    def ints(self, *values):
        return self.constant(np.array(values, np.int32))

    def numbers(self, shape, span=2.0, kind=None):
        """Numbers up to about span: multiples of a power of two in exact mode."""
        r = self.r
        if self.exact:
            step = 2.0 ** -int(r.integers(0, 4))
            most = max(1, int(span / step))
            return (r.integers(-most, most + 1, shape) * step).astype(np.float32)
        kind = kind or self.choice(["normal", "normal", "decimals", "halves", "tiny"])
        if kind == "normal":
            return (r.standard_normal(shape) * span / 2).astype(np.float32)
        if kind == "decimals":
            return (np.round(r.uniform(-span, span, shape), 1)).astype(np.float32)
        if kind == "halves":
            return (r.integers(-4, 5, shape) * 0.5).astype(np.float32)
        return (r.standard_normal(shape) * 1e-6).astype(np.float32)

    def factors(self, shape):
        """Factors, of which some are negative, and few 0."""
        r = self.r
        if self.exact:
            list_ = [0.25, 0.5, 1, 2, -0.5, -1, 1.5, 3]
            return r.choice(np.array(list_ + [0] * self.chance(0.2), np.float32), shape)
        f = r.uniform(0.05, 2, shape) * r.choice([1, 1, 1, -1], shape)
        if self.chance(0.2):
            f = f * (r.random(shape) > 0.15)
        return f.astype(np.float32)

    def scales(self, shape=()):
        """Scales of 8-bit values: powers of two, decimals and others."""
        kind = self.choice(["power", "decimal", "other", "other"])
        if kind == "power":
            s = 2.0 ** self.r.integers(-7, 1, shape)
        elif kind == "decimal":
            s = self.r.choice([0.1, 0.05, 0.01, 0.2, 0.3, 1 / 3, 1 / 255, 6 / 255], shape)
        else:
            s = np.exp(self.r.uniform(np.log(0.003), np.log(0.8), shape))
        return np.float32(s)

    def quant(self):
        return self.scales(), self.zero()

    def zero(self):
        return int(self.choice([0, -128, 127, -1, 3, int(self.r.integers(-128, 128)), int(self.r.integers(-128, 128))]))

    # Operators.

    def emit(self, name, inputs, dims, table=None, fields=None, dtype="float32", **known):
        """Adds an operator with one output, of which something is known; its index."""
        t = Tensor(dims, dtype)
        for key, value in known.items():
            setattr(t, key, value)
        if self.exact and dtype == "float32":
            self.need(t.step == 0 or t.bound / t.step <= HOLDS)
        self.need(0 < np.prod(dims, dtype=float) <= 1 << 15)
        index = self.g.add(t)
        self.g.operators.append(Operator(name, inputs, [index], table, fields))
        self.values.append(index)
        return index

    def moved(self, name, inputs, dims, like, table=None, fields=None):
        """emit of an operator that moves the values of a tensor."""
        t = self.tensor(like)
        known = dict(step=t.step, bound=t.bound, once=t.once, zeroed=t.zeroed, scale=t.scale, zero=t.zero, channels=t.channels)
        return self.emit(name, inputs, dims, table, fields, t.dtype, **known)

    def activation(self, p=0.3):
        """A fused activation."""
        return int(self.r.integers(1, 4)) if self.chance(p) else 0


def limited(bound, activation):
    """The bound of values behind a fused activation."""
    return min(bound, {0: bound, 1: bound, 2: 1.0, 3: 6.0}[activation]) if bound else bound


def input_tensor(d, spatial=None):
    """An input of the graph."""
    r = d.r
    rank = int(d.choice([4, 4, 4, 4, 4, 3, 2]))
    c = int(d.choice([1, 2, 3, 4, 5, 8, 16, 17, 31, 32, 33, 48, 64, 65, 96]))
    dims = spatial or [int(d.choice([1, 2, 3, 4, 5, 6, 7, 8])) for _ in range(rank - 2)]
    kind = d.choice(["float32"] * 12 + ["int8"] * 6 + ["bits", "uint8"])
    if kind == "bits":
        t = Tensor([d.batch, *dims, words(c)], "int32")
        t.channels = c
    else:
        t = Tensor([d.batch, *dims, c], kind)
    if kind in ("int8", "uint8"):
        t.scale, t.zero = d.quant()
        t.zero += 128 * (kind == "uint8")
    elif kind == "float32" and d.exact:
        t.step = 2.0 ** -int(r.integers(0, 4))
        t.bound = t.step * int(d.choice([2, 4, 16, 64]))
    index = d.g.add(t)
    d.g.inputs.append(index)
    d.values.append(index)
    return index


def draw(r):
    """A random graph, and whether it is exact."""
    exact = bool(r.random() < 0.6)
    d = Draw(r, exact)
    for _ in range(int(d.choice([1, 1, 1, 1, 1, 2, 3]))):
        same = d.g.inputs and d.chance(0.6)
        input_tensor(d, d.tensor(d.g.inputs[0]).dims[1:-1] if same else None)
    names = sorted(OPERATORS)
    # Each graph has its own taste, so that rare operators meet each other.
    weights = np.array([OPERATORS[n][0] for n in names]) * np.exp(r.normal(0, 1.2, len(names)))
    weights /= weights.sum()
    wanted, tries = int(r.integers(2, 13)), 0
    while len(d.g.operators) < wanted and tries < 12 * wanted:
        tries += 1
        before = len(d.g.tensors), len(d.g.operators), len(d.values)
        try:
            OPERATORS[names[int(r.choice(len(names), p=weights))]][1](d)
        except Skip:
            del d.g.tensors[before[0]:], d.g.operators[before[1]:], d.values[before[2]:]
    return finish(d), exact


def finish(d):
    """Chooses the outputs of a graph: the last tensors and some that others read."""
    read = {i for o in d.g.operators for i in o.inputs}
    made = [i for o in d.g.operators for i in o.outputs]
    ends = [i for i in made if i not in read]
    more = [i for i in made if i in read and d.chance(0.08)]
    d.g.outputs = [i for i in made if i in (ends[-1:] if d.chance(0.4) else ends) or i in more]
    if d.exact:
        for t in d.g.tensors:
            if t.dtype == "float32" and t.data is None and (t.step > 0 or t.once):
                t.name += EXACT
    return d.g.prune()
