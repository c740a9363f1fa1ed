"""What exporters write of several nodes: signs, quantisers, layers, straight-through sums."""

import numpy as np

from graphs import BOOL, INT64, quantum
import layers
import moves
import pointwise


def sign(g, x):
    """±1, {0, 1} or three values of x, in one of the forms that exporters have."""
    form = g.rng.random()
    if form < 0.2:
        if g.chance(0.4):
            c = g.dyadic()
            x = g.computed("Add", [x, g.const(np.float32(c))], x.shape, max(x.q, quantum(c)), x.m + abs(c))
        return g.node("Sign", [x], x.shape, x, q=0, m=1.0, levels=(-1.0, 0.0, 1.0))
    if form < 0.75:
        b = pointwise.compare(g, x)
        if g.chance(0.2):
            b = pointwise.logic(g, b)
        return pointwise.truth(g, b)
    if form < 0.85:  # limits in front, which keep the sign
        c = pointwise.clip(g, x, -1.0, 1.0)
        return g.node("Sign", [c], c.shape, c, q=0, m=1.0, levels=(-1.0, 0.0, 1.0))
    b = pointwise.compare(g, x)
    c = g.node("Cast", [b], b.shape, q=0, m=1.0, levels=(0.0, 1.0), to=1)
    t = g.node("Mul", [c, g.const(np.float32(2))], c.shape, q=0, m=2.0)
    return g.node("Sub", [t, g.const(np.float32(1))], c.shape, q=0, m=1.0, levels=(-1.0, 1.0))


def two_values(g, x):
    """Two values that a layer has moved, and something that tells them apart."""
    b = pointwise.compare(g, x)
    p, q = pointwise.pair_of(g)
    v = g.node("Where", [b, g.const(np.float32(p)), g.const(np.float32(q))], b.shape, q=quantum(np.float32([p, q])),
               m=max(abs(p), abs(q)), levels=tuple(sorted({float(np.float32(p)), float(np.float32(q))})))
    if g.chance(0.8):
        v = moved(g, v)
    draw = g.rng.random()
    if draw < 0.45:
        return pointwise.truth(g, pointwise.compare(g, v))
    if draw < 0.6:
        return pointwise.rounded(g, v)
    if draw < 0.75:
        return pointwise.rounded(g, pointwise.clip(g, v))
    return v


def moved(g, v):
    """A layer that keeps values what they are."""
    g.need(v.rank > 0)
    kind = g.rng.random()
    if kind < 0.4 and v.rank in (3, 4):
        dims = v.shape[2:]
        k = g.choice(1, 1, 2)
        g.need(all(d >= k for d in dims))
        return g.node("MaxPool", [v], v.shape[:2] + tuple(d - k + 1 for d in dims), v, levels=v.levels, kernel_shape=[k] * len(dims))
    return g.choice(moves.reshape, moves.transpose, moves.part, moves.reshape)(g, v)


def quantizer(g, x):
    """Levels of a few bits: scale, limits, rounding, scale back, in many orders."""
    bits = g.choice(1, 2, 2, 2, 3, 4, 8)
    top = float(2**bits - 1)
    low = g.choice(0.0, 0.0, 0.0, -float(2 ** (bits - 1)))
    high = top + low
    scale = g.choice(0.25, 0.5, 1.0, 2.0) if g.exact else g.choice(0.1, 0.3, 0.5, 1 / 3, 0.07, 1 / top)
    y, s = x, np.float32(scale)
    order = g.rng.random()

    def by(op, y, c):
        factor = 1 / float(c) if op == "Div" else float(c)
        return g.computed(op, [y, g.const(np.float32(c))], y.shape, y.q + (quantum(factor) if g.exact else 0), y.m * abs(factor))

    if order < 0.4:  # divide, limit, round, multiply
        if scale != 1:
            y = by("Div", y, s) if g.chance(0.6) else by("Mul", y, np.float32(1 / s))
        if g.chance(0.2):
            y = rounding(g, y)
            y = pointwise.clip(g, y, low, high)
        else:
            y = pointwise.clip(g, y, low, high)
            y = rounding(g, y)
    elif order < 0.7:  # limit to 0..1, multiply, round, divide
        y = pointwise.clip(g, y, 0.0, 1.0)
        steps = top if not g.exact else float(2**bits)
        y = rounding(g, by("Mul", y, steps))
        return by("Div", y, steps) if g.exact or g.chance(0.8) else y
    elif order < 0.78:  # limits of 0 and alpha, over alpha, times the last level, and back (PACT)
        alpha = g.choice(1.0, 2.0, 4.0) if g.exact else g.choice(0.75, 1.5, 1.7, 2.5, 3.0, 6.0, 10.0)
        steps = top if not g.exact else float(2**bits)
        y = by("Div", upper(g, g.node("Relu", [y], y.shape, y), alpha), np.float32(alpha))
        y = rounding(g, by("Mul", y, steps))
        return by("Mul", by("Div", y, steps), np.float32(alpha))
    elif order < 0.85:  # limits behind the scale
        y = pointwise.clip(g, y, low * scale, high * scale)
        y = by("Div", y, s)
        y = rounding(g, y)
    else:
        return pointwise.quantize(g, x)
    if scale != 1 and g.chance(0.9):
        y = by("Mul", y, s)
    y.levels = tuple(float(np.float32(i * s)) for i in range(int(low), int(high) + 1)) if bits < 3 and scale != 1 else None
    if g.chance(0.15):
        y = straight(g, x, y)
    return y


def upper(g, y, most):
    """Values of at most a number, by one of the operators that limit them."""
    c, m = g.const(np.float32(most)), min(y.m, most)
    draw = g.rng.random()
    if draw < 0.4:
        return g.node("Min", [y, c] if g.chance(0.5) else [c, y], y.shape, q=max(y.q, quantum(most)), m=m)
    if draw < 0.7 and g.opset >= 9:
        b = g.node("Greater", [y, c], y.shape, dtype=BOOL, q=0, m=1.0)
        return g.node("Where", [b, c, y], y.shape, dtype=y.dtype, q=max(y.q, quantum(most)), m=y.m)
    return pointwise.clip(g, y, 0.0, most)


def rounding(g, y):
    """A rounding: an operator, x + 1/2 rounded down, the same of a magnitude with its sign, or the sum with 1.5 * 2^23."""
    draw = g.rng.random()
    if draw < 0.1:
        c = g.const(np.float32(1.5 * 2**23))
        a = g.node("Add", [y, c], y.shape, y, m=2.0**24)  # which no other operator computes with
        if g.chance(0.3):
            c = g.const(np.float32(-1.5 * 2**23))
            return g.node("Add", [a, c], y.shape, y, q=0, m=y.m + 1)
        return g.node("Sub", [a, c], y.shape, y, q=0, m=y.m + 1)
    if draw < 0.2:
        a = g.computed("Add", [y, g.const(np.float32(0.5))], y.shape, max(1, y.q), y.m + 0.5)
        return g.node("Floor", [a], y.shape, a, q=0)
    if draw < 0.3:  # halves away from 0: the sign times the magnitude rounded
        sign_of, magnitude = g.node("Sign", [y], y.shape, q=0, m=1.0), g.node("Abs", [y], y.shape, y)
        a = g.computed("Add", [magnitude, g.const(np.float32(0.5))], y.shape, max(1, y.q), y.m + 0.5)
        f = g.node("Floor", [a], y.shape, a, q=0)
        return g.computed("Mul", [sign_of, f] if g.chance(0.5) else [f, sign_of], y.shape, 0, y.m + 1)
    return pointwise.rounded(g, y, "Round" if g.opset >= 11 and g.chance(0.7) else None)


def nearest(g, x):
    """The level nearest to each value: ArgMin of |x - levels| over a dimension in front of all others."""
    g.need(g.exact and g.opset >= 11 and x.rank > 1)
    y = pointwise.clip(g, x, *g.choice((0.0, 1.0), (-1.0, 1.0), (-2.0, 4.0)))
    levels = g.choice([0, 0.25, 0.5, 1], [1, -1, 0, 0.5], [0.5, 0, 0.75, 0.25, 1, 0.5], [-1, 1], [0, 1, 0.125, 0.375, 0.5, 0.1875, 0.25])
    flat = g.node("Reshape", [y, g.const([-1], INT64)], [int(np.prod(y.shape))], y)
    front = moves.axes_node(g, "Unsqueeze", flat, (1,) + flat.shape, [0])
    column = g.const(np.float32(levels).reshape(-1, 1))
    pair = [front, column] if g.chance(0.8) else [column, front]
    apart = g.computed("Sub", pair, (len(levels),) + flat.shape, max(y.q, quantum(levels)), y.m + max(map(abs, levels)))
    number = g.node("ArgMin", [g.node("Abs", [apart], apart.shape, apart)], flat.shape, dtype=INT64, q=0, m=float(len(levels)), axis=0, keepdims=0)
    z = g.node("Gather", [g.const(np.float32(levels)), number], flat.shape, q=quantum(levels), m=max(map(abs, levels)), axis=0)
    return g.node("Reshape", [z, g.const([-1, *y.shape[1:]], INT64)], y.shape, z, levels=tuple(sorted(set(map(float, levels)))))


def three_values(g, x):
    """Three values of a function that rises and falls, and a layer, which is taken apart."""
    g.need(x.rank in (2, 3, 4))
    s = g.node("Sign", [x], x.shape, x, q=0, m=1.0, levels=(-1.0, 0.0, 1.0))
    b = pointwise.compare(g, x)
    g.need(b.shape == x.shape)
    pair = [g.const(np.float32(g.choice(-1.0, 1.0, 0.5, 0.0))), s]
    g.rng.shuffle(pair)
    v = g.node("Where", [b] + pair, x.shape, dtype=x.dtype, q=1, m=1.0)
    return layers.conv(g, v) if v.rank > 2 and g.chance(0.8) else layers.dense(g, v)


def scaled_signs(g, x):
    """Signs times a number of each pixel, and a layer."""
    g.need(x.rank in (3, 4))
    a = g.node("Abs", [x], x.shape, x)
    axes, attributes = ([g.const([1], INT64, True)], {}) if g.opset >= 18 else ([], {"axes": [1]})
    k = g.node("ReduceMax", [a, *axes], (x.shape[0], 1) + x.shape[2:], a, **attributes)
    s = sign(g, x)
    g.need(s.shape == x.shape)
    y = g.computed("Mul", [s, k] if g.chance(0.8) else [k, s], x.shape, s.q + k.q, s.m * k.m)
    return layers.conv(g, y) if g.chance(0.8) else layers.dense(g, y)


def rows(g, x):
    """The positions of all images as rows of a matrix, something of each row, and back."""
    g.need(x.rank == 3 and x.shape[1] > 1)
    images, positions, c = x.shape
    y = g.node("Reshape", [x, g.const([-1, c], INT64)], (images * positions, c), x, levels=x.levels)
    for _ in range(g.choice(1, 2, 3)):
        draw = g.rng.random()
        if draw < 0.3:
            y = layers.dense(g, y)
        elif draw < 0.5:
            y = sign(g, y)
        elif draw < 0.6:
            y = layers.batch_norm(g, y)
        else:
            r = layers.reduce(g, y)
            if r.rank == 1:
                r = g.node("Reshape", [r, g.const([-1, 1], INT64)], (r.shape[0], 1), r)
            y = g.computed("Mul", [y, r], y.shape, y.q + r.q, y.m * r.m)
    g.need(y.rank == 2 and y.shape[0] == images * positions)
    return g.node("Reshape", [y, g.const([-1, positions, y.shape[1]], INT64)], (images, positions, y.shape[1]), y, levels=y.levels)


def straight(g, x, y):
    """x + (y - x), which is y but for roundings, in any order."""
    g.need(x.shape == y.shape)
    q, m = max(x.q, y.q), x.m + y.m
    if g.chance(0.3):  # with the negative of x as an operator of its own
        if g.chance(0.5):
            minus = g.node("Neg", [x], x.shape, x)
        else:
            pair = [x, g.const(np.float32(-1))]
            g.rng.shuffle(pair)
            minus = g.computed("Mul", pair, x.shape, x.q, x.m)
        if g.chance(0.3):
            terms = [x, y, minus]
            g.rng.shuffle(terms)
            return g.computed("Sum", terms, x.shape, q, m + x.m)
        pair = [minus, y]
        g.rng.shuffle(pair)
        pair = [x, g.computed("Add", pair, x.shape, q, m)]
        g.rng.shuffle(pair)
        return g.computed("Add", pair, x.shape, q, m + x.m)
    if g.chance(0.7):
        d = g.computed("Sub", [y, x], x.shape, q, m)
        pair = [x, d] if g.chance(0.5) else [d, x]
        return g.computed("Add", pair, x.shape, q, m + x.m)
    d = g.computed("Sub", [x, y], x.shape, q, m)
    return g.computed("Sub", [x, d], x.shape, q, m + x.m)


def through(g, x):
    return straight(g, x, g.choice(sign, quantizer)(g, x))


def layer(g, x):
    """Activations of few values, padding, a layer with weights, a normalisation, a pool."""
    g.need(x.rank in (2, 3, 4))
    y = g.choice(sign, sign, quantizer, quantizer, lambda g, x: x)(g, x)
    if y.rank > 2 and g.chance(0.08):
        y = shuffle(g, y)
    if y.rank > 2 and g.chance(0.25):
        y = moves.pad(g, y, value=g.choice(0.0, 1.0, -1.0, y.levels[0] if y.levels else 0.0), ahead=True)
    if y.rank == 2:
        y = layers.dense(g, y)
    else:
        y = g.choice(layers.conv, layers.conv, layers.conv, layers.conv_transpose, layers.dense)(g, y)
    for step in (layers.batch_norm, layers.pool, pointwise.arithmetic, sign):
        if g.chance(0.25):
            try:
                y = step(g, y)
            except Exception:  # what does not fit is left out; the graph has what fitted
                break
    return y


def shuffle(g, x):
    """Channels of several groups by turns."""
    c, rest = x.shape[1], x.shape[2:]
    parts = [d for d in range(2, c) if c % d == 0]
    g.need(parts)
    groups = g.rng.choice(parts)
    split = [groups, c // groups]
    y = g.node("Reshape", [x, g.const([0, *split, *rest], INT64)], [x.shape[0], *split, *rest], x, levels=x.levels)
    y = g.node("Transpose", [y], [x.shape[0], *split[::-1], *rest], y, levels=x.levels, perm=[0, 2, 1, *range(3, 3 + len(rest))])
    return g.node("Reshape", [y, g.const([0, c, *rest], INT64)], x.shape, y, levels=x.levels)


def zeros(g, x):
    """A sum of layers behind activations that often are all 0, and its sign."""
    a = quantizer(g, pointwise_relu(g, x))
    y = layers.conv(g, a) if a.rank > 2 else layers.dense(g, a)
    draw = g.rng.random()
    if draw < 0.6:
        inputs = [y, layers_like(g, a, y)]
        y = g.computed("Add", inputs, y.shape, max(v.q for v in inputs), sum(v.m for v in inputs))
    elif draw < 0.8:
        y = g.node(g.choice("Abs", "Neg"), [y], y.shape, y)
    return sign(g, y)


def pointwise_relu(g, x):
    return g.node("Relu", [x], x.shape, x) if g.chance(0.5) else x


def layers_like(g, a, y):
    """Another layer whose output has the shape of y, or y itself."""
    last = [n for n in g.nodes if n.output[0] == y.name][0]
    if last.op_type not in ("Conv", "Gemm", "MatMul"):
        return y
    place = [i for i, n in enumerate(last.input) if n in g.constants]
    from graphs import Value
    w = g.constants[last.input[place[0]]] if place else None
    if w is None or w.ndim < 2:
        return y
    import onnx
    other = onnx.NodeProto()
    other.CopyFrom(last)
    other.input[place[0]] = g.const(w * np.where(g.np.random(w.shape) < 0.5, -1, 1).astype(np.float32), plain=True)
    other.output[0] = g.name()
    g.nodes.append(other)
    v = Value(other.output[0], y.shape, y.dtype, y.q, y.m)
    g.values.append(v)
    y.used += 1
    return v


def padded_mean(g, x):
    """Pad of a constant, a crop, and a pool."""
    y = moves.pad(g, x, ahead=True) if g.chance(0.5) else moves.pad(g, x, value=g.choice(0.0, 1.0, -1.0), ahead=True)
    return layers.pool(g, y)
