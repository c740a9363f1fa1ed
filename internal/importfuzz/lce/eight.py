"""Operators on 8-bit values, and those that make them and read them."""

import numpy as np

from .draw import operator, out_size
from .pointwise import TABLES
from .weighted import window


def quantised(d, spread):
    """A scale and a zero point of an output of about a spread: mostly not saturated."""
    scale = np.float32(min(max(spread, 1e-4), 1e30) * d.choice([0.3, 1, 1, 2]) / 128)
    if d.chance(0.3):
        scale = np.float32(2.0 ** np.round(np.log2(scale)))
    return dict(dtype="int8", scale=scale, zero=int(np.clip(d.zero(), -100, 100)) if d.chance(0.8) else d.zero())


def span(t):
    """How large what an 8-bit tensor stands for may be."""
    return float(t.scale) * max(127 - t.zero, t.zero + 128)


@operator(5, "QUANTIZE")
def quantize(d, name):
    dtype = d.choice(["float32"] * 3 + ["int8"])
    i = d.pick(dtype, test=d.comparable if dtype == "float32" else None)
    t = d.tensor(i)
    if dtype == "float32":
        scale, zero = d.quant()
        if t.bound and d.chance(0.5):
            scale = np.float32(t.bound / 100)
        # UINT8 is only at the ends of files.
        d.emit(name, [i], t.dims, dtype="int8", scale=scale, zero=zero)
    else:
        d.emit(name, [i], t.dims, **quantised(d, span(t)))


@operator(5, "DEQUANTIZE")
def dequantize(d, name):
    i = d.pick(d.choice(["int8", "int8", "int8", "uint8"]))
    t = d.tensor(i)
    # The interpreter rounds q·scale and zero·scale, bcnn (q − zero)·scale: other numbers, but 0 where it is.
    whole = np.frexp(float(t.scale))[0] == 0.5
    once = not whole and t.zero == 0
    d.emit(name, [i], t.dims, "DequantizeOptions", step=float(t.scale) if whole else 0.0, bound=float(t.scale) * 256, once=once, zeroed=not whole)


def taps8(d, shape, axis):
    """8-bit weights, with one scale or one for each filter."""
    kind = d.choice(["any", "any", "signs", "few", "large"])
    r = d.r
    w = {"any": lambda: r.integers(-127, 128, shape), "signs": lambda: r.choice([-127, 127], shape),
         "few": lambda: r.integers(-2, 3, shape), "large": lambda: r.choice([-127, 126, 127, -1, 0], shape)}[kind]().astype(np.int8)
    scales = d.scales((shape[axis],)) * np.float32(0.1) if d.chance(0.7) else np.atleast_1d(d.scales() * np.float32(0.1))
    return w, scales


def layer8(d, name, i, shape, axis, taps, dims, table, fields, p_bias=0.8):
    """Emits a layer with 8-bit weights of a shape, whose sums are of so many taps."""
    t = d.tensor(i)
    w, scales = taps8(d, shape, axis)
    size = float(np.abs(w.astype(np.float32)).mean()) * 75 * np.sqrt(taps)
    inputs = [i, d.constant(w, scales, np.zeros(len(scales), np.int64), axis)]
    if d.chance(p_bias):
        b = (d.r.standard_normal(shape[axis]) * size * d.choice([0, 0.3, 1])).astype(np.int32)
        inputs.append(d.constant(b, np.float32(t.scale) * scales, np.zeros(len(scales), np.int64), 0))
    d.emit(name, inputs, dims, table, fields, **quantised(d, float(t.scale) * float(scales.mean()) * size * 2))


@operator(5, "CONV_2D int8")
def conv(d, name):
    i = d.pick("int8", rank=4)
    t = d.tensor(i)
    k, s, f, pad, size = window(d, t.dims[1], t.dims[2])
    out = int(d.choice([1, 2, 3, 8, 17, 32]))
    fields = dict(Padding=pad, StrideH=s[0], StrideW=s[1], DilationHFactor=f[0], DilationWFactor=f[1], FusedActivationFunction=d.activation())
    layer8(d, "CONV_2D", i, (out, *k, t.dims[3]), 0, k[0] * k[1] * t.dims[3], [t.dims[0], *size, out], "Conv2DOptions", fields, 1.0)


@operator(4, "DEPTHWISE_CONV_2D int8")
def depthwise(d, name):
    i = d.pick("int8", rank=4)
    t = d.tensor(i)
    k, s, f, pad, size = window(d, t.dims[1], t.dims[2])
    s = [s[0], s[0]]
    size = [out_size(n, k[j], s[j], f[j], pad) for j, n in enumerate(t.dims[1:3])]
    d.need(min(size) >= 1)
    times = int(d.choice([1, 1, 2]))
    d.need(t.dims[3] * times <= 512)  # the importer allows for the size of a file, of which these take little
    fields = dict(Padding=pad, StrideH=s[0], StrideW=s[1], DepthMultiplier=times, DilationHFactor=f[0], DilationWFactor=f[1],
                  FusedActivationFunction=d.activation())
    layer8(d, "DEPTHWISE_CONV_2D", i, (1, *k, t.dims[3] * times), 3, k[0] * k[1], [t.dims[0], *size, t.dims[3] * times], "DepthwiseConv2DOptions", fields, 1.0)


@operator(4, "FULLY_CONNECTED int8")
def dense(d, name):
    i = d.pick("int8", test=lambda t: np.prod(t.dims[1:]) <= 1024)
    t = d.tensor(i)
    keep = d.chance(0.5)
    size = t.dims[-1] if keep or len(t.dims) == 2 else int(np.prod(t.dims[1:]))
    out = int(d.choice([1, 2, 5, 17]))
    dims = [*t.dims[:-1], out] if keep else [t.dims[0], out]
    layer8(d, "FULLY_CONNECTED", i, (out, size), 0, size, dims, "FullyConnectedOptions", dict(FusedActivationFunction=d.activation(), KeepNumDims=keep))


@operator(1, "TRANSPOSE_CONV int8")
def transposed(d, name):
    i = d.pick("int8", rank=4)
    t = d.tensor(i)
    n, h, w, c = t.dims
    k, s, out = [int(d.choice([1, 2, 3])) for _ in "hw"], [int(d.choice([1, 2, 3])) for _ in "hw"], int(d.choice([1, 3, 8]))
    pad = int(d.chance(0.5))
    size = [(x - 1) * s[j] + k[j] if pad else x * s[j] for j, x in enumerate((h, w))]
    layer8(d, "TRANSPOSE_CONV", i, (out, *k, c), 0, k[0] * k[1] * c, [n, *size, out], "TransposeConvOptions", dict(Padding=pad, StrideH=s[0], StrideW=s[1]))
    o = d.g.operators[-1]
    o.inputs = [d.ints(n, *size, out), o.inputs[1], o.inputs[0], *o.inputs[2:]]


@operator(6, "ADD int8", "SUB int8", "MUL int8", "MAXIMUM int8", "MINIMUM int8")
def binary(d, name):
    """Operators on two 8-bit values, or one and a constant."""
    name = name.split()[0]
    i = d.pick("int8")
    t = d.tensor(i)
    limits = name[0] == "M" and name != "MUL"

    def fits(o):
        return o.dims == t.dims and (not limits or o.scale == t.scale and o.zero == t.zero)
    if d.chance(0.35):
        scale, zero = (t.scale, t.zero) if limits else d.quant()
        shape = d.choice([(), (1,), (t.dims[-1],), (1,) * (len(t.dims) - 1) + (t.dims[-1],), tuple(t.dims)])
        j = d.constant(d.r.integers(-128, 128, shape).astype(np.int8), scale, zero)
    else:
        j = d.pick("int8", test=fits)
    o = d.tensor(j)
    known = dict(dtype="int8", scale=t.scale, zero=t.zero)
    if not limits:
        known = quantised(d, span(t) * span(o) if name == "MUL" else span(t) + span(o))
    act = 0 if limits else d.activation()
    inputs = [j, i] if d.chance(0.3) else [i, j]
    d.emit(name, inputs, t.dims, TABLES[name], {"FusedActivationFunction": act} if act else {}, **known)


@operator(3, "AVERAGE_POOL_2D int8", "MAX_POOL_2D int8")
def pool(d, name):
    i = d.pick("int8", rank=4)
    t = d.tensor(i)
    k, s, _, pad, size = window(d, t.dims[1], t.dims[2], 2)
    size = [out_size(n, k[j], s[j], 1, pad) for j, n in enumerate(t.dims[1:3])]
    d.need(min(size) >= 1)
    fields = dict(Padding=pad, StrideH=s[0], StrideW=s[1], FilterHeight=k[0], FilterWidth=k[1], FusedActivationFunction=d.activation())
    d.moved(name.split()[0], [i], [t.dims[0], *size, t.dims[3]], i, "Pool2DOptions", fields)


@operator(3, "MEAN int8")
def mean(d, name):
    i = d.pick("int8", test=lambda t: len(t.dims) > 2)
    t = d.tensor(i)
    rank = len(t.dims)
    axes = d.choice([[1, 2], [1, 2], [1], [2], [-3, -2]] if rank == 4 else [[1]])
    keep, over = d.chance(0.5), {a % rank for a in axes}
    dims = [1 if k in over else size for k, size in enumerate(t.dims) if keep or k not in over]
    known = quantised(d, span(t) * 0.5) if d.chance(0.7) else dict(dtype="int8", scale=t.scale, zero=t.zero)
    d.emit("MEAN", [i, d.ints(*axes)], dims, "ReducerOptions", dict(KeepDims=keep), **known)


@operator(5, "RELU int8", "RELU6 int8", "RELU_N1_TO_1 int8", "ABS int8", "LEAKY_RELU int8", "PRELU int8", "ELU int8", "GELU int8", "HARD_SWISH int8",
          "EXP int8")
def functions(d, name):
    name = name.split()[0]
    i = d.pick("int8")
    t = d.tensor(i)
    inputs, table, fields = [i], None, {}
    known = quantised(d, span(t))
    if name == "ABS":
        table = "AbsOptions"
    elif name == "LEAKY_RELU":
        table, fields = "LeakyReluOptions", {"Alpha": float(d.choice([0.1, 0.25, 1.3, -0.4]))}
    elif name == "GELU":
        table, fields = "GeluOptions", {"Approximate": d.chance(0.5)}
    elif name == "HARD_SWISH":
        table = "HardSwishOptions"
    elif name == "EXP":
        d.need(span(t) < 10)
        table, known = "ExpOptions", dict(dtype="int8", scale=np.float32(np.exp(span(t)) * 0.8 / 255), zero=-128)
    elif name == "PRELU":
        d.need(len(t.dims) == 4)
        shape = d.choice([(t.dims[-1],), (1, 1, t.dims[-1])])
        inputs.append(d.constant(d.r.integers(-128, 128, shape).astype(np.int8), np.float32(0.02), d.zero()))
    d.emit(name, inputs, t.dims, table, fields, **known)


@operator(2, "LOGISTIC int8", "TANH int8")
def curves(d, name):
    i = d.pick("int8")
    scale, zero = (1 / 256, -128) if name[0] == "L" else (1 / 128, 0)
    d.emit(name.split()[0], [i], d.tensor(i).dims, dtype="int8", scale=np.float32(scale), zero=zero)


@operator(0.6, "SOFTMAX int8", "LOG_SOFTMAX int8")
def softmax(d, name):
    i = d.pick("int8")
    if name[0] == "S":
        d.emit("SOFTMAX", [i], d.tensor(i).dims, "SoftmaxOptions", {"Beta": 1.0}, "int8", scale=np.float32(1 / 256), zero=-128)
    else:
        d.emit("LOG_SOFTMAX", [i], d.tensor(i).dims, "LogSoftmaxOptions", {}, "int8", scale=np.float32(16 / 256), zero=127)
