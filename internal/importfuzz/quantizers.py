"""Quantisers behind each other: QuantizeLinear and DequantizeLinear of every type, and those of QONNX.

What one of them leaves pending, the next one has to settle or to follow: scales of each channel
behind one scale and the other way round, with moves, limits and arithmetic in between.
"""

import numpy as np

import layers
import moves
import pointwise
from graphs import DOMAIN, FLOAT, INT8, UINT8, Skip, quantum

# The integers of each type, and the opset that quantises to it.
TYPES = {INT8: (-128, 127, 10), UINT8: (0, 255, 10), "int16": (-32768, 32767, 21), "uint16": (0, 65535, 21),
         "int4": (-8, 7, 21), "uint4": (0, 15, 21), "int2": (-2, 1, 25), "uint2": (0, 3, 25)}
NUMBERS = {INT8: 3, UINT8: 2, "int16": 5, "uint16": 4, "int4": 22, "uint4": 21, "int2": 26, "uint2": 25}  # of TensorProto
ROUNDINGS = ("ROUND", "ROUND", "HALF_EVEN", "CEIL", "FLOOR", "UP", "DOWN", "HALF_UP", "HALF_DOWN")


def scale_of(g):
    return g.choice(0.25, 0.5, 1.0, 0.125, 2.0) if g.exact else g.choice(0.1, 0.05, 0.25, 0.017, 1.0, 1 / 3)


def scales(g, x, channels=0.5):
    """One number, or one for each channel: a list for an axis, or None."""
    if x.rank < 2 or not g.chance(channels):
        return np.float32(scale_of(g)) if g.chance(0.8) else np.float32([scale_of(g)]), None
    axis = 1 if g.chance(0.8) else g.rng.randrange(1, x.rank)
    return g.fill((x.shape[axis],), lambda: scale_of(g)), axis


def zeros(g, dtype, shape):
    """Zero points: mostly 0 or one for all, at times one for each."""
    low, high, _ = TYPES[dtype]

    def one():
        return int(min(max(g.rng.randrange(-20, 21) if low else g.rng.randrange(0, 41), low), high))
    draw = g.rng.random()
    if draw < 0.35:
        return np.zeros(shape, np.int64)
    if draw < 0.8:
        return np.full(shape, one())
    return np.array([one() for _ in range(int(np.prod(shape)))]).reshape(shape)


def linear(g, x):
    """QuantizeLinear, what may stand between, and DequantizeLinear, of the same numbers or of others."""
    g.since(10)
    dtype = g.rng.choice([t for t, (_, _, since) in TYPES.items() if since <= g.opset] + [INT8, UINT8] * 2)
    low, high, _ = TYPES[dtype]
    scale, axis = scales(g, x, 0.5 if g.opset >= 13 else 0)
    zero = zeros(g, dtype, scale.shape)
    attributes = {}
    if axis is not None and (axis != 1 or g.chance(0.5)):
        attributes["axis"] = axis if g.chance(0.7) else axis - x.rank
    attributes_in = dict(attributes)
    operands = [g.const(scale), g.const(zero, dtype, True)]
    if g.opset >= 21 and g.chance(0.35 if dtype in (INT8, UINT8) else 0.6):
        attributes_in["output_dtype"] = NUMBERS[dtype]
        if g.chance(0.8):
            zero = np.zeros_like(zero)
            operands = operands[:1]
    elif dtype == UINT8 and g.chance(0.2):
        zero = np.zeros_like(zero)
        operands = operands[:1]
    if g.opset >= 23 and g.chance(0.3):
        attributes_in["precision"] = 1
    if g.opset >= 19 and g.chance(0.3):
        attributes_in["saturate"] = g.choice(0, 1)
    y = g.node("QuantizeLinear", [x] + operands, x.shape, dtype=dtype, q=0, m=float(max(-low, high)), **attributes_in)
    out, outer = np.asarray(scale, np.float64), zero
    if axis is None and g.chance(0.4):
        y = whole(g, y)
    if axis is None and len(operands) == 2 and g.chance(0.2):
        scale = np.float32(scale_of(g))
        outer = zeros(g, dtype, ())
        out, operands = np.asarray(scale, np.float64), [g.const(scale), g.const(outer, dtype, True)]
    most = np.maximum(np.abs(low - outer), np.abs(high - outer)) * out
    q = max(0, quantum(scale)) if g.exact else 0
    g.need(not g.exact or float(most.max()) * 2.0**q <= 1 << 24)
    return g.node("DequantizeLinear", [y] + operands, y.shape, dtype=FLOAT, q=q, m=float(most.max()), **attributes)


def whole(g, y):
    """What moves or selects integers, of which all have one scale."""
    draw = g.rng.random()
    if draw < 0.3 and y.rank > 1:
        return moves.transpose(g, y)
    if draw < 0.5:
        return moves.reshape(g, y)
    if draw < 0.65 and y.dtype in (INT8, UINT8) and g.opset >= 12 and y.rank == 4:
        k = [min(2, d) for d in y.shape[2:]]
        return g.node("MaxPool", [y], y.shape[:2] + tuple(d - n + 1 for d, n in zip(y.shape[2:], k)), y, kernel_shape=k)
    if draw < 0.8 and y.dtype == INT8 and g.opset >= 14:
        return g.node("Relu", [y], y.shape, y)
    if draw < 0.9 and y.rank > 1:
        return g.node("Concat", [y, y], y.shape[:1] + (2 * y.shape[1],) + y.shape[2:], y, axis=1)
    return g.node("Identity", [y], y.shape, y)


def limits(signed, narrow, bits):
    """The integers of so many bits, by QONNX."""
    if signed:
        return -(2 ** (bits - 1)) + bool(narrow), 2 ** (bits - 1) - 1
    return 0, 2**bits - 1 - bool(narrow)


def quant(g, x):
    """Quant of QONNX, also called IntQuant."""
    g.since(13)
    scale, axis = scales(g, x)
    if axis is not None:
        scale = scale.reshape([-1 if i == axis else 1 for i in range(x.rank)])
    signed, narrow, bits = g.choice(0, 1, 1), g.choice(0, 0, 1), g.choice(1, 2, 2, 3, 4, 8)
    if bits == 1 and not signed:
        narrow = 0
    zero = 0 if signed or g.chance(0.6) else g.choice(1, 2, 5)
    low, high = (-1, 1) if bits == 1 and signed else limits(signed, narrow, bits)
    attributes = {"signed": signed, "narrow": narrow, "rounding_mode": g.choice(*ROUNDINGS)}
    for key, usual in (("signed", 1), ("narrow", 1), ("rounding_mode", "ROUND")):
        if attributes[key] == usual and g.chance(0.3):
            del attributes[key]
    if "rounding_mode" in attributes and g.chance(0.2):
        attributes["rounding_mode"] = attributes["rounding_mode"].lower()
    m = float(max(abs(low - zero), abs(high - zero)) * np.max(scale))
    return g.computed(g.choice("Quant", "Quant", "IntQuant"), [x, g.const(scale), g.const(np.float32(zero)), g.const(np.float32(bits))],
                      x.shape, max(0, quantum(scale)) if g.exact else 0, m, domain=DOMAIN, **attributes)


def bipolar(g, x):
    g.since(13)
    scale, axis = scales(g, x, 0.3)
    if axis is not None:
        scale = scale.reshape([-1 if i == axis else 1 for i in range(x.rank)])
    return g.computed("BipolarQuant", [x, g.const(scale)], x.shape, max(0, quantum(scale)) if g.exact else 0, float(np.max(scale)), domain=DOMAIN)


def truncated(g, x):
    """Trunc of QONNX behind Quant, of both versions."""
    g.since(13)
    scale, bits, rest = scale_of(g), g.choice(4, 6, 8), g.choice(1, 2, 3)
    names = [g.const(np.float32(v)) for v in (scale, 0, bits)]
    x = g.computed("Quant", [x] + names, x.shape, max(0, quantum(np.float32(scale))) if g.exact else 0, 2.0 ** (bits - 1) * scale, domain=DOMAIN,
                   signed=1, narrow=g.choice(0, 1))
    attributes = {"rounding_mode": g.choice("FLOOR", *ROUNDINGS)}
    if g.chance(0.5):  # version 1 has the numbers of bits, and the scale of its input
        names = [g.const(np.float32(v)) for v in (scale, 0, bits, bits - rest)]
        most = 2.0 ** (bits - 1 - rest) + 1
    else:
        by = scale * 2**rest
        names = [g.const(np.float32(v)) for v in (scale, 0, bits, by, g.choice(bits - rest, bits - rest, 2))]
        attributes.update(signed=g.choice(0, 1, 1), narrow=g.choice(0, 1))
        most, scale = 2.0**bits, by
    return g.computed("Trunc", [x] + names, x.shape, max(0, quantum(np.float32(scale))) if g.exact else 0, most * scale, domain=DOMAIN, **attributes)


def thresholds(g, x):
    """MultiThreshold: thresholds of each channel or of all, in any order."""
    g.since(13)
    g.need(x.rank > 1)
    attributes, at = {}, 1
    if x.rank == 4 and g.chance(0.4):
        attributes["data_layout"] = g.choice("NCHW", "NHWC")
        at = attributes["data_layout"].index("C")
    elif x.rank == 2 and g.chance(0.4):
        attributes["data_layout"] = "NC"
    rows, n = g.choice(1, x.shape[at]), g.choice(1, 1, 2, 3, 3, 7, 15)
    table = g.fill((rows, n), lambda: g.dyadic(-min(x.m, 4), min(x.m, 4)))
    if g.chance(0.8):
        table = np.sort(table, 1)
    scale, bias = g.choice((1.0, 0.0), (1.0, 0.0), (2.0, -1.0), (0.5, 0.0), (1.0, -float(n // 2)))
    if (scale, bias) != (1.0, 0.0):
        attributes.update(out_scale=scale, out_bias=bias)
    return g.computed("MultiThreshold", [x, g.const(table)], x.shape, 1, abs(bias) + n * scale, domain=DOMAIN, **attributes)


def weighted(g, x):
    """A layer whose weights are held as integers, with scales and zero points of their own."""
    g.since(10)
    g.need(x.rank in (2, 3, 4))
    out = g.choice(1, 2, 3, 5)
    shape = [out, x.shape[1]] + [g.rng.randint(1, min(3, d)) for d in x.shape[2:]] if x.rank > 2 else [x.shape[1], out]
    dtype = g.rng.choice([t for t, (_, _, since) in TYPES.items() if since <= g.opset] + [INT8, UINT8])
    low, high, _ = TYPES[dtype]
    k = g.np.integers(max(low, -20), min(high, 20) + 1, shape)
    axis = None if g.opset < 13 or g.chance(0.3) else 0 if x.rank > 2 else 1
    scale = np.float32(scale_of(g)) if axis is None else g.fill((out,), lambda: scale_of(g))
    zero = zeros(g, dtype, scale.shape)
    along = [-1 if i == axis else 1 for i in range(len(shape))]
    w = ((k - zero.reshape(along)) * scale.reshape(along)).astype(np.float32)
    attributes = {"axis": g.choice(axis, axis - len(shape))} if axis is not None else {}
    operands = [g.const(k, dtype, True), g.const(scale)] + ([g.const(zero, dtype, True)] if zero.any() or g.chance(0.7) else [])
    held = g.node("DequantizeLinear", operands, shape, dtype=FLOAT, **attributes)
    g.values.remove(held)  # which is no value of images
    sums = np.abs(w).sum(tuple(range(1, w.ndim)) if x.rank > 2 else 0).max()
    size = [out] + [a - b + 1 for a, b in zip(x.shape[2:], shape[2:])]
    return g.computed("Conv" if x.rank > 2 else "MatMul", [x, held], [x.shape[0]] + size, x.q + quantum(w), float(sums) * x.m)


QUANTIZERS = (linear, linear, linear, quant, quant, bipolar, truncated, thresholds, pointwise.quantize)
BETWEEN = (pointwise.simple, pointwise.clip, moves.reshape, moves.transpose, moves.concat, pointwise.arithmetic, pointwise.arithmetic,
           pointwise.together, layers.batch_norm, weighted, moves.part, lambda g, x: g.node("Neg", [x], x.shape, x))


def pooled(g, x):
    g.need(x.rank == 4)
    k = [min(2, d) for d in x.shape[2:]]
    return g.node("MaxPool", [x], x.shape[:2] + tuple(d - n + 1 for d, n in zip(x.shape[2:], k)), x, levels=x.levels, kernel_shape=k)


def chain(g, x):
    """Two to five quantisers, often one behind another with nothing between."""
    for i in range(g.choice(2, 2, 3, 4, 5)):
        for step in [g.choice(*QUANTIZERS)] + [g.choice(*BETWEEN, pooled) for _ in range(g.choice(0, 0, 1, 2))]:
            try:
                x = step(g, x)
            except Skip:  # what does not fit is left out
                continue
            g.need(x.dtype == FLOAT)
    return x
