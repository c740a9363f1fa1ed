"""LCE's operators: bit-packed tensors, binary convolutions and pools."""

import numpy as np

from .draw import limited, operator, out_size, words
from .flat import SAME
from .pointwise import grid_of
from .weighted import window


def packed(r, shape, channels):
    """Random words [..., words] whose bits beyond the channels are 0."""
    bits = r.random((*shape, words(channels) * 32)) < r.choice([0.5, 0.5, 0.1, 0.9])
    bits[..., channels:] = False
    return np.packbits(bits, axis=-1, bitorder="little").view("<i4").reshape(*shape, words(channels))


def too_small(dims, kernel, dilation):
    """Whether an image is narrower or lower than a kernel."""
    return any(n < (k - 1) * f + 1 for n, k, f in zip(dims[1:3], kernel, dilation))


@operator(9, "LceQuantize")
def quantize(d, name):
    dtype = d.choice(["float32", "float32", "float32", "int8"])
    i = d.pick(dtype, test=d.signed if dtype == "float32" else None)
    t = d.tensor(i)
    d.emit(name, [i], [*t.dims[:-1], words(t.dims[-1])], dtype="int32", channels=t.dims[-1])


@operator(4, "LceDequantize")
def dequantize(d, name):
    i = d.pick("int32", test=lambda t: t.channels > 0)
    t = d.tensor(i)
    dims = [*t.dims[:-1], t.channels]
    if d.chance(0.2):
        scale, zero = d.quant()
        d.emit(name, [i], dims, dtype="int8", scale=scale, zero=zero)
    else:
        d.emit(name, [i], dims, step=1.0, bound=1.0)


@operator(20, "LceBconv2d")
def bconv(d, name):
    """Binary convolutions with each type of output."""
    i = d.pick("int32", rank=4, test=lambda t: t.channels > 0)
    t, r = d.tensor(i), d.r
    c = t.channels
    k, s, f, pad, size = window(d, t.dims[1], t.dims[2])
    groups = d.choice([g for g in (1, 1, 2, 3, 4) if c % g == 0 and (g == 1 or c // g % 32 == 0)])
    out = groups * int(d.choice([1, 2, 3, 4, 8, 16, 32, 33]))
    kind = d.choice(["float32"] * 4 + ["int32"] * 3 + ["int8"] * 2)
    act = int(r.integers(1, 4)) if kind != "int32" and d.chance(0.35) else 0
    one = pad == SAME and d.chance(0.5)
    if pad == SAME and (kind == "int32" or act or c // groups % 2 or too_small(t.dims, k, f)):
        # Behind zeros LCE refuses packed bits and activations and may crash with an odd number of channels; it forgets its
        # correction of zeros in small images.
        one = True
    taps = k[0] * k[1] * c // groups
    options = dict(channels_in=c, dilation_height_factor=f[0], dilation_width_factor=f[1], fused_activation_function=act,
                   pad_values=int(one), padding=pad, stride_height=s[0], stride_width=s[1])
    filters = d.constant(packed(r, (out, *k), c // groups))
    dims = [t.dims[0], *size]
    if kind == "int32":
        near = taps // 2 + r.integers(-4, 5, out)
        ends = r.choice([-(2**31), 2**31 - 1, -1, 0, taps - 1, taps], out)
        thresholds = np.where(r.random(out) < 0.15, ends, near).astype(np.int32)
        d.emit(name, [i, filters, -1, -1, d.constant(thresholds)], [*dims, words(out)], fields=options, dtype="int32", channels=out)
        return
    m, b = d.factors((out,)), d.numbers((out,), max(2.0, np.sqrt(taps) / 2))
    if d.chance(0.25):
        m = np.ones_like(m)
    if d.chance(0.25):
        b = np.zeros_like(b)
    inputs = [i, filters, d.constant(m), d.constant(b), -1]
    if kind == "int8":
        scale = d.choice([d.scales(), np.float32(0.25), np.float32(0.5), np.float32(np.sqrt(taps) / 40), np.float32(1)])
        d.emit(name, inputs, [*dims, out], fields=options, dtype="int8", scale=scale, zero=d.zero())
        return
    bound = float(limited(taps, act) * np.abs(m).max() + np.abs(b).max())
    step = min(grid_of(m), grid_of(b)) if d.exact else 0
    d.emit(name, inputs, [*dims, out], fields=options, step=step, bound=bound)


@operator(3, "LceBMaxPool2d")
def bmaxpool(d, name):
    i = d.pick("int32", rank=4, test=lambda t: t.channels > 0)
    t = d.tensor(i)
    k, s, _, pad, size = window(d, t.dims[1], t.dims[2], 2)
    size = [out_size(n, k[j], s[j], 1, pad) for j, n in enumerate(t.dims[1:3])]
    d.need(min(size) >= 1)
    options = dict(filter_height=k[0], filter_width=k[1], padding=pad, stride_height=s[0], stride_width=s[1])
    d.emit(name, [i], [t.dims[0], *size, t.dims[3]], fields=options, dtype="int32", channels=t.channels)


@operator(5, "bits")
def signs(d, name):
    """LceQuantize and LceDequantize at once: signs as numbers, with a factor behind them or none."""
    i = d.pick(test=d.signed)
    t = d.tensor(i)
    i = d.emit("LceQuantize", [i], [*t.dims[:-1], words(t.dims[-1])], dtype="int32", channels=t.dims[-1])
    i = d.emit("LceDequantize", [i], t.dims, step=1.0, bound=1.0)
    if d.chance(0.4):
        f = np.float32(d.choice([0.5, 2.0, 0.25, -1.0, 0.75] if d.exact else [0.3, 1.7, 0.013, -0.4]))
        k = d.constant(f.reshape(d.choice([(), (1,)])))
        act = d.activation()
        d.emit("MUL", [k, i] if d.chance(0.3) else [i, k], t.dims, "MulOptions", {"FusedActivationFunction": act} if act else {},
               step=grid_of(f) if d.exact else 0.0, bound=abs(float(f)))
