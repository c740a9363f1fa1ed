"""Layers: weights of every kind, convolutions, dense layers, pools, normalisations."""

import numpy as np

from graphs import FLOAT, INT64, quantum


def weights(g, shape, filter_axis=0):
    """Weights of one of the kinds that the importers tell apart, an α per filter."""
    kind = g.choice("signs", "signs", "signs", "alpha", "alpha", "nearly", "ternary", "integers", "two", "bases", "real", "real", "zero alpha", "same")
    s = np.where(g.np.random(shape) < 0.5, np.float32(-1), np.float32(1))
    per = tuple(shape[filter_axis] if i == filter_axis else 1 for i in range(len(shape)))
    alpha = np.abs(g.factors(per, 0))
    if kind == "alpha":
        s = s * alpha
    elif kind == "zero alpha":
        s = s * alpha * (g.np.random(per) < 0.6)
    elif kind == "nearly":  # sums such as w + (sign(w) - w) leave roundings
        s = s * alpha
        if not g.exact:
            s = s * (1 + g.np.uniform(-1, 1, shape) * g.choice(1e-7, 3e-7, 1e-5, 1e-3))
    elif kind == "ternary":
        s = s * (g.np.random(shape) < 0.6) * alpha
    elif kind == "integers":
        top = g.choice(1, 3, 7)
        s = g.np.integers(-top - 1, top + 1, shape) * alpha
    elif kind == "two":
        a, b = g.choice((0, 1), (0, 0.5), (1, 2), (-0.5, 1), (0.25, 0.75))
        s = np.where(s > 0, a, b)
    elif kind == "bases":
        s = s * alpha + np.where(g.np.random(shape) < 0.5, -1, 1) * g.choice(0.5, 0.25, 2.0) * alpha
    elif kind == "real":
        s = g.np.integers(-8, 9, shape) / 4 if g.exact else g.np.normal(0, 1, shape)
    elif kind == "same":
        s = np.full(shape, g.choice(1.0, -1.0, 0.5))
    return np.ascontiguousarray(s, np.float32)


def bias_of(g, n):
    return g.fill((n,), lambda: g.dyadic(-2, 2))


def spatial(x):
    return x.shape[2:]


def windows(g, x, transposed=False, most=2):
    """Attributes of windows, and the size of what they give; None where a size is not positive."""
    dims = spatial(x)
    g.need(1 <= len(dims) <= most)
    kernel = [g.choice(1, 1, 2, 3, 3, 3, 4, d) for d in dims]
    if g.chance(0.6):
        kernel = [kernel[0]] * len(dims)
    strides = [g.choice(1, 1, 1, 2, 2, 3) for _ in dims] if g.chance(0.5) else [1] * len(dims)
    dilations = [g.choice(1, 1, 2, 3) for _ in dims] if g.chance(0.2) else [1] * len(dims)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = [0] * (2 * len(dims))
    if g.chance(0.55):
        pads = [k // 2 for k in reach] * 2
        if g.chance(0.3):
            pads = [g.rng.randrange(0, max(1, k)) for k in reach * 2]
    attributes = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    if g.chance(0.12) and not transposed:
        del attributes["pads"]
        mode = attributes["auto_pad"] = g.choice("SAME_UPPER", "SAME_LOWER", "VALID")
        if mode == "VALID":
            pads = [0] * len(pads)
        else:
            g.need(all(d == 1 for d in dilations))
            total = [max(0, (-(-d // s) - 1) * s + r - d) for d, s, r in zip(dims, strides, reach)]
            pads = [t // 2 for t in total] + [t - t // 2 for t in total]
            if mode == "SAME_LOWER":
                pads = pads[len(dims):] + pads[:len(dims)]
    size = [d + a + b - r for d, a, b, r in zip(dims, pads, pads[len(dims):], reach)]
    g.need(all(s >= 0 for s in size))
    for key in ("strides", "dilations", "pads"):  # defaults may be left out
        value = attributes.get(key)
        if value is not None and len(set(value)) == 1 and value[0] == (0 if key == "pads" else 1) and g.chance(0.5):
            del attributes[key]
    return attributes, [s // t + 1 for s, t in zip(size, strides)], pads


def conv(g, x):
    g.need(x.rank in (3, 4))
    c = x.shape[1]
    groups = g.rng.choice([d for d in range(1, c + 1) if c % d == 0]) if g.chance(0.3) else 1
    out = groups * g.choice(1, 1, 2, 3, 4) if groups > 1 else g.choice(1, 2, 3, 4, 5, 8)
    if g.chance(0.03):
        out = groups * g.choice(65, 70)
    attributes, size, _ = windows(g, x)
    kernel = attributes["kernel_shape"]
    w = weights(g, [out, c // groups] + kernel)
    inputs = [x, g.const(w)]
    m, q = float(np.abs(w).reshape(out, -1).sum(1).max()) * x.m, x.q + quantum(w)
    if g.chance(0.3):
        b = bias_of(g, out)
        inputs.append(g.const(b))
        m, q = m + float(np.abs(b).max()), max(q, quantum(b))
    if groups > 1:
        attributes["group"] = groups
    if g.chance(0.3):
        del attributes["kernel_shape"]
    return g.computed("Conv", inputs, [x.shape[0], out] + size, q, m, **attributes)


def conv_transpose(g, x):
    g.need(x.rank in (3, 4))
    c = x.shape[1]
    groups = g.rng.choice([d for d in range(1, c + 1) if c % d == 0]) if g.chance(0.25) else 1
    per = g.choice(1, 2, 3)
    dims = spatial(x)
    kernel = [g.choice(1, 2, 3, 4) for _ in dims]
    strides = [g.choice(1, 2, 2, 3) for _ in dims]
    dilations = [g.choice(1, 1, 1, 2) for _ in dims]
    pads = [g.rng.randrange(0, k) if g.chance(0.4) else 0 for k in kernel * 2]
    extra = [g.rng.randrange(0, s) if g.chance(0.3) else 0 for s in strides]
    size = [(d - 1) * s + e + (k - 1) * l + 1 - a - b for d, s, e, k, l, a, b in
            zip(dims, strides, extra, kernel, dilations, pads, pads[len(dims):])]
    g.need(all(0 < s < 30 for s in size))
    w = weights(g, [c, per] + kernel, 1)
    inputs = [x, g.const(w)]
    m, q = float(np.abs(w).sum((0,) + tuple(range(2, w.ndim))).max()) * x.m, x.q + quantum(w)
    if g.chance(0.3):
        b = bias_of(g, per * groups)
        inputs.append(g.const(b))
        m, q = m + float(np.abs(b).max()), max(q, quantum(b))
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations, "group": groups}
    if any(extra):
        attributes["output_padding"] = extra
    return g.computed("ConvTranspose", inputs, [x.shape[0], per * groups] + size, q, m, **attributes)


def dense(g, x):
    """Gemm of a matrix, or MatMul behind anything."""
    g.need(x.rank > 1)
    if x.rank != 2 and g.chance(0.4):
        n = int(np.prod(x.shape[1:]))
        x = g.node("Flatten", [x], (x.shape[0], n), x, levels=x.levels, **({"axis": 1} if g.chance(0.5) else {}))
    g.need(x.rank in (2, 3, 4))
    n, out = x.shape[-1], g.choice(1, 2, 3, 5, 8)
    if x.rank == 2 and g.chance(0.6):
        transposed = g.chance(0.6)
        w = weights(g, [out, n] if transposed else [n, out], 0 if transposed else 1)
        alpha, beta = (float(g.factors((), 0)) if g.chance(0.15) else 1.0 for _ in range(2))
        inputs = [x, g.const(w)]
        m, q = float(np.abs(w).sum(1 if transposed else 0).max()) * x.m * abs(alpha), x.q + quantum(w) + max(0, quantum(np.float32(alpha)))
        if g.chance(0.6):
            b = bias_of(g, out)
            b = b if g.chance(0.7) else b[:1] if g.chance(0.5) else b.reshape(1, -1)
            inputs.append(g.const(b))
            m, q = m + float(np.abs(b).max()) * abs(beta), max(q, quantum(b * np.float32(beta)))
        elif g.opset < 11:
            inputs.append(g.const(np.zeros(out)))
        attributes = {"transB": 1} if transposed else {}
        for key, v in (("alpha", alpha), ("beta", beta)):
            if v != 1:
                attributes[key] = v
        return g.computed("Gemm", inputs, (x.shape[0], out), q, m, **attributes)
    w = weights(g, [n, out], 1)
    if g.chance(0.15):  # the constant on the left
        g.need(x.rank > 2)
        w = weights(g, [out, x.shape[-2]])
        return g.computed("MatMul", [g.const(w), x], x.shape[:-2] + (out, n), x.q + quantum(w), float(np.abs(w).sum(1).max()) * x.m)
    if g.chance(0.1) and x.rank < 5 and g.opset >= 12:
        letters = "nabc"[:x.rank]
        return g.computed("Einsum", [x, g.const(w)], x.shape[:-1] + (out,), x.q + quantum(w), float(np.abs(w).sum(0).max()) * x.m,
                          equation="%s,%sk->%sk" % (letters, letters[-1], letters[:-1]))
    return g.computed("MatMul", [x, g.const(w)], x.shape[:-1] + (out,), x.q + quantum(w), float(np.abs(w).sum(0).max()) * x.m)


def product(g, x):
    """MatMul or Einsum of two computed matrices, as attention has it."""
    g.need(x.rank in (3, 4))
    others = [v for v in g.values if v.dtype == FLOAT and v.rank == x.rank and v.shape[:-2] == x.shape[:-2]]
    y = g.rng.choice(others)
    g.need(x.shape[-1] in y.shape[-2:])
    n = x.shape[-1]
    turned = y.shape[-2] != n or y.shape[-1] == n and g.chance(0.5)
    out = y.shape[-2] if turned else y.shape[-1]
    shape, q, m = x.shape[:-1] + (out,), x.q + y.q, x.m * y.m * n
    if g.opset >= 12 and g.chance(0.3):
        first = "nhij" if x.rank == 4 else "nij"
        second = first[:-2] + ("kj" if turned else "jk")
        return g.computed("Einsum", [x, y], shape, q, m, equation="%s,%s->%sk" % (first, second, first[:-1]))
    if turned:
        perm = list(range(x.rank - 2)) + [x.rank - 1, x.rank - 2]
        y = g.node("Transpose", [y], y.shape[:-2] + (y.shape[-1], y.shape[-2]), y, levels=y.levels, perm=perm)
    return g.computed("MatMul", [x, y], shape, q, m)


def pool(g, x):
    g.need(x.rank in (3, 4, 5))
    kind = g.choice("MaxPool", "MaxPool", "MaxPool", "AveragePool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool")
    if kind.startswith("Global"):
        if kind == "GlobalAveragePool":
            return mean(g, kind, [x], x.shape[:2] + (1,) * (x.rank - 2), x, int(np.prod(spatial(x))))
        return g.node(kind, [x], x.shape[:2] + (1,) * (x.rank - 2), x, levels=x.levels)
    if kind == "LpPool":
        g.need(g.chance(0.2))
    attributes, size, pads = windows(g, x, most=3)
    dilations, strides = attributes.get("dilations"), attributes.get("strides", [1, 1, 1])
    kernel = attributes["kernel_shape"]
    g.need(all(p < k for p, k in zip(pads, kernel * 2)))
    if kind != "MaxPool" and g.opset < 19 or kind == "MaxPool" and g.opset < 10:
        g.need(not dilations or set(dilations) == {1})
        attributes.pop("dilations", None)
    if g.opset >= 10 and g.chance(0.2) and "auto_pad" not in attributes and kind != "LpPool":
        attributes["ceil_mode"] = 1
        full = []
        for i, d in enumerate(spatial(x)):
            reach = (kernel[i] - 1) * (dilations or [1, 1, 1])[i] + 1
            n = -(-(d + pads[i] + pads[i + x.rank - 2] - reach) // strides[i]) + 1
            full.append(n - 1 if (n - 1) * strides[i] >= d + pads[i] else n)
        size = full
    shape = list(x.shape[:2]) + size
    if kind == "MaxPool":
        return g.node(kind, [x], shape, x, levels=x.levels, **attributes)
    if kind == "LpPool":
        g.rounding()
        return g.node(kind, [x], shape, x, m=x.m * 16, p=g.choice(1, 2), **attributes)
    if g.chance(0.5):
        attributes["count_include_pad"] = g.choice(0, 1)
    same = attributes.get("count_include_pad") or not any(pads)
    return mean(g, kind, [x], shape, x, int(np.prod(kernel)), same and not attributes.get("ceil_mode"), **attributes)


def mean(g, op, inputs, shape, x, count, same=True, **attributes):
    """A mean of count values: exact if that is always the number, and a power of two."""
    if g.exact:
        g.need(same and count & (count - 1) == 0 and x.m * count * 2.0**x.q <= 1 << 24)
    return g.node(op, inputs, shape, x, q=x.q + count.bit_length() - 1, **attributes)


def batch_norm(g, x):
    g.need(x.rank >= 2)
    c = x.shape[1]
    gamma, beta, mu = g.factors((c,), 0.1), bias_of(g, c), bias_of(g, c)
    if g.exact:
        epsilon = g.choice(2.0**-10, 2.0**-17)
        whole = g.fill((c,), lambda: g.choice(0.25, 1.0, 4.0))
        variance = whole - np.float32(epsilon)
        factor = gamma / np.sqrt(whole)
        q = max(x.q, quantum(mu)) + max(0, quantum(factor))
        q = max(q, quantum(beta))
    else:
        epsilon = g.choice(1e-5, 1e-3, 1e-5, 0.1)
        variance = np.abs(g.np.normal(1, 0.7, c)).astype(np.float32)
        factor, q = gamma / np.sqrt(variance + epsilon), 0
    m = float(np.max((x.m + np.abs(mu)) * np.abs(factor) + np.abs(beta)))
    return g.computed("BatchNormalization", [x] + [g.const(a) for a in (gamma, beta, mu, variance)], x.shape, q, m, epsilon=epsilon)


def normalization(g, x):
    g.rounding()
    op = g.choice("InstanceNormalization", "LayerNormalization", "LRN", "MeanVarianceNormalization", "LpNormalization", "GroupNormalization")
    if op == "LayerNormalization":
        g.since(17)
        axis = g.choice(-1, -1, 1, x.rank - 1, -2)
        g.need(-x.rank < axis < x.rank and axis % x.rank > 0)
        shape = x.shape[axis % x.rank:]
        inputs = [x, g.const(g.factors(shape))]
        if g.chance(0.6):
            inputs.append(g.const(g.fill(shape, lambda: g.dyadic())))
        return g.node(op, inputs, x.shape, x, m=40.0, axis=axis, epsilon=g.choice(1e-5, 1e-2))
    if op == "MeanVarianceNormalization":
        axes = {"axes": g.choice([0, 2, 3], [2, 3], [1, 2, 3], [1])} if g.chance(0.7) else {}
        g.need(x.rank == 4)
        return g.node(op, [x], x.shape, x, m=10.0, **axes)
    if op == "LpNormalization":
        axis = g.rng.randrange(-x.rank + 1, x.rank)
        return g.node(op, [x], x.shape, x, m=1.0, axis=axis, p=g.choice(1, 2))
    g.need(x.rank in (3, 4))
    if op == "InstanceNormalization":
        c = x.shape[1]
        return g.node(op, [x, g.const(g.factors((c,))), g.const(bias_of(g, c))], x.shape, x, m=40.0, epsilon=g.choice(1e-5, 1e-2))
    if op == "GroupNormalization":
        g.since(21)
        c = x.shape[1]
        groups = g.rng.choice([d for d in range(1, c + 1) if c % d == 0])
        return g.node(op, [x, g.const(g.factors((c,))), g.const(bias_of(g, c))], x.shape, x, m=40.0, num_groups=groups)
    return g.node(op, [x], x.shape, x, m=2 * x.m, size=g.choice(1, 3, 5, 2), alpha=g.choice(1e-4, 0.5, 1.0), beta=g.choice(0.75, 0.5, 1.0), bias=g.choice(1.0, 2.0))


def softmax(g, x):
    """Every axis; until opset 12 it means something else."""
    g.rounding()
    attributes = {"axis": g.rng.randrange(-x.rank, x.rank)} if g.chance(0.75) else {}
    op = g.choice("Softmax", "Softmax", "LogSoftmax", "Hardmax")
    if op == "Hardmax":
        g.need(g.chance(0.2))
    if op == "LogSoftmax":
        return g.node(op, [x], x.shape, x, m=2 * x.m + 10, **attributes)
    return g.node(op, [x], x.shape, x, m=1.0, **attributes)


def reduce(g, x):
    """Reductions over any axes, of any version."""
    op = g.choice("ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceSum", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceProd", "ReduceLogSumExp")
    if op in ("ReduceProd", "ReduceLogSumExp"):
        g.need(g.chance(0.2))
    axes = g.choice([1], [2, 3], [2], [x.rank - 1], list(range(1, x.rank)), [2, 3], sorted(g.rng.sample(range(1, x.rank), g.rng.randint(1, x.rank - 1))) if x.rank > 1 else [0])
    g.need(axes and all(a < x.rank for a in axes))
    keep = g.chance(0.6)
    given = [a - x.rank if g.chance(0.3) else a for a in axes]
    inputs, attributes = [x], {} if keep and g.chance(0.5) else {"keepdims": int(keep)}
    if g.opset >= (13 if op == "ReduceSum" else 18):
        inputs.append(g.const(given, INT64, True))
    else:
        attributes["axes"] = given
    count = int(np.prod([x.shape[a] for a in axes]))
    shape = [1 if i in axes else d for i, d in enumerate(x.shape) if keep or i not in axes]
    if op in ("ReduceMax", "ReduceMin"):
        return g.node(op, inputs, shape, x, levels=x.levels, **attributes)
    if op == "ReduceMean":
        return mean(g, op, inputs, shape, x, count, **attributes)
    if op in ("ReduceSum", "ReduceL1"):
        return g.computed(op, inputs, shape, x.q, x.m * count, **attributes)
    if op == "ReduceSumSquare":
        return g.computed(op, inputs, shape, 2 * x.q, x.m**2 * count, **attributes)
    g.rounding()
    if op == "ReduceProd":
        g.need(count * np.log2(max(1.0, x.m)) < 127)
        return g.node(op, inputs, shape, x, m=max(1.0, x.m) ** count, **attributes)
    return g.node(op, inputs, shape, x, m=x.m**2 * count + 10, **attributes)


def positions(g, x):
    """Numbers of places: ArgMax, TopK."""
    axis = g.choice(1, 1, x.rank - 1, -1, 2)
    g.need(-x.rank <= axis < x.rank and axis % x.rank > 0)
    n = x.shape[axis]
    if g.chance(0.5):
        keep = g.chance(0.5)
        shape = [1 if i == axis % x.rank else d for i, d in enumerate(x.shape) if keep or i != axis % x.rank]
        y = g.node(g.choice("ArgMax", "ArgMin"), [x], shape, dtype=INT64, q=0, m=float(n), axis=axis, keepdims=int(keep))
        return g.node("Cast", [y], shape, dtype=FLOAT, q=0, m=float(n), to=1) if g.chance(0.6) else y
    g.since(10)
    k = g.rng.randint(1, n)
    shape = [k if i == axis % x.rank else d for i, d in enumerate(x.shape)]
    attributes = {"largest": g.choice(1, 1, 0)} if g.opset >= 11 and g.chance(0.5) else {}
    values, indices = g.name(), g.name()
    v = g.node("TopK", [x, g.const([k], INT64, True)], shape, x, levels=x.levels, outputs=[values, indices], axis=axis, **attributes)
    if g.chance(0.4):
        from graphs import Value
        g.values.append(Value(indices, shape, INT64, 0, float(n)))
    return v
