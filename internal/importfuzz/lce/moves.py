"""Operators that move values, or put others between them: of floats, 8-bit values, packed bits."""

import numpy as np

from .draw import Skip, operator, power
from .flat import Operator, Tensor

KINDS = ["float32"] * 5 + ["int8"] * 3


def picked(d, rank=None, bits=False):
    i = d.pick(d.choice(KINDS + ["int32"] * bits), rank=rank)
    return i, d.tensor(i)


@operator(6, "PAD", "PADV2", "MIRROR_PAD")
def pad(d, name):
    i = d.pick("float32" if name == "PADV2" else d.choice(KINDS))
    t = d.tensor(i)
    rank = len(t.dims)
    d.need(rank > 2 or name == "PAD")
    most = [n - 1 for n in t.dims] if name == "MIRROR_PAD" else [2] * rank
    pads = np.zeros((rank, 2), np.int32)
    for k in range(1, rank - 1):
        pads[k] = [int(d.r.integers(0, min(2, most[k]) + 1)) for _ in range(2)]
    if name != "MIRROR_PAD" and d.chance(0.2) or rank == 2:
        pads[-1] = [int(d.choice([0, 1, 3])), int(d.choice([0, 2, 4]))]
    d.need(pads.any())
    inputs, table, fields = [i, d.constant(pads)], None, {}
    dims = [n + int(p.sum()) for n, p in zip(t.dims, pads)]
    if name == "MIRROR_PAD":
        table, fields = "MirrorPadOptions", {"Mode": int(d.r.integers(0, 2))}
    fill = 0.0
    if name == "PADV2":
        fill = float(d.choice([0, 1, -1, 0.5, -2, 3]))
        inputs.append(d.constant(np.float32(fill)))
    y = d.moved(name, inputs, dims, i, table, fields)
    o = d.tensor(y)
    o.bound = max(t.bound, abs(fill))
    if d.exact and t.dtype == "float32" and t.step:
        o.step = min(t.step, 0.5 if fill % 1 else 1.0)


@operator(4, "CONCATENATION")
def concat(d, name):
    i, t = picked(d, bits=True)
    d.need(t.dtype != "int32" or t.channels)
    axis = int(d.r.integers(1, len(t.dims)))
    if d.chance(0.6):
        axis = len(t.dims) - 1

    def fits(o):
        same = len(o.dims) == len(t.dims) and all(a == b for k, (a, b) in enumerate(zip(o.dims, t.dims)) if k != axis)
        same = same and (t.dtype != "int8" or o.scale == t.scale and o.zero == t.zero)
        if t.dtype == "int32":
            same = same and o.channels > 0 and (axis != len(t.dims) - 1 or t.channels % 32 == 0) and (axis == len(t.dims) - 1 or o.channels == t.channels)
        return same
    parts = [i] + [d.pick(t.dtype, test=fits) for _ in range(int(d.choice([1, 1, 2])))]
    if d.chance(0.5):
        parts = parts[::-1]
    all_ = [d.tensor(p) for p in parts]
    dims = list(t.dims)
    dims[axis] = sum(o.dims[axis] for o in all_)
    known = dict(scale=t.scale, zero=t.zero)
    if t.dtype == "float32":
        known = dict(step=min(o.step for o in all_), bound=max(o.bound for o in all_), once=all(o.step or o.once for o in all_), zeroed=all(d.signed(o) for o in all_))
    if t.dtype == "int32":
        known = dict(channels=sum(o.channels for o in all_) if axis == len(t.dims) - 1 else t.channels)
    fields = dict(Axis=axis - len(dims) if d.chance(0.3) else axis)
    d.emit(name, parts, dims, "ConcatenationOptions", fields, t.dtype, **known)


@operator(4, "STRIDED_SLICE", "SLICE")
def slice_(d, name):
    i, t = picked(d)
    begin, end, steps = [0] * len(t.dims), list(t.dims), [1] * len(t.dims)
    for k in range(1, len(t.dims)):
        if d.chance(0.5):
            begin[k] = int(d.r.integers(0, t.dims[k]))
            end[k] = int(d.r.integers(begin[k] + 1, t.dims[k] + 1))
            steps[k] = int(d.choice([1, 1, 2, 3])) if name[0:2] == "ST" else 1
    if d.chance(0.3):
        begin, end = [0] * len(t.dims), list(t.dims)
    dims = [-(-(e - b) // s) for b, e, s in zip(begin, end, steps)]
    d.need(dims != t.dims)
    if name == "SLICE":
        size = [-1 if d.chance(0.2) and b + n == full else n for b, n, full in zip(begin, dims, t.dims)]
        d.moved(name, [i, d.ints(*begin), d.ints(*size)], dims, i, "SliceOptions")
        return
    masks, at = dict(BeginMask=0, EndMask=0), []
    for k, n in enumerate(t.dims):
        if begin[k] == 0 and d.chance(0.3):
            masks["BeginMask"] |= 1 << k
        if end[k] == n and d.chance(0.3):
            masks["EndMask"] |= 1 << k
        at.append([begin[k] - n if begin[k] and d.chance(0.2) else begin[k], end[k] - n if end[k] < n and d.chance(0.2) else end[k]])
    d.moved(name, [i, d.ints(*[a for a, _ in at]), d.ints(*[b for _, b in at]), d.ints(*steps)], dims, i, "StridedSliceOptions", masks)


@operator(3, "SPLIT", "SPLIT_V")
def split(d, name):
    i, t = picked(d)
    c = t.dims[-1]
    n = d.choice([n for n in (2, 3, 4) if n <= c] or [0])
    d.need(n and (name == "SPLIT_V" or c % n == 0))
    sizes = [c // n] * n
    if name == "SPLIT_V":
        cuts = sorted(d.r.choice(np.arange(1, c), n - 1, replace=False).tolist())
        sizes = [b - a for a, b in zip([0, *cuts], [*cuts, c])]
    outputs = []
    for s in sizes:
        o = Tensor([*t.dims[:-1], s], t.dtype, scale=t.scale, zero=t.zero)
        o.step, o.bound, o.once = t.step, t.bound, t.once
        outputs.append(d.g.add(o))
    axis = d.ints(d.choice([-1, len(t.dims) - 1]))
    d.tensor(axis).dims = [] if name == "SPLIT" and d.chance(0.5) else [1]
    if name == "SPLIT":
        d.g.operators.append(Operator(name, [axis, i], outputs, "SplitOptions", {"NumSplits": n}))
    else:
        d.tensor(axis).dims = []
        d.g.operators.append(Operator(name, [i, d.ints(*sizes), axis], outputs, "SplitVOptions", {"NumSplits": n}))
    d.values += outputs


@operator(3, "RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(d, name):
    i, t = picked(d)
    n = int(np.prod(t.dims[1:]))
    if name == "EXPAND_DIMS":
        d.need(len(t.dims) in (2, 3))
        dims = [t.dims[0], 1, *t.dims[1:]]
        d.moved(name, [i, d.ints(1)], dims, i, "ExpandDimsOptions")
    elif name == "SQUEEZE":
        d.need(len(t.dims) > 2 and 1 in t.dims[1:-1])
        at = d.choice([k for k in range(1, len(t.dims) - 1) if t.dims[k] == 1])
        dims = [x for k, x in enumerate(t.dims) if k != at]
        y = d.moved(name, [i], dims, i)
        d.g.operators[-1].table, d.g.operators[-1].fields = None, {}
        d.need(all(x != 1 for k, x in enumerate(t.dims) if k != at) and y)  # without the list in its options it takes all
    else:
        h = d.choice([k for k in (1, 2, 3, 4, 6, 8) if n % k == 0])
        dims = d.choice([[t.dims[0], n], [t.dims[0], n], [t.dims[0], 1, 1, n], [t.dims[0], h, n // h], [t.dims[0], h, 1, n // h]])
        d.need(dims != t.dims)
        d.moved(name, [i, d.ints(*dims)], dims, i, "ReshapeOptions" if d.chance(0.5) else None)


@operator(1, "TRANSPOSE")
def transpose(d, name):
    i, t = picked(d, rank=4)
    perm = d.choice([[0, 2, 1, 3], [0, 3, 1, 2], [0, 2, 3, 1], [0, 1, 3, 2]])
    real = [p for p in perm if t.dims[p] > 1]
    d.need(real == sorted(real) or d.chance(0.1))  # that moves nothing: others are refused
    d.moved(name, [i, d.ints(*perm)], [t.dims[p] for p in perm], i, "TransposeOptions")


@operator(4, "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(d, name):
    linear = name == "RESIZE_BILINEAR"
    i, t = picked(d, rank=4)
    size = [int(d.choice([1, 2, 2, 3, 4, n, 2 * n, 2 * n - 1, n // 2 + 1, 7])) for n in t.dims[1:3]]
    mode = int(d.choice([0, 1, 2]))
    fields = dict(AlignCorners=mode == 1, HalfPixelCenters=mode == 2)
    if not linear or t.dtype != "float32" or not d.exact:
        step = t.step
    else:
        # Weights must be multiples of a power of two.
        d.need(t.step > 0)
        ratio = [(a - 1) / (b - 1) if mode == 1 and b > 1 else a / b for a, b in zip(t.dims[1:3], size)]
        if not all(power(x) or x == 0 for x in ratio):
            raise Skip
        step = t.step
        for x in ratio:
            step *= min(1.0, x or 1.0) * (0.5 if mode == 2 else 1.0)
        d.need(t.bound / step <= 2.0**20)
    y = d.moved(name, [i, d.ints(*size)], [t.dims[0], *size, t.dims[3]], i, "ResizeBilinearOptions" if linear else "ResizeNearestNeighborOptions", fields)
    d.tensor(y).step = step
    if linear:
        d.tensor(y).once = d.tensor(y).zeroed = False


@operator(1, "DEPTH_TO_SPACE")
def depth_to_space(d, name):
    i, t = picked(d, rank=4)
    b = int(d.choice([2, 2, 3]))
    d.need(t.dims[3] % (b * b) == 0)
    d.moved(name, [i], [t.dims[0], t.dims[1] * b, t.dims[2] * b, t.dims[3] // b // b], i, "DepthToSpaceOptions", {"BlockSize": b})
