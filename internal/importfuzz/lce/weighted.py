"""Float layers with weights, pools and means."""

import numpy as np

from .draw import Skip, limited, operator, out_size, power
from .flat import SAME, VALID
from .pointwise import grid_of


def weights(d, shape, axis):
    """Weights of one of the kinds that the importer looks for: ±1, ±α for each filter, nearly so, ternary, integers of a
    few bits times a factor, or any. axis is that of the filters."""
    r, out = d.r, shape[axis]
    alpha = d.choice([0.25, 0.5, 1.0, 2.0, 1.5, 0.75]) * np.ones(out)
    if d.chance(0.6):
        alpha = r.choice([0.25, 0.5, 1.0, 0.375], out) if d.exact else r.uniform(0.02, 1.5, out)
    alpha = alpha.reshape([out if k == axis else 1 for k in range(len(shape))])
    signs = r.choice([-1.0, 1.0], shape)
    kind = d.choice(["one", "alpha", "alpha", "nearly", "ternary", "integers", "any", "single", "positive"])
    if kind == "one":
        w = signs
    elif kind == "alpha":
        w = signs * alpha
    elif kind == "nearly":  # some weights are another multiple, or next to one
        w = signs * alpha
        some = r.random(shape) < 0.03
        w = np.where(some, w * (3 if d.exact else 1 + d.choice([1e-7, 3e-7, 1e-5, 1e-3])), w)
    elif kind == "ternary":
        w = r.choice([-1.0, 0.0, 1.0], shape) * alpha
    elif kind == "integers":
        most = d.choice([2, 3, 7, 15])
        w = r.integers(-most, most + 1, shape) * alpha / (1 if d.exact else most)
    elif kind == "single":  # one filter unlike the others
        w = signs * alpha
        index = [slice(None)] * len(shape)
        index[axis] = int(r.integers(out))
        w[tuple(index)] = d.numbers(w[tuple(index)].shape)
    elif kind == "positive":
        w = np.abs(signs) * alpha
    else:
        w = d.numbers(shape)
    return np.float32(w)


def window(d, h, w, most=4):
    """A kernel, strides, dilations and padding that fit an image."""
    k = [int(d.choice([1, 2, 3, 3, most])) for _ in "hw"]
    s = [int(d.choice([1, 1, 1, 2, 3])) for _ in "hw"]
    if d.chance(0.6):
        s = [s[0], s[0]]
    f = [int(d.choice([1, 1, 1, 2])) for _ in "hw"] if max(s) == 1 else [1, 1]
    pad = d.choice([SAME, SAME, VALID])
    size = [out_size(n, k[i], s[i], f[i], pad) for i, n in enumerate((h, w))]
    if min(size) < 1:
        raise Skip
    return k, s, f, pad, size


def bias(d, out, step):
    """Biases, of which some are exactly 0."""
    b = d.numbers((out,)) if not d.exact else np.float32(d.r.integers(-8, 9, out) * step * d.choice([1, 1, 4]))
    return np.zeros_like(b) if d.chance(0.15) else b


def layered(d, t, w, axis, act, with_bias=0.7):
    """The bias of a layer and what is known of its output."""
    step = t.step * grid_of(w) if d.exact else 0
    b = bias(d, w.shape[axis], step) if d.chance(with_bias) else None
    if not d.exact:
        return b, {}
    others = tuple(k for k in range(w.ndim) if k != axis)
    bound = float(t.bound * np.abs(w).sum(axis=others).max() + (np.abs(b).max() if b is not None else 0))
    d.need(bound / step <= 2.0**22)
    return b, dict(step=min(step, grid_of(b)) if b is not None else step, bound=limited(bound, act))


@operator(8, "CONV_2D")
def conv(d, name):
    i = d.pick(rank=4, test=d.grid(256))
    t = d.tensor(i)
    _, h, w, c = t.dims
    k, s, f, pad, size = window(d, h, w)
    groups = d.choice([g for g in (1, 1, 1, 2, 4) if c % g == 0])
    out = groups * int(d.choice([1, 2, 3, 4, 8, 16, 32] if groups == 1 else [1, 2, 4]))
    act = d.activation()
    taps = weights(d, (out, *k, c // groups), 0)
    b, known = layered(d, t, taps, 0, act, 1.0)
    fields = dict(Padding=pad, StrideH=s[0], StrideW=s[1], DilationHFactor=f[0], DilationWFactor=f[1], FusedActivationFunction=act)
    inputs = [i, d.constant(taps)] + ([d.constant(b)] if b is not None else [])
    d.emit(name, inputs, [t.dims[0], *size, out], "Conv2DOptions", fields, **known)


@operator(4, "DEPTHWISE_CONV_2D")
def depthwise(d, name):
    i = d.pick(rank=4, test=d.grid(64))
    t = d.tensor(i)
    _, h, w, c = t.dims
    k, s, f, pad, size = window(d, h, w)
    s = [s[0], s[0]]
    size = [out_size(n, k[j], s[j], f[j], pad) for j, n in enumerate((h, w))]
    d.need(min(size) >= 1)
    times = int(d.choice([1, 1, 1, 2, 3]))
    act = d.activation()
    taps = weights(d, (1, *k, c * times), 3)
    b, known = layered(d, t, taps, 3, act, 1.0)
    fields = dict(Padding=pad, StrideH=s[0], StrideW=s[1], DepthMultiplier=times, DilationHFactor=f[0], DilationWFactor=f[1], FusedActivationFunction=act)
    d.emit(name, [i, d.constant(taps), d.constant(b)], [t.dims[0], *size, c * times], "DepthwiseConv2DOptions", fields, **known)


@operator(5, "FULLY_CONNECTED")
def dense(d, name):
    """Of whole images, or with keep_num_dims of each pixel."""
    i = d.pick(test=lambda t: d.grid(256)(t) and np.prod(t.dims[1:]) <= 1024)
    t = d.tensor(i)
    keep = d.chance(0.5)
    size = t.dims[-1] if keep or len(t.dims) == 2 else int(np.prod(t.dims[1:]))
    out, act = int(d.choice([1, 2, 3, 5, 8, 17, 32])), d.activation()
    w = weights(d, (out, size), 0)
    b, known = layered(d, t, w, 0, act)
    inputs = [i, d.constant(w)] + ([d.constant(b)] if b is not None else [])
    dims = [*t.dims[:-1], out] if keep else [t.dims[0], out]
    d.emit(name, inputs, dims, "FullyConnectedOptions", dict(FusedActivationFunction=act, KeepNumDims=keep), **known)


@operator(1, "TRANSPOSE_CONV")
def transposed(d, name):
    i = d.pick(rank=4, test=d.grid(64))
    t = d.tensor(i)
    n, h, w, c = t.dims
    k, s = [int(d.choice([1, 2, 3])) for _ in "hw"], [int(d.choice([1, 2, 3])) for _ in "hw"]
    pad, out = d.choice([SAME, VALID]), int(d.choice([1, 2, 3, 8]))
    size = [h * s[0], w * s[1]] if pad == SAME else [(h - 1) * s[0] + k[0], (w - 1) * s[1] + k[1]]
    taps = weights(d, (out, *k, c), 0)
    b, known = layered(d, t, taps, 0, 0)
    inputs = [d.ints(n, *size, out), d.constant(taps), i] + ([d.constant(b)] if b is not None else [])
    d.emit(name, inputs, [n, *size, out], "TransposeConvOptions", dict(Padding=pad, StrideH=s[0], StrideW=s[1]), **known)


@operator(5, "AVERAGE_POOL_2D", "MAX_POOL_2D")
def pool(d, name):
    average = name[0] == "A"
    i = d.pick(rank=4, test=d.grid(16) if average else d.calm)
    t = d.tensor(i)
    k, s, _, pad, size = window(d, t.dims[1], t.dims[2], 2)
    size = [out_size(n, k[j], s[j], 1, pad) for j, n in enumerate(t.dims[1:3])]
    d.need(min(size) >= 1)
    act = d.activation()
    known = dict(step=t.step, bound=limited(t.bound, act), once=t.once, zeroed=t.zeroed and not average)
    if average and d.exact:
        # All windows must be of a number of pixels that is a power of two.
        counts = [counted(n, k[j], s[j], pad) for j, n in enumerate(t.dims[1:3])]
        d.need(all(power(a * b) for a in counts[0] for b in counts[1]))
        known["step"] /= max(counts[0]) * max(counts[1])
    fields = dict(Padding=pad, StrideH=s[0], StrideW=s[1], FilterHeight=k[0], FilterWidth=k[1], FusedActivationFunction=act)
    d.emit(name, [i], [t.dims[0], *size, t.dims[3]], "Pool2DOptions", fields, **known)


def counted(n, kernel, stride, padding):
    """How many pixels of the image the windows along n pixels hold."""
    size = out_size(n, kernel, stride, 1, padding)
    before = max((size - 1) * stride + kernel - n, 0) // 2 if padding == SAME else 0
    return {min(p * stride - before + kernel, n) - max(p * stride - before, 0) for p in range(size)}


@operator(3, "MEAN", "REDUCE_MAX")
def reduce(d, name):
    mean = name == "MEAN"
    i = d.pick(test=lambda t: (d.grid(64) if mean else d.calm)(t) and len(t.dims) > 2)
    t = d.tensor(i)
    rank = len(t.dims)
    axes = d.choice([[1, 2], [1, 2], [1], [2], [-3, -2], [2, 1]] if rank == 4 else [[1], [-2]])
    keep = d.chance(0.5)
    over = {a % rank for a in axes}
    n = int(np.prod([t.dims[a] for a in over]))
    d.need(not d.exact or not mean or power(n))
    dims = [1 if k in over else size for k, size in enumerate(t.dims) if keep or k not in over]
    d.emit(name, [i, d.ints(*axes)], dims, "ReducerOptions", dict(KeepDims=keep), step=t.step / (n if mean else 1), bound=t.bound, once=t.once, zeroed=t.zeroed and not mean)
