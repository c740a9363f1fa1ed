"""The judge: which differences between LCE's interpreter and bcnn are faults.

Every rule by which a difference is none is a function of its own here, and the summary
counts what it lets through.
"""

import re

import numpy as np

from .binary import too_small
from .draw import EXACT
from .flat import SAME, Operator, Tensor, encode
from .oracle import NotRun

# Differences of continuous functions of exact numbers, as TANH or SOFTMAX, relative to the largest value.
CONTINUOUS = 2e-5
# In rounding mode: sums of products in another order, relative to the largest value.
ROUNDED = 4e-6
HUGE = 3e38
# How far a number is nudged, relative to itself. A float32 is a multiple of 2^−24 of itself.
NUDGES = (2.0**-22, 2.0**-21, 2.0**-20)
# How far beyond the results of nudged numbers a result may lie, as a multiple of how far these are apart.
WIDER = 2


def unpacked(words):
    """Packed bits as 0 and 1."""
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")


def numbers(t, a):
    """An output as float64, packed bits as 0 and 1."""
    if t.dtype == "int32" and a.dtype == np.int32 and t.channels:
        return unpacked(a).astype(np.float64)
    return a.astype(np.float64)


def wrong_in_lce(g):
    """LCE leaves out its correction for zero padding where the image is smaller than the kernel; bcnn gives what Keras gives."""
    for o in g.operators:
        if o.name == "LceBconv2d" and o.fields["padding"] == SAME and o.fields["pad_values"] == 0:
            f = (o.fields["dilation_height_factor"], o.fields["dilation_width_factor"])
            if too_small(g.tensors[o.inputs[0]].dims, g.tensors[o.inputs[1]].dims[1:3], f):
                return True
    return False


def overflow(t, a, b):
    """LCE's QUANTIZE gives the least integer for numbers of 2^31 scales and more; bcnn gives the largest."""
    return t.dtype == "int8" and bool((equal(a, b) | (a == -128) & (b == 127)).all())


def announced(g, output, report, difference):
    """Whether the report of the conversion names an operator in front of an output, and by how much it may differ where
    it computes the output itself."""
    upstream = g.ancestors([output])
    for line in report:
        m = re.search(r"operator (\d+) \(", line)
        if not m or g.operators[int(m[1])] not in upstream or "FLOAT32" in line:
            continue
        most = re.search(r"by at most (\d+)", line)
        if output not in g.operators[int(m[1])].outputs or most and difference <= int(most[1]):
            return True
    return False


def probabilities(g, index):
    """The 8-bit tensor of SOFTMAX or LOG_SOFTMAX that an output is, or is made of by DEQUANTIZE: bcnn gives numbers that are
    not rounded to 8 bits, as the report says."""
    o = g.maker(index)
    if o.name == "DEQUANTIZE" and (before := g.maker(o.inputs[0])) is not None:
        o = before
    t = g.tensors[o.outputs[0]]
    return t if o.name in ("SOFTMAX", "LOG_SOFTMAX") and t.dtype == "int8" else None


def weights_deviation(report):
    """How far weights are from what they are taken for, by the report."""
    return max([float(m[1]) for line in report if (m := re.search(r"multiples of α by up to ([\d.e+-]+) of", line))], default=0.0)


# Why bcnn may refuse what the interpreter runs. Another reason is a fault: of the importer, or of this fuzzer.
REFUSALS = re.compile("|".join((
    "this operator is not supported", "a softmax is supported only as an output", "it reads a softmax, which must be the last layer",
    r"a constant of shape \[[\d ]*\] does not fit", "padding of a (pool|convolution) on padding", "float32 holds all integers only",
    "lies wholly in the padding", r"it takes \d+ channels, its input has \d+",
    "a step of", "with different values per pixel is not supported", "padding of the channels is supported only with 0", "the padding of operator", "but at most 256 levels",
    "another output is the same", "it is constant", "no layer computes it", "in the file, but its inputs give", r"its output has .* in the file", "different scales or zero points",
    "another scale or zero point", "is not supported", "are not supported", "supported only", "cannot be concatenated", "must be stored in the file",
    "exceed 32 bits", "may leave", "it mixes the images of a batch", "it is BOOL, want numbers",
    "rises or falls by more than", "the scale of its output is too small", "leaves no 8-bit integer", "fill whole words of 32 bits", "may reach", "beyond 2")))

# Of them none says that something of a file is not read or contradicts the rest: all that is drawn is read, but for what
# operators on constants have besides.
UNREAD = re.compile("|".join((
    r"option (?!fused_activation_function = \d is not supported here, only 0)\w+ = .* is not supported", "is not read here", "not known here", "of a newer schema",
    "dimensions, since", "not the shape that it is given", "and its options give", "with a dimension of size 1 inserted", "depth_multiplier", "num_splits",
    "output_type", "version .* of the operator")))


def allowed(reason):
    """Whether a graph that was drawn may be refused for a reason."""
    return REFUSALS.search(reason) is not None and UNREAD.search(reason) is None


# Functions that are differences of larger numbers, which is 0 where the difference is small.
SMALL = {"ELU", "GELU", "HARD_SWISH", "LOGISTIC", "LOG_SOFTMAX", "TANH"}

RUNS, MANY = 16, 200  # of the interpreter with nudged numbers; many before something is a fault: of many values one may not have moved

MOVING = {"EXPAND_DIMS", "MAX_POOL_2D", "PAD", "RESHAPE", "SLICE", "SPLIT_V", "SQUEEZE", "STRIDED_SLICE"}


def least(g, index):
    """What an output may always differ by."""
    maker = g.maker(index)
    while maker is not None and maker.name in MOVING:
        maker = g.maker(maker.inputs[0])
    return 5e-7 if maker is not None and maker.name in SMALL else 1e-30


def equal(a, b):
    """Same numbers; −0 is 0, and NaNs are alike."""
    return (a == b) | np.isnan(a) & np.isnan(b)


def close(a, b, part, floor):
    """Numbers that differ by at most a part of the largest, or what they always may."""
    finite = np.abs(np.where(np.isfinite(b), b, 0))
    return equal(a, b) | (np.abs(a - b) <= part * finite.max(initial=0) + floor)


def noisy(g, amount, r):
    """Puts noise behind operators whose roundings no nudged constant is like. DEQUANTIZE: the interpreter rounds q·scale and
    zero·scale, which bcnn does not. Functions, of which both have approximations, and which bcnn takes for 0 below e^−84."""
    for k in reversed(range(len(g.operators))):
        o = g.operators[k]
        t, added, factor = g.tensors[o.outputs[0]], 0.0, 0.0
        if t.dtype != "float32":
            continue
        if o.name == "DEQUANTIZE" and g.tensors[o.inputs[0]].zero != 0:
            added = 128 * float(g.tensors[o.inputs[0]].scale) * amount
        if o.name in SMALL:
            factor = amount
        if o.name in ("LOGISTIC", "EXP"):
            added = 1e-36
        if o.name == "GELU":  # of numbers far below 0 the interpreter makes −0
            added = 5e-7
        # For a channel, or for each value: signs of two values of a channel may differ.
        dims = t.dims[-1:] if r.random() < 0.5 else t.dims
        for name, noise in (("MUL", 1 + factor * r.uniform(-1, 1, dims)), ("ADD", added * r.uniform(-1, 1, dims))):
            if (factor if name == "MUL" else added) > 0:
                y, before = o.outputs[0], g.add(Tensor(t.dims, "float32"))
                o.outputs = [before]
                g.operators.insert(k + 1, Operator(name, [before, g.add(Tensor(noise.shape, "float32", np.float32(noise)))], [y], name.capitalize() + "Options"))


class Judge:
    def __init__(self, oracle):
        self.oracle = oracle
        self.let = {}  # how often each rule let a difference through

    def allow(self, rule):
        self.let[rule] = self.let.get(rule, 0) + 1

    def images(self, g, feed):
        """The outputs of the oracle, batch by batch of the file."""
        model = encode(g)
        times = len(feed[g.inputs[0]]) // g.tensors[g.inputs[0]].dims[0]
        parts = []
        for k in range(times):
            xs = [feed[i][k * (n := g.tensors[i].dims[0]):(k + 1) * n] for i in g.inputs]
            parts.append(self.oracle.run(model, xs))
        return [np.concatenate(p) for p in zip(*parts)]

    def undisturbed(self, g, feed, want):
        """The outputs of the oracle where all tensors are outputs, and whether all numbers on the way are in range. LCE's
        interpreter lets operators write to the memory of their input, also where another name of it (of RESHAPE, SQUEEZE,
        EXPAND_DIMS) is still to be read."""
        h = g.copy()
        h.outputs = g.outputs + [i for o in g.operators for i in o.outputs if i not in g.outputs]
        try:
            every = self.images(h, feed)
        except NotRun:
            return want, True
        inside = all((np.abs(x) < HUGE).all() for x in [*every, *feed.values()] if x.dtype == np.float32)
        return every[:len(want)], inside

    def faults(self, g, exact, feed, want, got, report):
        """What is wrong with each output: a list of (index of the output, text)."""
        found, hull, many = [], None, []
        for k, (index, a) in enumerate(zip(g.outputs, want)):
            t = g.tensors[index]
            b = got[k] if k < len(got) else None
            if b is None or b.shape != a.shape:
                found.append((index, f"shape {a.shape}, bcnn gives {None if b is None else b.shape}"))
                continue
            if (q := probabilities(g, index)) is not None and b.dtype == np.float32:
                ends = np.array([-128 - q.zero, 127 - q.zero]) * float(q.scale)  # further the file does not reach
                if a.dtype == np.int8:
                    a = (a.astype(np.float64) - q.zero) * float(q.scale)
                if np.abs(a - np.clip(b, *ends)).max() <= float(q.scale) * 1.001:
                    continue
                if announced(g, index, report, np.inf):
                    self.allow("named by the report of the conversion")
                else:
                    found.append((index, self.text(a, b)))
                continue
            a, b = numbers(t, a), numbers(t, b)
            if equal(a, b).all():
                continue
            if not (np.abs(a) < HUGE).all():  # where there is no activation, the interpreter limits to the largest float32
                self.allow("the interpreter gives infinities or NaNs")
                continue
            if overflow(t, a, b) and any(o.name == "QUANTIZE" for o in g.ancestors([index])[-1:]):
                self.allow("LCE's own fault, QUANTIZE of numbers beyond 2^31")
                continue
            if announced(g, index, report, np.abs(a - b).max()):
                self.allow("named by the report of the conversion")
                continue
            if exact:
                if t.dtype == "float32" and not t.name.endswith(EXACT) and close(b, a, CONTINUOUS, least(g, index)).all():
                    continue
            else:
                if t.dtype == "float32" and close(b, a, ROUNDED, least(g, index)).all() and not ((a == 0) & (b != 0)).any():
                    continue
                hull = hull or self.nudged(g, feed, report, RUNS)
                if not self.rounding(hull, k, a, b, least(g, index)) and len(many) == 0:
                    many.extend(self.nudged(g, feed, report, MANY))
                if self.rounding(many or hull, k, a, b, least(g, index)):
                    self.allow("rounding: nudged numbers give the interpreter the same")
                    continue
            found.append((index, self.text(a, b)))
        return found

    def text(self, a, b):
        where = np.argwhere(~equal(a, b))
        at = tuple(where[0])
        return f"{len(where)} of {a.size} values differ, first at {list(map(int, at))}: interpreter {a[at]!r}, bcnn {b[at]!r}"

    def nudged(self, g, feed, report, runs):
        """What the interpreter gives in so many runs where float inputs and constants are next to what they are: least and most
        of each value. It tells a number next to a threshold from one that is beyond it; 0 stays 0."""
        r, count, runs = np.random.default_rng(runs), runs, []
        amounts = list(NUDGES)
        if (deviation := weights_deviation(report)) > 0:
            amounts.append(2 * deviation)
        for k in range(count):
            h, amount = g.copy(), amounts[k % len(amounts)]

            def near(x):
                u = r.uniform(-1, 1, np.shape(x)) if k % 2 else r.choice([-1.0, 0.0, 1.0])
                return np.float32(x * (1 + amount * u))
            for o in h.operators:
                # The interpreter adds taps·multiplier to the bias first, which rounds it.
                if o.name == "LceBconv2d" and o.inputs[3] >= 0:
                    m, b, taps = h.tensors[o.inputs[2]], h.tensors[o.inputs[3]], np.prod(h.tensors[o.inputs[1]].dims[1:3]) * o.fields["channels_in"]
                    b.data = np.float32(b.data + amount * taps * np.abs(m.data) * r.uniform(-1, 1, b.data.shape))
            noisy(h, amount, r)
            for t in h.tensors:
                if t.data is not None and t.dtype == "float32":
                    t.data = near(t.data)
            moved = {i: near(x) if x.dtype == np.float32 else x for i, x in feed.items()}
            try:
                runs.append([numbers(h.tensors[i], y) for i, y in zip(h.outputs, self.images(h, moved))])
            except NotRun:
                continue
        return [(np.min(ys, axis=0), np.max(ys, axis=0)) for ys in zip(*runs)]

    def rounding(self, hull, k, a, b, floor):
        """Whether each value of bcnn is between what nudged numbers give, or not much farther; and 0 where that is always 0."""
        lo, hi = np.minimum(hull[k][0], a), np.maximum(hull[k][1], a)
        far = WIDER * (hi - lo) + ROUNDED * np.abs(np.where(np.isfinite(a), a, 0)).max(initial=0)
        far = np.where((lo == 0) & (hi == 0), floor, far)
        return bool((equal(a, b) | (b >= lo - far) & (b <= hi + far)).all())
