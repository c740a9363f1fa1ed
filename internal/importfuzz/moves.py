"""Operators that move values: shapes, parts, joins, padding, sizes of images."""

import numpy as np

from graphs import FLOAT, INT64, quantum


def axes_node(g, op, x, shape, axes):
    if g.opset >= 13:
        return g.node(op, [x, g.const(axes, INT64, True)], shape, x, levels=x.levels)
    return g.node(op, [x], shape, x, levels=x.levels, axes=axes)


def reshape(g, x):
    op = g.choice("Flatten", "Reshape", "Reshape", "Reshape", "Squeeze", "Unsqueeze")
    if op == "Flatten":
        axis = g.choice(1, 1, 1, 1 - x.rank if x.rank > 1 else 1, 2, 0)
        g.need(axis <= x.rank)
        first = int(np.prod(x.shape[:axis]))
        return g.node(op, [x], (first, int(np.prod(x.shape)) // first), x, levels=x.levels, **({} if axis == 1 and g.chance(0.5) else {"axis": axis}))
    if op == "Squeeze":
        ones = [i for i, d in enumerate(x.shape) if d == 1 and i > 0]
        g.need(ones)
        some = g.rng.sample(ones, g.rng.randint(1, len(ones)))
        return axes_node(g, op, x, [d for i, d in enumerate(x.shape) if i not in some], [a - x.rank if g.chance(0.3) and g.opset >= 11 else a for a in some])
    if op == "Unsqueeze":
        g.need(0 < x.rank < 5)
        at = g.rng.randint(1, x.rank)
        return axes_node(g, op, x, x.shape[:at] + (1,) + x.shape[at:], [at - x.rank - 1 if g.chance(0.3) and g.opset >= 11 else at])
    g.need(x.rank > 1)
    rest = list(x.shape[1:])
    n = int(np.prod(rest))
    forms = [[n], [1, n], [n, 1], [n, 1, 1], [1, 1, n], rest + [1], rest[::-1]]
    if len(rest) == 3:
        c, h, w = rest
        forms += [[c, h * w], [c * h, w], [c, 1, h * w], [c, w, h]]
        forms += [[d, c // d, h, w] for d in (2, 3) if c % d == 0]
    if len(rest) == 4:
        forms += [[rest[0] * rest[1]] + rest[2:]] * 3
    if len(rest) == 2:
        forms += [[rest[0], 1, rest[1]], rest + [1]] + [[rest[0], d, rest[1] // d] for d in (2, 3, 4) if rest[1] % d == 0]
    if len(rest) == 1:
        forms += [[n, 1, 1], [1, 1, n]] + [[d, n // d] for d in (2, 3, 4) if n % d == 0] + [[d, 2, n // d // 2] for d in (2, 3) if n % (2 * d) == 0]
    new = g.rng.choice(forms)
    shape = list(new)
    if g.chance(0.3):  # 0 takes the dimension of x, -1 the rest
        for i, d in enumerate(shape):
            if i + 1 < x.rank and x.shape[i + 1] == d and g.chance(0.4):
                shape[i] = 0
    first = g.choice(0, 0, -1, x.shape[0]) if not g.symbolic else g.choice(0, 0, 0, -1)
    if first == 0 and g.chance(0.3):
        shape[g.rng.randrange(len(shape))] = -1
    return g.node(op, [x, g.const([first] + shape, INT64)], [x.shape[0]] + new, x, levels=x.levels)


def transpose(g, x):
    perm = list(range(1, x.rank))
    g.rng.shuffle(perm)
    if x.rank == 4 and g.chance(0.5):
        perm = list(g.choice((2, 3, 1), (3, 1, 2)))
    return g.node("Transpose", [x], [x.shape[0]] + [x.shape[p] for p in perm], x, levels=x.levels, perm=[0] + perm)


def part(g, x):
    """Slice, Split, Gather."""
    g.need(x.rank > 1)
    axis = g.choice(1, 1, x.rank - 1, g.rng.randrange(1, x.rank))
    n, given = x.shape[axis], axis if g.chance(0.7) else axis - x.rank
    op = g.choice("Slice", "Slice", "Split", "Gather")

    def shape(k):
        return [k if i == axis else d for i, d in enumerate(x.shape)]

    if op == "Gather":
        index = [g.rng.randrange(-n if g.opset >= 11 else 0, n) for _ in range(g.rng.randint(1, min(n + 1, 8)))]
        if g.chance(0.2):
            return g.node(op, [x, g.const(index[0], INT64)], x.shape[:axis] + x.shape[axis + 1:], x, levels=x.levels, axis=given)
        return g.node(op, [x, g.const(index, INT64)], shape(len(index)), x, levels=x.levels, axis=given)
    if op == "Split":
        from graphs import Value
        g.need(n > 1)
        k = g.rng.randint(1, n - 1)
        sizes = [k, n - k] if g.chance(0.6) or n % 2 else [n // 2] * 2
        names = [g.name() for _ in sizes]
        inputs, attributes = [x], {"axis": given}
        if len(set(sizes)) == 1 and g.chance(0.6):
            if g.opset >= 18:
                attributes["num_outputs"] = 2
        elif g.opset >= 13:
            inputs.append(g.const(sizes, INT64, True))
        else:
            attributes["split"] = sizes
        v = g.node(op, inputs, shape(sizes[0]), x, levels=x.levels, outputs=names, **attributes)
        g.values.append(Value(names[1], shape(sizes[1]), x.dtype, x.q, x.m, x.levels))
        return v
    step = g.choice(1, 1, 1, 2, 3, -1, -2) if g.opset >= 10 else 1
    picked = list(range(n))
    a, b = g.rng.randrange(n), g.rng.randrange(n)
    a, b = min(a, b), max(a, b) + 1
    start, end = (a, b) if step > 0 else (b - 1, a - 1)
    if step < 0 and end < 0:
        end = -n - 1
    if g.chance(0.2):
        start = start - n
    if step > 0 and b == n and g.chance(0.3):
        end = g.choice(2**31 - 1, 2**63 - 1, 1000)
    count = len(picked[slice(start, end if end > -n - 1 else None, step)])
    if g.opset < 10:
        return g.node(op, [x], shape(count), x, levels=x.levels, starts=[start], ends=[end], axes=[axis])
    inputs = [x, g.const([start], INT64), g.const([end], INT64), g.const([given], INT64)]
    if step != 1 or g.chance(0.3):
        inputs.append(g.const([step], INT64))
    return g.node(op, inputs, shape(count), x, levels=x.levels)


def concat(g, x):
    g.need(x.rank > 1)
    axis = g.choice(1, 1, 1, x.rank - 1, g.rng.randrange(1, x.rank))
    fits = [v for v in g.values if v.dtype == x.dtype and v.rank == x.rank and
            all(a == b for i, (a, b) in enumerate(zip(x.shape, v.shape)) if i != axis)]
    parts = [x] + [g.rng.choice(fits) for _ in range(g.choice(1, 1, 2))]
    g.rng.shuffle(parts)
    if x.shape[0] == 1 and not g.symbolic and g.chance(0.1):  # a constant
        c = g.fill(x.shape, lambda: g.dyadic())
        return g.node("Concat", [x, g.const(c)], [2 * d if i == axis else d for i, d in enumerate(x.shape)], x,
                      q=max(x.q, quantum(c)), m=max(x.m, float(np.abs(c).max())), axis=axis)
    shape = [sum(p.shape[axis] for p in parts) if i == axis else d for i, d in enumerate(x.shape)]
    levels = sorted({v for p in parts for v in p.levels}) if all(p.levels for p in parts) else None
    return g.node("Concat", parts, shape, x, q=max(p.q for p in parts), m=max(p.m for p in parts),
                  levels=tuple(levels) if levels and len(levels) < 9 else None, axis=g.choice(axis, axis, axis - x.rank))


def repeat(g, x):
    if g.chance(0.5):
        times = [1] + [g.choice(1, 1, 2, 3) for _ in x.shape[1:]]
        return g.node("Tile", [x, g.const(times, INT64)], [a * b for a, b in zip(x.shape, times)], x, levels=x.levels)
    ones = [i for i, d in enumerate(x.shape) if d == 1 and i > 0]
    g.need(ones)
    shape = list(x.shape)
    for i in ones:
        if g.chance(0.7):
            shape[i] = g.choice(2, 3, 4)
    return g.node("Expand", [x, g.const([1] + [d if i in ones or g.chance(0.5) else 1 for i, d in enumerate(shape)][1:], INT64)], shape, x, levels=x.levels)


def pad(g, x, value=None, ahead=None):
    """Pad of every mode; value, and only ahead of windows, where a layer asks for it."""
    g.need(x.rank in (2, 3, 4))
    mode = g.choice("constant", "constant", "constant", "reflect", "edge", "wrap") if value is None else "constant"
    g.need(mode != "wrap" or g.opset >= 19)
    value = value if value is not None else g.choice(0.0, 0.0, 1.0, -1.0, 0.5, 2.0)
    rank = x.rank
    pads = [0] * (2 * rank)
    for i in range(1 if g.chance(0.15) and not ahead else min(2, rank - 1), rank):
        for k in (i, i + rank):
            pads[k] = g.choice(0, 1, 1, 2, 1) if g.chance(0.85) else -1
    if ahead:
        pads = [max(0, p) for p in pads]
    shape = [d + a + b for d, a, b in zip(x.shape, pads, pads[rank:])]
    if mode != "constant":
        g.need(all(p < d for p, d in zip(pads, x.shape * 2)))
    m = max(x.m, abs(value)) if mode == "constant" else x.m
    q = max(x.q, quantum(np.float32(value)))
    levels = x.levels if mode != "constant" or x.levels and value in x.levels else None
    attributes = {} if mode == "constant" and g.chance(0.5) else {"mode": mode}
    if g.opset < 11:
        if mode == "constant" and (value or g.chance(0.3)):
            attributes["value"] = value
        return g.node("Pad", [x], shape, x, q=q, m=m, levels=levels, pads=pads, **attributes)
    inputs = [x]
    if g.opset >= 18 and g.chance(0.3):
        axes = [i for i in range(rank) if pads[i] or pads[i + rank]] or [rank - 1]
        given = [a - rank if g.chance(0.3) else a for a in axes]
        inputs += [g.const([pads[a] for a in axes] + [pads[a + rank] for a in axes], INT64),
                   g.const(np.float32(value)), g.const(given, INT64)]
    else:
        inputs.append(g.const(pads, INT64))
        if mode == "constant" and (value or g.chance(0.4)):
            inputs.append(g.const(np.float32(value)))
    return g.node("Pad", inputs, shape, x, q=q, m=m, levels=levels, **attributes)


def resize(g, x):
    """Resize of every mode; Upsample before opset 10."""
    g.need(x.rank in (3, 4))
    if g.opset == 9:
        mode, scales = g.choice("nearest", "linear"), [1.0, 1.0] + [float(g.choice(1, 2, 3)) for _ in x.shape[2:]]
        if mode == "linear":
            g.rounding()
        shape = [int(d * s) for d, s in zip(x.shape, scales)]
        return g.node("Upsample", [x, g.const(scales, FLOAT, True)], shape, x, mode=mode)
    mode = g.choice("nearest", "nearest", "linear", "linear", "cubic") if g.opset >= 11 else g.choice("nearest", "linear")
    if mode != "nearest":
        g.rounding()
    attributes = {"mode": mode}
    if g.opset >= 11:
        transformation = g.choice("half_pixel", "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric")
        g.need(transformation != "half_pixel_symmetric" or g.opset >= 19)
        if transformation != "half_pixel" or g.chance(0.5):
            attributes["coordinate_transformation_mode"] = transformation
        if mode == "nearest":
            attributes["nearest_mode"] = g.choice("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
        if mode == "cubic" and g.chance(0.4):
            attributes["cubic_coeff_a"] = g.choice(-0.5, -0.75)
        if mode == "cubic" and g.chance(0.3) or g.opset >= 18 and mode == "linear" and g.chance(0.15):
            attributes["exclude_outside"] = g.choice(0, 1)
        if g.opset >= 18 and mode != "nearest" and g.chance(0.5):
            attributes["antialias"] = 1
    scales = [1.0, 1.0] + [g.choice(1.0, 2.0, 2.0, 3.0, 0.5, 1.5, 0.75) for _ in x.shape[2:]]
    sizes = [int(d * s) for d, s in zip(x.shape, scales)]
    by_sizes = g.opset >= 11 and g.chance(0.5)
    if by_sizes:
        sizes = list(x.shape[:2]) + [g.choice(d, d, 2 * d, d + 1, max(1, d - 1), 3, 1) for d in x.shape[2:]]
    axes = None
    if g.opset >= 18 and g.chance(0.35 if x.rank == 4 else 0.6):
        changed = [i for i in range(x.rank) if sizes[i] != x.shape[i] or i > 1 and g.chance(0.5)] or [x.rank - 1]
        axes = attributes["axes"] = [a - x.rank if g.chance(0.3) else a for a in changed]
        g.rng.shuffle(axes)
    chosen = [a % x.rank for a in axes] if axes else range(x.rank)
    if by_sizes and not axes:
        g.need(not g.symbolic)
    inputs = [x]
    if g.opset >= 11:
        inputs.append("" if g.opset >= 13 else g.const(np.zeros(0), FLOAT, True))
    if by_sizes:
        empty = "" if g.opset >= 13 else g.const(np.zeros(0), FLOAT, True)
        inputs += [empty, g.const([sizes[a] for a in chosen], INT64, True)]
    else:
        inputs.append(g.const([scales[a] for a in chosen], FLOAT, True))
    return g.node("Resize", inputs, sizes, x, m=x.m if mode != "cubic" else 2 * x.m, levels=x.levels if mode == "nearest" else None, **attributes)


def space(g, x):
    g.need(x.rank == 4)
    b = g.choice(2, 2, 3)
    n, c, h, w = x.shape
    if g.chance(0.5):
        g.need(h % b == 0 and w % b == 0)
        return g.node("SpaceToDepth", [x], (n, c * b * b, h // b, w // b), x, levels=x.levels, blocksize=b)
    g.need(c % (b * b) == 0)
    attributes = {"mode": g.choice("DCR", "CRD")} if g.opset >= 11 and g.chance(0.7) else {}
    return g.node("DepthToSpace", [x], (n, c // b // b, h * b, w * b), x, levels=x.levels, blocksize=b, **attributes)
