"""Operators of single values: functions, arithmetic, limits, comparisons, types."""

import math

import numpy as np

from graphs import BOOL, DOUBLE, FLOAT, HALF, INT32, INT64, INT8, UINT8, quantum

TINY = (1e-9, 1e-8, 1.4e-45, 1e-38, 1e-20, -1e-9, 1e-30)


def forms(g, x):
    """A shape that broadcasts to that of x."""
    s = (1,) + x.shape[1:]
    shapes = [(), (), (1,), (1,) * x.rank]
    if x.rank > 1:
        channel = (s[1],) + (1,) * (x.rank - 2)
        shapes += [channel] * 3 + [(1,) + channel, s[1:], s, x.shape[-1:]]
        if x.rank > 2:
            shapes += [s[2:], (1, 1) + s[2:], (1,) * (x.rank - 1) + s[-1:], s[:-1] + (1,)]
    return g.rng.choice(shapes)


def broadcast(a, b):
    return np.broadcast_shapes(a, b)


def function(g, x):
    """Functions that float32 rounds."""
    g.rounding()
    op, since = g.choice(("Sigmoid", 6), ("Tanh", 6), ("Erf", 9), ("Exp", 6), ("Softplus", 1), ("Softsign", 1), ("Elu", 6),
                         ("Selu", 6), ("Celu", 12), ("HardSigmoid", 6), ("HardSwish", 14), ("Mish", 18), ("Gelu", 20), ("Swish", 24))
    g.since(since)
    attributes = {}
    if op in ("Elu", "Celu", "Selu") and g.chance(0.5):
        attributes["alpha"] = g.choice(1.0, 0.5, 2.0, 0.25)
    if op == "HardSigmoid" and g.chance(0.6):
        attributes = {"alpha": g.choice(0.2, 0.5, 1 / 6, 0.25), "beta": g.choice(0.5, 0.0, 1.0)}
    if op == "Gelu" and g.chance(0.5):
        attributes["approximate"] = "tanh"
    m = x.m
    if op == "Exp":
        g.need(m < 20)
        m = math.exp(m)
    return g.node(op, [x], x.shape, x, m=max(1.0, 2 * m), **attributes)


def root(g, x):
    """Functions of numbers that must not be negative, or 0."""
    g.rounding()
    a = g.node("Abs", [x], x.shape, x) if g.chance(0.7) else g.node("Mul", [x, x], x.shape, x, m=x.m**2)
    op = g.choice("Sqrt", "Sqrt", "Reciprocal", "Pow", "Log")
    if op in ("Reciprocal", "Log") or g.chance(0.5):
        a = g.node("Add", [a, g.const(np.float32(g.choice(1.0, 0.5, 1e-3)))], a.shape, a, m=a.m + 1)
    if op == "Pow":
        exponent = g.choice(0.5, 2.0, 1.5, 0.25, 3.0)
        return g.node("Pow", [a, g.const(np.float32(exponent))], a.shape, a, m=max(1.0, a.m**exponent))
    return g.node(op, [a], a.shape, a, m=max(1000.0 if op == "Reciprocal" else 8.0, a.m))


def simple(g, x):
    """Functions without rounding."""
    op = g.choice("Relu", "Relu", "Abs", "Neg", "Sign", "Identity", "Dropout")
    levels, q, m = x.levels, x.q, x.m
    table = {"Relu": lambda v: max(v, 0.0), "Abs": abs, "Neg": lambda v: -v, "Sign": lambda v: float(np.sign(v))}
    if levels and op in table:
        levels = tuple(sorted({table[op](v) for v in levels}))
    if op == "Sign":
        levels, q, m = levels or (-1.0, 0.0, 1.0), 0, 1.0
    return g.node(op, [x], x.shape, x, q=q, m=m, levels=levels)


def leaky(g, x):
    op = g.choice("LeakyRelu", "PRelu", "PRelu", "ThresholdedRelu", "Shrink")
    if op == "PRelu":
        slope = g.factors(forms(g, x))
        return g.computed(op, [x, g.const(slope)], x.shape, x.q + max(0, quantum(slope)), x.m * max(1, np.abs(slope).max()))
    alpha = float(g.factors(()))
    if op == "LeakyRelu":
        return g.computed(op, [x], x.shape, x.q + max(0, quantum(alpha)), x.m * max(1, abs(alpha)), alpha=alpha)
    if op == "Shrink":
        return g.computed(op, [x], x.shape, max(x.q, 1), x.m + 1, lambd=abs(alpha), bias=g.choice(0.0, 0.5))
    g.since(10)
    return g.node(op, [x], x.shape, x, alpha=abs(alpha))


def threshold_of(g, x):
    """A number to compare x with: a level, 0, something tiny, a half, or near x."""
    draw = g.rng.random()
    if x.levels and draw < 0.5:
        return g.rng.choice(x.levels)
    if draw < 0.62:
        return 0.0
    if draw < 0.72:
        return g.rng.choice(TINY)
    if draw < 0.8:
        return g.choice(0.1, 0.3, 0.7, -0.1, 1e10, -1e10)
    return g.dyadic(-min(x.m, 4), min(x.m, 4))


def thresholds(g, x):
    shape = forms(g, x) if g.chance(0.4) else ()
    return g.fill(shape, lambda: threshold_of(g, x))


def compare(g, x, op=None, other=None):
    """A truth value: x against constants or another value, either on the left."""
    op = op or g.choice("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Greater", "Less", "GreaterOrEqual", "Equal")
    g.need(op not in ("GreaterOrEqual", "LessOrEqual") or g.opset >= 12)
    g.need(op != "Equal" or g.opset >= 11)
    if other is None:
        t = thresholds(g, x)
        # Where(x == 0.1, x, 1) is of two values, 0.1 among them, as far as a network can tell.
        g.need(op != "Equal" or not g.exact or quantum(t) <= 20)
        other, shape = g.const(t), broadcast(x.shape, t.shape)
    else:
        shape = broadcast(x.shape, other.shape)
    pair = [x, other] if g.chance(0.6) else [other, x]
    return g.node(op, pair, shape, dtype=BOOL, q=0, m=1.0, levels=(0.0, 1.0))


def logic(g, b):
    if g.chance(0.4):
        return g.node("Not", [b], b.shape, b, levels=b.levels)
    others = [v for v in g.values if v.dtype == BOOL and v.shape == b.shape]
    if g.chance(0.3):
        c = g.const(g.np.random(forms(g, b)) < 0.5, BOOL)
        return g.node(g.choice("And", "Or", "Xor"), [b, c] if g.chance(0.5) else [c, b], b.shape, b, levels=b.levels)
    if len(others) < 2:
        x = g.pick(FLOAT, like=b)
        c = compare(g, x, op=g.choice("Greater", "Less"))
        g.need(c.shape == b.shape)
        others = [c]
    return g.node(g.choice("And", "Or", "Xor"), [b, g.rng.choice(others)], b.shape, b, levels=b.levels)


def pair_of(g):
    """Two values for a Where."""
    if g.chance(0.02):  # which no factor and summand of float32 can both hold
        return g.choice((1e10, 0.1), (0.001, -100.0))
    return g.choice((1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.5, 0.0), (0.5, -0.5), (0.2, 0.1), (0.1, 0.2),
                    (3.0, 1.0), (2.0, 6.0), (0.75, 0.25), (0.3, 0.7), (1.0, 1.0), (-2.0, 0.5))


def where(g, b):
    """Of a truth value two constants, or constants and values."""
    kind = g.rng.random()
    if kind < 0.6:
        p, q = pair_of(g)
        return g.node("Where", [b, g.const(np.float32(p)), g.const(np.float32(q))], b.shape, dtype=FLOAT,
                      q=quantum(np.float32([p, q])), m=max(abs(p), abs(q)), levels=tuple(sorted({float(np.float32(p)), float(np.float32(q))})))
    if kind < 0.75:
        a, c = g.factors(forms(g, b), 0.2), g.factors(forms(g, b), 0.2)
        return g.node("Where", [b, g.const(a), g.const(c)], broadcast(broadcast(b.shape, a.shape), c.shape), dtype=FLOAT,
                      q=max(quantum(a), quantum(c)), m=float(max(np.abs(a).max(), np.abs(c).max())))
    x = g.pick(FLOAT, like=b, last=0.3)
    if kind < 0.85:
        y = g.pick(FLOAT, like=b, last=0.3)
        return g.node("Where", [b, x, y], b.shape, dtype=FLOAT, q=max(x.q, y.q), m=max(x.m, y.m))
    v = np.float32(g.choice(0.0, 1.0, -1.0, 0.5))
    pair = [x, g.const(v)] if g.chance(0.5) else [g.const(v), x]
    return g.node("Where", [b] + pair, b.shape, dtype=FLOAT, q=max(x.q, quantum(v)), m=max(x.m, float(abs(v))))


def truth(g, b):
    """Makes numbers of a truth value."""
    if g.chance(0.6):
        return where(g, b)
    if g.chance(0.15):  # by way of integers
        b = g.node("Cast", [b], b.shape, dtype=INT32, q=0, m=1.0, to=6)
    return g.node("Cast", [b], b.shape, dtype=FLOAT, q=0, m=1.0, levels=(0.0, 1.0), to=1)


def arithmetic(g, x):
    """x and a constant, either first."""
    op = g.choice("Add", "Sub", "Mul", "Mul", "Div", "Max", "Min", "Add")
    shape = forms(g, x)
    if op in ("Mul", "Div"):
        c = g.factors(shape, 0.05 if op == "Mul" else 0)
        if op == "Div":
            if g.exact:  # by powers of two
                c = np.sign(c) * 2.0 ** np.round(np.log2(np.abs(c)))
            return g.computed(op, [x, g.const(c)], broadcast(x.shape, c.shape), x.q + max(0, quantum(1 / c)) if g.exact else 0,
                              float(x.m / np.abs(c).min()))
        pair = [x, g.const(c)]
        g.rng.shuffle(pair)
        return g.computed(op, pair, broadcast(x.shape, c.shape), x.q + quantum(c), float(x.m * np.abs(c).max()))
    c = thresholds(g, x) if op in ("Max", "Min") else g.fill(shape, lambda: g.dyadic(-min(x.m, 4), min(x.m, 4)))
    pair = [x, g.const(c)]
    if op != "Sub" or g.chance(0.4):
        g.rng.shuffle(pair)
    shape, q = broadcast(x.shape, c.shape), max(x.q, quantum(c))
    if op in ("Max", "Min"):
        if g.chance(0.15):
            pair.append(g.const(thresholds(g, x).ravel()[:1]))
        return g.node(op, pair, shape, q=q if len(pair) == 2 else max(q, 149), m=float(max(x.m, np.abs(c).max(), 1e10 if len(pair) > 2 else 0)))
    return g.computed(op, pair, shape, q, float(x.m + np.abs(c).max()))


def together(g, x):
    """Two values of the graph."""
    fits = [v for v in g.values if v.dtype == x.dtype == FLOAT and v.rank == x.rank and v.shape[0] == x.shape[0]
            and all(a == b or b == 1 for a, b in zip(x.shape, v.shape))]
    y = g.rng.choice(fits)
    pair = [x, y]
    g.rng.shuffle(pair)
    op = g.choice("Add", "Add", "Add", "Sub", "Mul", "Max", "Min", "Sum", "Mean", "Div")
    if op in ("Max", "Min"):
        return g.node(op, pair, x.shape, q=max(x.q, y.q), m=max(x.m, y.m))
    if op == "Mul":
        return g.computed(op, pair, x.shape, x.q + y.q, x.m * y.m)
    if op in ("Div", "Mean"):
        g.rounding()
        g.need(op == "Mean" or y.levels and 0.0 not in y.levels and pair[1] is y)
        return g.node(op, pair, x.shape, q=0, m=4 * x.m)
    if op == "Sum" and g.chance(0.3):
        pair.append(x)
        return g.computed(op, pair, x.shape, max(x.q, y.q), 2 * x.m + y.m)
    return g.computed(op, pair, x.shape, max(x.q, y.q), x.m + y.m)


def limits(g, x):
    """Lower and upper limits: usual ones, outside of the range of x, or the wrong way round."""
    low, high = g.choice((-1, 1), (-1, 1), (0, 1), (0, 6), (0, 3), (-2, 2), (0, 15), (-0.5, 1.5), (-8, 7), (0, 255), (2, 5), (-5, -2), (1, -1), (-1, -2))
    if g.chance(0.2):
        low, high = g.dyadic(-4, 4), g.dyadic(-4, 4)
        if g.chance(0.8):
            low, high = min(low, high), max(low, high)
    return float(low), float(high)


def clip(g, x, low=None, high=None):
    """Limits as a Clip of any version, or as Min and Max."""
    if low is None:
        low, high = limits(g, x)
    low, high = float(low), float(high)
    q, m = max(x.q, quantum(np.float32([low, high]))), max(x.m if low > high else min(x.m, max(abs(low), abs(high))), abs(low), abs(high))
    levels = tuple(sorted({min(max(v, low), high) for v in x.levels})) if x.levels else None
    form = g.rng.random()
    if form < 0.15:
        pair = [("Max", low), ("Min", high)]
        if g.chance(0.5):
            pair.reverse()
        for op, v in pair:
            shape = g.choice((), (1,), (1,) * x.rank)
            x = g.node(op, [x, g.const(np.full(shape, v))], x.shape, q=q, m=max(x.m, m))
        x.levels, x.m = levels if low <= high else None, m
        return x
    one = g.rng.random() if low <= high else 1
    if g.opset < 11:
        attributes = {k: v for k, v, p in (("min", low, one < 0.1), ("max", high, 0.1 <= one < 0.2)) if not p}
        return g.node("Clip", [x], x.shape, q=q, m=m if len(attributes) == 2 else max(m, x.m), levels=levels if len(attributes) == 2 else None, **attributes)
    if one < 0.1:
        return g.node("Clip", [x, "", g.const(np.float32(high))], x.shape, q=q, m=max(m, x.m))
    if one < 0.2:
        return g.node("Clip", [x, g.const(np.float32(low))], x.shape, q=q, m=max(m, x.m))
    return g.node("Clip", [x, g.const(np.float32(low)), g.const(np.float32(high))], x.shape, q=q, m=m, levels=levels)


def rounded(g, x, op=None):
    op = op or g.choice("Round", "Round", "Floor", "Ceil")
    g.need(op != "Round" or g.opset >= 11)
    f = {"Round": round, "Floor": math.floor, "Ceil": math.ceil}[op]
    levels = tuple(sorted({float(f(v)) for v in x.levels})) if x.levels else None
    return g.node(op, [x], x.shape, x, q=0, m=x.m + 1, levels=levels)


def modulo(g, x):
    g.since(10)
    g.need(not g.exact or x.q < 20)
    d = g.choice(1.0, 2.0, 3.0, 0.5, 4.0)
    return g.node("Mod", [x, g.const(np.float32(d))], x.shape, x, m=d, fmod=1)


def cast(g, x):
    """To another type and back."""
    kind = g.rng.random()
    if kind < 0.3:  # wider, or what rounds to 11 bits
        to, n = g.choice((DOUBLE, 11), (HALF, 10))
        g.need(to == DOUBLE or x.m < 60000 and (not g.exact or x.q < 14))
        levels = x.levels and tuple(sorted({float(np.asarray(v, to)) for v in x.levels}))
        wide = g.node("Cast", [x], x.shape, x, dtype=to, levels=levels, to=n)
        return g.node("Cast", [wide], x.shape, wide, dtype=FLOAT, levels=levels, to=1)
    low, high, to, n = g.choice((0, 255, UINT8, 2), (-128, 127, INT8, 3), (-100, 100, INT32, 6), (0, 3, INT64, 7), (-100, 100, INT64, 7))
    if x.m > max(abs(low), high) or low == 0:
        x = clip(g, x, low, high)
    if g.chance(0.6):
        x = rounded(g, x)
    whole = g.node("Cast", [x], x.shape, x, dtype=to, q=0, to=n)
    return g.node("Cast", [whole], x.shape, whole, dtype=FLOAT, q=0, to=1)


def quantize(g, x):
    """QuantizeLinear and DequantizeLinear; one scale, or one per channel since opset 13."""
    g.since(10)
    per_channel = g.opset >= 13 and x.rank > 1 and g.chance(0.25)
    shape = (x.shape[1],) if per_channel else ()
    scale = g.fill(shape, lambda: g.choice(0.25, 0.5, 1.0, 0.125) if g.exact else g.choice(0.1, 0.05, 0.25, 0.017, 1.0))
    signed = g.chance(0.5)
    dtype = INT8 if signed else UINT8
    zero = np.zeros(shape) if signed and g.chance(0.7) else g.fill(shape, lambda: g.rng.randrange(*((-20, 20) if signed else (0, 200))))
    names = [g.const(scale), g.const(zero.astype(dtype), dtype)]
    attributes = {"axis": g.choice(1, 1 - x.rank)} if per_channel else {}
    y = g.node("QuantizeLinear", [x] + names, x.shape, dtype=dtype, q=0, m=255.0, **attributes)
    names = names if g.chance(0.8) or g.exact else [g.const(scale), g.const(zero.astype(dtype), dtype)]
    return g.node("DequantizeLinear", [y] + names, x.shape, q=max(0, quantum(scale)), m=float(400 * scale.max()), **attributes)
