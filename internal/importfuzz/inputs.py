"""Inputs of a graph: each image of a batch is of another kind."""

import numpy as np

import special
from graphs import DOUBLE

KINDS = ("random", "random", "zeros", "halves", "integers", "ends", "equal", "thresholds", "signs", "sparse")
LARGE = ("huge", "tiny", "subnormal", "decimals")  # where results may be rounded


def thresholds(g):
    """Numbers that the graph compares with, among its constants."""
    found = [a.ravel()[:8] for a in g.constants.values() if a.dtype == np.float32 and a.size]
    values = np.concatenate(found) if found else np.zeros(1, np.float32)
    values = values[np.isfinite(values)]
    return np.concatenate([values, -values, [0]]).astype(np.float32)


def image(g, v, kind):
    """One image of an input: in an exact graph multiples of 2^-q up to m."""
    shape, r = v.shape[1:], g.np
    step = 2.0**-v.q
    n = int(v.m / step)
    if v.dtype == "uint8":
        return r.integers(0, 256, shape) if kind != "zeros" else np.zeros(shape)
    if kind == "zeros":
        return np.zeros(shape) if g.chance(0.8) else np.full(shape, -0.0)
    if kind == "halves":
        values = (r.integers(-4, 4, shape) + 0.5)
    elif kind == "integers":
        values = r.integers(-4, 5, shape)
    elif kind == "ends":
        values = np.where(r.random(shape) < 0.5, -v.m, v.m)
    elif kind == "equal":
        values = np.full(shape, r.integers(-n, n + 1) * step)
    elif kind == "thresholds":
        values = r.choice(thresholds(g), shape)
    elif kind == "signs":
        values = np.where(r.random(shape) < 0.5, -1.0, 1.0)
    elif kind == "sparse":
        values = r.integers(-n, n + 1, shape) * step * (r.random(shape) < 0.3)
    elif kind == "huge":
        values = r.normal(0, 1, shape) * 10.0 ** r.integers(3, 31)
    elif kind == "tiny":
        values = r.normal(0, 1, shape) * 10.0 ** r.integers(-37, -5)
    elif kind == "subnormal":
        values = r.integers(-3, 4, shape) * 1.4e-45
    elif kind == "decimals":
        values = np.round(r.normal(0, 1, shape), 1)
    elif g.exact:
        values = r.integers(-n, n + 1, shape) * step
    else:
        values = r.normal(0, v.m / 2, shape)
    if g.exact:
        values = np.clip(np.round(np.asarray(values, np.float64) / step) * step, -v.m, v.m)
    return values


def draw(g, names):
    made = {}
    if g.special:
        return {v.name: np.stack([special.values(g, v.shape[1:]) for _ in range(g.batch)]) for v in g.inputs if v.name in names}
    kinds = [g.rng.choice(KINDS + (() if g.exact else LARGE)) for _ in range(g.batch)]
    for v in g.inputs:
        if v.name not in names:
            continue
        held = np.float32 if v.dtype == DOUBLE else v.dtype  # a network takes float32 for DOUBLE
        with np.errstate(over="ignore"):
            stacked = np.stack([np.asarray(image(g, v, kind)) for kind in kinds])
            made[v.name] = stacked.astype(held).astype(v.dtype)
    return made
