"""Random graphs of OpenVINO. Constants and inputs have so few bits that no operator rounds, in
whatever order, but for the last ones of a graph."""

import numpy as np
import openvino as ov
import openvino.opset1 as first
import openvino.opset10 as tenth
import openvino.opset13 as ops

F32 = np.float32


class Graph:
    def __init__(self, seed, number, plain):
        self.plain = plain  # of comparisons and ordinary convolutions
        self.r = np.random.default_rng([seed, number])
        self.operators = []

    def pick(self, *choices):
        return choices[self.r.integers(len(choices))]

    def const(self, values, dtype=F32):
        return ops.constant(np.asarray(values, dtype))

    def small(self, *shape):
        """Quarters from -1 to 1."""
        return self.const(self.r.integers(-4, 5, shape) / 4)

    def powers(self, *shape):
        return self.const(self.r.choice([-1, -0.5, 0.5, 1], shape))

    def halved(self, x):
        """Keeps values few: whole levels from -4 to 4."""
        return self.quantize(x, -4, 4, -4, 4, self.pick(9, 17))

    def quantize(self, x, low, high, out_low, out_high, levels):
        a = [np.asarray(v, F32) for v in (low, high, out_low, out_high)]
        c = [self.const(v) for v in a]
        if not self.plain:
            return ops.fake_quantize(x, *c, levels)
        top = self.const(levels - 1)
        level = ops.round(ops.multiply(ops.divide(ops.subtract(x, c[0]), self.const(a[1] - a[0])), top), "half_to_even")
        y = ops.add(ops.multiply(ops.divide(level, top), self.const(a[3] - a[2])), c[2])
        return ops.select(ops.less_equal(x, c[0]), c[2], ops.select(ops.greater(x, c[1]), c[3], y))


def dims(x):
    return [d.get_length() for d in x.output(0).partial_shape]


def window(g, kernel):
    pads = [int(g.r.integers(k)) for k in kernel] + [int(g.r.integers(k)) for k in kernel]
    strides = [int(g.r.integers(1, 4)), int(g.r.integers(1, 4))]
    return strides, pads[:2], pads[2:]


def convolution(g, x):
    c = dims(x)[1]
    k = g.pick([1, 1], [3, 3], [2, 3], [3, 1])
    s, b, e = window(g, k)
    dilations = g.pick([1, 1], [1, 2], [2, 1])
    auto = g.pick("explicit", "explicit", "same_upper", "same_lower", "valid")
    if g.r.random() < 0.3:
        groups = g.pick(*[n for n in (1, 2, c) if c % n == 0])
        w = g.powers(groups, g.pick(1, 2), c // groups, *k)
        y = ops.group_convolution(x, w, s, b, e, dilations, auto)
    else:
        y = ops.convolution(x, g.powers(g.pick(4, 8, 16), c, *k), s, b, e, dilations, auto)
    return g.halved(y)


def binary(g, x):
    c = dims(x)[1]
    if c % 8:
        return None
    if g.r.random() < 0.4:
        at = g.const(g.r.integers(-2, 3, [1, c, 1, 1]) / 2)
    else:
        at = g.const(g.pick(0, 0.5))
    low, high = (1, 0) if g.r.random() < 0.3 else (0, 1)
    k = g.pick([1, 1], [3, 3], [1, 3])
    s, b, e = window(g, k)
    out = g.pick(4, 8, 16)
    count = out * c * k[0] * k[1]
    t = ov.Tensor(ov.Type.u1, ov.Shape([out, c] + k))
    t.data.reshape(-1).view(np.uint8)[:] = g.r.integers(0, 256, (count + 7) // 8)
    dilations = g.pick([1, 1], [1, 1], [2, 2])
    auto = g.pick("explicit", "explicit", "same_upper", "same_lower")
    value = g.pick(-1, 0, 1)
    if g.plain:
        y = signs(g, x, at, high - low, t, (s, b, e, dilations, auto), value)
    else:
        x = ops.fake_quantize(x, at, at, g.const(low), g.const(high), 2)
        y = ops.binary_convolution(x, ov.op.Constant(t, shared_memory=False), s, b, e, dilations, "xnor-popcount", float(value), auto)
    y = ops.multiply(y, g.const(g.r.choice([0.125, 0.25, 0.5], [1, out, 1, 1])))
    return g.halved(ops.add(y, g.small(1, out, 1, 1)))


def signs(g, x, at, sign, t, how, value):
    """A BinaryConvolution as an ordinary one of signs, which sees padding of its own value."""
    s, b, e, dilations, auto = how
    shape = list(t.shape)
    bits = np.unpackbits(t.data.reshape(-1).view(np.uint8), bitorder="little")[: np.prod(shape)]
    weights = g.const((2 * bits.astype(F32) - 1).reshape(shape))
    x = ops.select(ops.greater(x, at), g.const(sign), g.const(-sign))
    if auto.startswith("same"):
        b, e = [], []
        for i in (0, 1):
            size, span = dims(x)[2 + i], dilations[i] * (shape[2 + i] - 1) + 1
            more = max(0, (-(-size // s[i]) - 1) * s[i] + span - size)
            b.append(more // 2 if auto == "same_upper" else more - more // 2)
            e.append(more - b[-1])
    def pads(list):
        return g.const([0, 0] + list, np.int64)
    x = ops.pad(x, pads(b), pads(e), "constant", g.const(value))
    return ops.convolution(x, weights, s, [0, 0], [0, 0], dilations)


def backprop(g, x):
    """A transposed convolution."""
    c = dims(x)[1]
    k = g.pick([1, 1], [2, 2], [3, 3], [2, 3], [4, 4])
    s = [int(g.r.integers(1, 4)) for _ in k]
    b, e = ([int(g.r.integers(n)) for n in k] for _ in range(2))
    dilations = g.pick([1, 1], [1, 1], [1, 2])
    more = [int(g.r.integers(max(1, n))) for n in s] if g.r.random() < 0.3 else [0, 0]
    auto = g.pick("explicit", "explicit", "valid")
    if g.r.random() < 0.3:
        groups = g.pick(*[n for n in (2, c) if c % n == 0])
        w = g.powers(groups, c // groups, g.pick(1, 2), *k)
        return g.halved(ops.group_convolution_backprop_data(x, w, s, None, b, e, dilations, auto, more))
    return g.halved(ops.convolution_backprop_data(x, g.powers(c, g.pick(3, 4, 8), *k), s, None, b, e, dilations, auto, more))


def divided(g, x):
    """Parts of a dimension, some of them joined again, in another order."""
    d = dims(x)
    axis = g.pick(1, 1, 2, 3, -1)
    n = d[axis]
    if g.r.random() < 0.5:
        count = g.pick(*[k for k in range(1, n + 1) if n % k == 0])
        parts = ops.split(x, g.const(axis, np.int64), count).outputs()
    else:
        first = int(g.r.integers(1, n + 1))
        sizes = [first, n - first] if first < n else [n]
        if g.r.random() < 0.3:
            sizes[-1] = -1
        parts = ops.variadic_split(x, g.const(axis, np.int64), g.const(sizes, np.int64)).outputs()
    kept = [parts[i] for i in g.r.permutation(len(parts))[: g.r.integers(1, len(parts) + 1)]]
    return ops.concat(kept, axis) if len(kept) > 1 else ops.relu(kept[0])


def shuffled(g, x):
    d = dims(x)
    if g.r.random() < 0.5:
        return ops.shuffle_channels(x, 1, g.pick(*[k for k in range(1, d[1] + 1) if d[1] % k == 0]))
    if d[1] % 4 or d[2] % 2 or d[3] % 2:
        return None
    return ops.reorg_yolo(x, [2])


def pool(g, x):
    k = g.pick([2, 2], [3, 3], [2, 1])
    s, b, e = window(g, k)
    rounding = g.pick("floor", "ceil")
    if g.r.random() < 0.5:
        return first.max_pool(x, s, b, e, k, rounding)
    if k == [3, 3]:
        return None  # a division by 3 rounds
    return ops.avg_pool(x, s, [0, 0], [0, 0], k, False, "floor")


def quantize(g, x):
    c = dims(x)[1]
    if g.r.random() < 0.5:  # 2^n steps of a power of two
        levels = g.pick(5, 9, 17, 33)
        wide = (levels - 1) / 8
        return g.quantize(x, -wide, wide, -wide, wide, levels)
    low = g.r.integers(-4, 1, g.pick([1, c, 1, 1], [c, 1, 1], [1, 1, 1, 1]))
    return g.quantize(x, low, low + 4, g.pick(0, -1), g.pick(1, 2), g.pick(2, 3, 5))


def affine(g, x):
    d = dims(x)
    shape = g.pick([], [1, d[1], 1, 1], [d[1], 1, 1], [1, 1, 1, 1], d, [1, 1, d[2], d[3]], [d[3]])
    kind = g.pick("add", "subtract", "from", "multiply", "divide", "maximum", "minimum")
    if kind in ("maximum", "minimum"):
        c = g.const(g.pick(-1, 0, 0.5))
        return ops.maximum(x, c) if kind == "maximum" else ops.minimum(x, c)
    if kind == "multiply":
        return ops.multiply(x, g.powers(*shape))
    if kind == "divide":
        return ops.divide(x, g.powers(*shape))
    c = g.small(*shape)
    if kind == "add":
        return ops.add(c, x) if g.r.random() < 0.5 else ops.add(x, c)
    return ops.subtract(c, x) if kind == "from" else ops.subtract(x, c)


def pointwise(g, x):
    d = dims(x)
    return g.pick(
        lambda: ops.relu(x),
        lambda: ops.clamp(x, -1.5, 2.0),
        lambda: ops.prelu(x, g.const(g.r.choice([0.25, 0.5], [d[1]]))),
        lambda: ops.prelu(x, g.const([0.5])),
        lambda: ops.negative(x),
    )()


def moved(g, x):
    d = dims(x)
    kind = g.pick("turn", "swap", "flat", "split", "unsqueeze")
    if kind == "turn":
        return ops.transpose(x, g.const(g.pick([0, 2, 3, 1], [0, 3, 1, 2], [0, 1, 3, 2]), np.int64))
    if kind == "swap":
        return ops.reshape(x, g.const([0, d[2], d[1], -1], np.int64), True)
    if kind == "flat":
        return ops.reshape(ops.reshape(x, g.const([0, -1], np.int64), True), g.const([1] + d[1:], np.int64), False)
    if kind == "split":
        return ops.reshape(x, g.const([d[0], d[1] * d[2], 1, d[3]], np.int64), False)
    return ops.squeeze(ops.unsqueeze(x, g.const([2], np.int64)), g.const([2], np.int64))


def joined(g, x):
    y = g.pick(pointwise, affine)(g, x)
    return ops.concat([x, y] if g.r.random() < 0.7 else [y, x, y], g.pick(1, 1, 2, 3, -1))


def summed(g, x):
    y = g.pick(pointwise, affine, quantize)(g, x)
    d = dims(x)
    if g.r.random() < 0.3:
        y = ops.reduce_max(y, g.const([2, 3], np.int64), True)
        y = ops.minimum(y, g.const(2)) if g.r.random() < 0.5 else y
    kind = g.pick("add", "subtract", "maximum", "minimum", "multiply")
    if kind == "multiply":
        return g.halved(ops.multiply(quantize(g, x), y))
    return getattr(ops, kind)(x, y)


def resized(g, x):
    """Any sizes to the nearest pixel; else sizes with weights that are exact, but for cubes at the end of a graph."""
    d = dims(x)
    mode = g.pick("nearest", "nearest", "linear", "linear_onnx")
    axes = g.pick([2, 3], [2, 3], [3, 2], [2], [3], [1, 3])
    if mode == "linear_onnx":
        axes = [2, 3]
    if mode == "nearest":
        sizes = [int(g.r.integers(1, 2 * d[a] + 2)) for a in axes]
        how = g.pick("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
    else:
        sizes = [d[a] * g.pick(1, 2, 4) for a in axes]
        how = g.pick("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn")
    # On corners, OpenVINO 2026.4 multiplies by a quotient: the last of 24 pixels of 15 is number 13.
    exact = () if how == "align_corners" else ("floor", "ceil", "simple")
    rounded = g.pick("round_prefer_floor", "round_prefer_ceil", *exact)
    scales = [s / d[a] for s, a in zip(sizes, axes)]
    if g.r.random() < 0.5:
        by, scales = "scales", [g.pick(0.5, 1, 1.5, 2, 2.5, 3) if mode == "nearest" else s for s in scales]
    else:
        by = "sizes"
    axes = g.const(axes, np.int64)
    if g.r.random() < 0.5:
        y = ops.interpolate(x, g.const(scales) if by == "scales" else g.const(sizes, np.int64), mode, by, None, None, how, rounded, False, -0.75, axes)
    else:
        y = tenth.interpolate(x, g.const(sizes, np.int64), g.const(scales), mode, by, [0] * 4, [0] * 4, how, rounded, False, -0.75, axes)
    return y if mode == "nearest" else g.halved(y)


def padded(g, x):
    d = dims(x)
    mode = g.pick("constant", "constant", "edge", "reflect", "symmetric")
    axes = g.pick([2, 3], [2, 3], [2], [3], [1], [1, 2])
    least = -1 if mode in ("constant", "edge") and g.r.random() < 0.3 else 0
    begin, end = [0] * 4, [0] * 4
    for a in axes:
        most = d[a] if mode == "symmetric" else d[a] - 1 if mode == "reflect" else 3
        begin[a], end[a] = (int(g.r.integers(least, min(3, most) + 1)) for _ in range(2))
    op = ops.pad if least < 0 else g.pick(ops.pad, first.pad)
    value = [g.const(g.pick(-1, 0, 0.5, 1))] if mode == "constant" and g.r.random() < 0.7 else []
    return op(x, g.const(begin, np.int64), g.const(end, np.int64), mode, *value)


LAYERS = (convolution, binary, binary, binary, pool, quantize, affine, pointwise, moved, joined, summed, resized, padded, backprop, divided, shuffled)


def end(g, x):
    """The last operators, which may round."""
    d = dims(x)
    kind = g.pick("same", "mean", "matmul", "softmax", "sigmoid", "flat", "resized", "normal", "normal")
    if kind == "normal":
        return g.pick(
            lambda: ops.lrn(x, g.const([1], np.int64), g.pick(0.5, 1e-4), g.pick(0.75, 0.5, 1), g.pick(1, 2), g.pick(1, 3, 5)),
            lambda: ops.normalize_l2(x, g.const(g.pick([1], [1, 2, 3], [2], [3, 1]), np.int64), g.pick(1e-6, 0.25), g.pick("add", "max")),
            lambda: ops.power(ops.add(ops.clamp(x, 0.25, 4.0), g.const(1)), g.const(g.pick(0.5, -0.5, 2, -1, 0.25, -0.75, 3))),
            lambda: ops.sqrt(ops.relu(x)),
            lambda: ops.batch_norm_inference(x, *(g.const(g.r.integers(1, 9, d[1]) / 4) for _ in range(4)), 1e-3),
        )()
    if kind == "resized":
        sizes = [int(g.r.integers(1, 2 * d[a] + 2)) for a in (2, 3)]
        mode = g.pick("linear", "linear_onnx", "cubic")
        how = g.pick("half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners")
        return ops.interpolate(x, g.const(sizes, np.int64), mode, "sizes", None, None, how, "floor", False, g.pick(-0.75, -0.5), g.const([2, 3], np.int64))
    if kind == "mean":
        return ops.reduce_mean(x, g.const([2, 3], np.int64), g.pick(True, False))
    if kind in ("matmul", "softmax"):
        flat = ops.reshape(x, g.const([1, -1], np.int64), False)
        n = dims(flat)[1]
        if n <= 4096:
            x = ops.matmul(flat, g.powers(5, n), False, True) if g.r.random() < 0.5 else ops.matmul(flat, g.powers(n, 5), False, False)
            if kind == "softmax":
                x = ops.softmax(ops.multiply(x, g.const(1 / 64)), 1)
        return x
    if kind == "sigmoid":
        return g.pick(ops.sigmoid, ops.tanh, ops.hswish, ops.mish, ops.softplus)(x)
    if kind == "flat":
        return ops.transpose(x, g.const([0, 2, 3, 1], np.int64))
    return x


def draw(seed, number, plain=False):
    """A model, its input, and the names of what it is made of."""
    g = Graph(seed, number, plain)
    shape = [1, g.pick(4, 8, 16), int(g.r.integers(4, 10)), int(g.r.integers(4, 10))]
    p = ops.parameter(shape, F32)
    p.output(0).set_names({"x"})
    x = p
    for _ in range(g.r.integers(1, 8)):
        layer = LAYERS[g.r.integers(len(LAYERS))]
        try:
            y = layer(g, x)
        except RuntimeError:  # it does not fit
            continue
        if y is None or np.prod(dims(y)) > 20000 or np.prod(dims(y)) == 0:
            continue
        x = y
        g.operators.append(layer.__name__)
    x = end(g, x)
    x.output(0).set_names({"y"})
    model = ov.Model([ops.result(x)], [p], "n")
    return model, (g.r.integers(-16, 17, shape) / 4).astype(F32), g.operators
