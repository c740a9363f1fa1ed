"""Values that the inputs of a graph are fed with."""

import numpy as np

from .binary import packed


def values(r, t, images, exact):
    """Images for an input, each of a kind of its own."""
    return np.stack([_image(r, t, exact) for _ in range(images)])


def _image(r, t, exact):
    dims = t.dims[1:]
    if t.dtype == "int32":
        return packed(r, dims[:-1], t.channels)
    if t.dtype in ("int8", "uint8"):
        low = -128 if t.dtype == "int8" else 0
        kind = r.integers(5)
        if kind == 0:
            return np.full(dims, t.zero, t.dtype)
        if kind == 1:  # next to the zero point
            return np.clip(t.zero + r.integers(-2, 3, dims), low, low + 255).astype(t.dtype)
        if kind == 2:
            return r.choice([low, low + 255, t.zero], dims).astype(t.dtype)
        return r.integers(low, low + 256, dims).astype(t.dtype)
    if exact:
        return _grid(r, t, dims)
    kind = r.integers(8)
    if kind == 0:
        return np.zeros(dims, np.float32)
    if kind == 1:
        x = r.integers(-8, 9, dims) * 0.5  # halves and integers
    elif kind == 2:
        x = np.where(r.random(dims) < 0.6, 0, r.standard_normal(dims))
    elif kind == 3:
        x = r.standard_normal(dims) * 10.0 ** r.integers(2, 5)
    elif kind == 4:
        x = r.standard_normal(dims) * 10.0 ** -r.integers(4, 12)
    else:
        x = r.standard_normal(dims) * r.choice([0.5, 1, 4])
    return np.float32(x)


def _grid(r, t, dims):
    """Multiples of the step of a tensor, up to its bound."""
    most = int(t.bound / t.step)
    kind = r.integers(6)
    if kind == 0:
        return np.zeros(dims, np.float32)
    x = r.integers(-most, most + 1, dims)
    if kind == 1:
        x = np.where(r.random(dims) < 0.6, 0, x)
    elif kind == 2:
        x = np.clip(x, -1, 1)
    elif kind == 3:
        x = r.choice([-most, 0, most], dims)
    return np.float32(x * t.step)


def feed(r, g, exact):
    """Inputs by index: a few images, or batches of the file's size."""
    times = int(r.choice([1, 2, 3, 4]))
    return {i: values(r, g.tensors[i], times * g.tensors[i].dims[0], exact) for i in g.inputs}
