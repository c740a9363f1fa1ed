"""Graphs of operators that IEEE 754 defines for every number, and inputs that are no usual numbers."""

import numpy as np

import moves
import pointwise
from graphs import FLOAT, quantum

FACTORS = (0.5, 2.0, -1.0, 3.0, 0.1, 1.0, -0.25, 1024.0, 0.0)
VALUES = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1.4e-45, -1.4e-45, 1e-39, -1e-39, 1.2e-38, 3.4e38, -3.4e38, 1e30, -1e30, 1e-30,
                     1e19, -1e19, 1.0, -1.0, 2.0, -4.0, 0.25, 0.1, -3.0])


def values(g, shape):
    """An image of an input. The first ones have fewer kinds, so that not all is NaN behind them."""
    draw = g.rng.random()
    some = VALUES if draw < 0.3 else VALUES[np.isfinite(VALUES)] if draw < 0.55 else np.float32(
        [0, 0, -0.0, 1, -1, 4, -4, 0.25, 2, -2, 9]) if draw < 0.8 else np.float32([np.inf, -np.inf, np.nan, 0, 1, -2])
    usual = g.np.integers(-16, 17, shape).astype(np.float32) / 4
    return np.where(g.np.random(shape) < g.choice(0.2, 0.6, 1.0), g.np.choice(some, shape), usual)


def node(g, op, inputs, shape, **attributes):
    return g.node(op, inputs, shape, q=0, m=1.0, **attributes)


def unary(g, x):
    op = g.choice("Sqrt", "Sqrt", "Sqrt", "Reciprocal", "Reciprocal", "Abs", "Neg", "Relu", "Sign", "Exp", "Sigmoid", "Tanh", "Erf", "Softplus", "Elu")
    return node(g, op, [x], x.shape)


def with_constant(g, x):
    op = g.choice("Add", "Sub", "Mul", "Div", "Div", "Max", "Min", "Pow", "Pow")
    if op == "Pow":
        return node(g, op, [x, g.const(np.float32(g.choice(0.5, -0.5, -1.0, 2.0, 3.0, -2.0, 0.25, 1.5)))], x.shape)
    c = g.fill(pointwise.forms(g, x), lambda: g.choice(*FACTORS))
    pair = [x, g.const(c)]
    if op in ("Add", "Mul", "Max", "Min") and g.chance(0.3) or op in ("Sub", "Div") and g.chance(0.5):
        pair.reverse()
    if op == "Div" and pair[0] is x:
        g.need(not (c == 0).any())
    return node(g, op, pair, np.broadcast_shapes(x.shape, c.shape))


def together(g, x):
    fits = [v for v in g.values if v.dtype == FLOAT and v.shape == x.shape]
    pair = [x, g.rng.choice(fits)]
    g.rng.shuffle(pair)
    return node(g, g.choice("Div", "Div", "Div", "Add", "Sub", "Mul", "Max", "Min"), pair, x.shape)


def leaky(g, x):
    if g.chance(0.5):
        return node(g, "LeakyRelu", [x], x.shape, alpha=g.choice(0.5, 0.1, -1.0))
    return node(g, "PRelu", [x, g.const(g.fill(pointwise.forms(g, x), lambda: g.choice(0.5, 0.1, 2.0)))], x.shape)


def limited(g, x):
    return pointwise.clip(g, x, *g.choice((-1.0, 1.0), (0.0, 6.0), (-2.0, 3.0)))


def chosen(g, x):
    b = pointwise.compare(g, x, op=g.choice("Greater", "Less", "GreaterOrEqual", "LessOrEqual"))
    if g.chance(0.5):
        return pointwise.truth(g, b)
    other = g.rng.choice([v for v in g.values if v.dtype == FLOAT and v.shape == b.shape])
    pair = [other, g.const(np.float32(g.choice(0.0, 1.0, -2.0, -np.inf)))]
    g.rng.shuffle(pair)
    return node(g, "Where", [b] + pair, b.shape)


STEPS = [(8, unary), (6, with_constant), (5, together), (1, leaky), (2, limited), (2, chosen), (1, moves.reshape), (1, moves.transpose), (1, moves.part),
         (1, moves.concat)]


def grow(g, first):
    """One to six such operators; nothing of it is exact."""
    g.exact, g.special = False, True
    for _ in range(g.choice(1, 1, 2)):
        first(g)
    for _ in range(g.choice(1, 1, 1, 2, 3, 4, 6)):
        g.rng.choices([f for _, f in STEPS], [w for w, _ in STEPS])[0](g, g.pick(FLOAT, last=0.8))
