"""Draws a graph, and its inputs, of a seed and a number."""

import collections

import numpy as np
from onnx import helper

import attributes
import idioms
import inputs
import layers
import moves
import pointwise
import quantizers
import special
from graphs import BOOL, DOUBLE, FLOAT, HALF, PACKED, Graph, Skip, Value, prune, rng_of

# What may be drawn, and how often. The first ones are what importers are clever about.
STEPS = [
    (6, idioms.sign), (7, idioms.two_values), (8, idioms.quantizer), (12, idioms.layer), (3, idioms.through), (5, idioms.zeros),
    (2, idioms.nearest), (2, idioms.scaled_signs), (2, idioms.rows), (3, idioms.padded_mean), (6, layers.conv), (2, layers.conv_transpose), (4, layers.dense), (2, layers.product), (6, layers.pool), (5, layers.batch_norm),
    (3, layers.normalization), (3, layers.softmax), (3, layers.reduce), (1, layers.positions), (9, pointwise.arithmetic),
    (6, pointwise.together), (5, pointwise.clip), (3, pointwise.rounded), (5, pointwise.simple), (2, pointwise.leaky),
    (4, pointwise.function), (2, pointwise.root), (1, pointwise.modulo), (3, pointwise.cast), (3, pointwise.quantize), (3, quantizers.chain), (2, quantizers.weighted),
    (4, moves.reshape), (4, moves.transpose), (3, moves.part), (4, moves.concat), (2, moves.repeat), (4, moves.pad), (7, moves.resize), (2, moves.space),
]
WEIGHTS = [w for w, _ in STEPS]
DRAWN = [f for _, f in STEPS]


def shape_of(g):
    rank = g.choice(4, 4, 4, 4, 4, 4, 2, 2, 3, 3)
    if g.chance(0.05):
        rank = g.choice(1, 5)
    c = g.choice(1, 2, 3, 4, 5, 6, 8)
    if g.chance(0.03):
        c = g.choice(64, 65, 100, 130)
    size = [g.choice(1, 2, 3, 4, 5, 6, 8) if c < 64 else g.choice(1, 2, 3) for _ in range(rank - 2)]
    return ([g.batch, c] + size)[:rank]


def first(g):
    """An input, as FLOAT."""
    shape = shape_of(g) if not g.inputs or g.chance(0.2) else g.inputs[0].shape
    q, m = g.choice((1, 2.0), (2, 4.0), (0, 4.0), (3, 2.0), (0, 1.0), (4, 8.0))
    draw = g.rng.random()
    if draw < 0.05:
        x = g.input(shape, "uint8", 0, 255.0)
        return g.node("Cast", [x], shape, x, dtype=FLOAT, to=1)
    if draw < 0.07:
        dtype = g.choice(DOUBLE, HALF)
        x = g.input(shape, dtype, q, m)
        return g.node("Cast", [x], shape, x, dtype=FLOAT, to=1)
    return g.input(shape, FLOAT, q, m)


def grow_quantizers(g):
    """Quantisers, with little else, often of an opset that has all of their types."""
    if g.chance(0.5):
        g.opset = g.rng.randint(21, 25)
    x = first(g)
    if g.chance(0.5):
        x = g.choice(pointwise.arithmetic, pointwise.clip, layers.conv, layers.dense, pointwise.simple)(g, x)
    quantizers.chain(g, x)


def grow_three_values(g):
    x = first(g)
    if g.chance(0.5):
        x = g.choice(pointwise.arithmetic, layers.conv, layers.dense, layers.batch_norm)(g, x)
    x = idioms.three_values(g, x)
    if g.chance(0.3):
        g.choice(idioms.sign, layers.pool, layers.batch_norm, pointwise.simple)(g, x)


def grow_special(g):
    special.grow(g, lambda g: g.input(shape_of(g) if not g.inputs else g.inputs[0].shape, FLOAT, 0, 1.0))


def grow(g):
    """Whatever may be drawn."""
    for _ in range(g.choice(1, 1, 1, 1, 1, 1, 1, 2, 2, 3)):
        first(g)
    target = g.rng.randint(2, 15)
    for _ in range(4 * target):
        if len(g.nodes) >= target:
            break
        before = len(g.values)
        try:
            if g.values[-1].dtype == BOOL:
                (pointwise.truth if g.chance(0.7) else pointwise.logic)(g, g.values[-1])
                continue
            step = g.rng.choices(DRAWN, WEIGHTS)[0]
            step(g, g.pick(FLOAT))
        except Skip:
            # What was added of an idiom stays out of the way unless something reads it.
            if len(g.values) > before:
                g.values.append(g.values.pop(before - 1))
    if g.values[-1].dtype == BOOL and g.chance(0.8):
        pointwise.truth(g, g.values[-1])


# Kinds of graphs, and how often each is drawn.
KINDS = [(6, grow), (2, grow_quantizers), (1, grow_special)]
SHARES = [w for w, _ in KINDS]
GROWN = [f for _, f in KINDS]
SINGLE, THREE_VALUES = 0.2, 0.03  # shares of all graphs: of one operator, of layers that are taken apart


def choose_outputs(g):
    made = [v for v in g.values if v not in g.inputs and v.dtype not in PACKED]
    if not made:
        raise Skip
    g.outputs = [g.values[-1] if g.values[-1] in made else made[-1]]
    for v in made:
        if v not in g.outputs and len(g.outputs) < 4 and g.chance(0.15 if not v.used else 0.03):
            g.outputs.append(v)
    if g.chance(0.01):
        g.outputs.append(g.inputs[0])
    g.rng.shuffle(g.outputs)


class Drawn:
    """A graph as it is given to the engines: the model, inputs, and whether it is exact.

    wide are outputs whose values have more bits than the formulas that a network makes of
    few values can hold, such as {0.1, 0.2} behind a Where: these may be rounded.
    """

    def __init__(self, g, number):
        self.number, self.exact, self.special = number, g.exact, g.special
        self.model = prune(g.model()) if g.chance(0.95) else g.model()
        self.wide = {v.name for v in g.outputs if v.dtype == FLOAT and v.m * 2.0**min(v.q, 149) > 2**23}
        self.inputs = inputs.draw(g, {i.name for i in self.model.graph.input})
        self.symbolic = g.symbolic

    def operators(self):
        return collections.Counter(n.op_type for n in self.model.graph.node)


class DrawnSingle(Drawn):
    """A graph of one operator with drawn attributes."""

    def __init__(self, single, number):
        self.number, self.exact, self.special, self.wide = number, False, False, set()
        self.model, self.inputs, self.symbolic = single.model, single.fed, single.symbolic


def draw(seed, number):
    """The graph of a number. It is the same every time."""
    rng = rng_of(seed, number)
    which = rng.random()
    if which < SINGLE:
        return DrawnSingle(attributes.draw(rng), number)
    while True:
        g = Graph(rng)
        try:
            (grow_three_values if which > 1 - THREE_VALUES else g.rng.choices(GROWN, SHARES)[0])(g)
            choose_outputs(g)
            return Drawn(g, number)
        except Skip:
            continue
