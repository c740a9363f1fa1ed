"""Operators on constants, whose results others read, as converters leave them."""

import numpy as np

from .binary import packed
from .draw import operator, words
from .flat import Operator, Tensor
from .pointwise import TABLES, grid_of

ACTIVATIONS = {0: lambda x: x, 1: lambda x: np.maximum(x, 0), 2: lambda x: np.clip(x, -1, 1), 3: lambda x: np.clip(x, 0, 6)}
BINARY = {"ADD": np.add, "SUB": np.subtract, "MUL": np.multiply, "DIV": np.divide, "MAXIMUM": np.maximum, "MINIMUM": np.minimum}
UNARY = {"ABS": np.abs, "NEG": np.negative, "RELU": ACTIVATIONS[1], "RELU6": ACTIVATIONS[3], "RELU_N1_TO_1": ACTIVATIONS[2]}


def emit(d, name, inputs, data, table=None, fields=None):
    """Adds an operator on constants, and what it gives, which is a value of no image."""
    i = d.g.add(Tensor(data.shape, "float32"))
    d.g.operators.append(Operator(name, inputs, [i], table, fields))
    return i


def binary(d, shape):
    """A constant of a shape as the result of an operator on two."""
    name = d.choice(sorted(BINARY))
    x, y = d.numbers(d.choice([(), (1,), shape])), d.numbers(shape)
    if name == "DIV":
        x, y = d.numbers(shape), np.float32(d.choice([0.5, 2.0, 4.0]))
    if d.chance(0.5) and name != "DIV":
        x, y = y, x
    act = d.activation(0.4) if name not in ("MAXIMUM", "MINIMUM") else 0
    data = np.float32(ACTIVATIONS[act](BINARY[name](x, y)))
    return emit(d, name, [d.constant(x), d.constant(y)], data, TABLES[name], {"FusedActivationFunction": act} if act else {}), data


def unary(d, shape):
    """A constant of a shape as the result of an operator on one, or one that moves values."""
    name = d.choice([*sorted(UNARY), "RESHAPE", "TRANSPOSE", "MEAN", "LceDequantize", "DEQUANTIZE"])
    x = d.numbers(shape)
    if name in UNARY:
        table = {"ABS": "AbsOptions", "NEG": "NegOptions"}.get(name)
        data = np.float32(UNARY[name](x))
        return emit(d, name, [d.constant(x)], data, table), data
    if name == "RESHAPE":
        return emit(d, name, [d.constant(x.reshape(1, *shape, 1)), d.ints(*shape)], x), x
    if name == "TRANSPOSE":
        x = x.reshape(1, *shape)
        return emit(d, name, [d.constant(np.ascontiguousarray(x.T)), d.ints(1, 0)], x, "TransposeOptions"), x
    if name == "MEAN":
        x = d.numbers((2, *shape))
        data = np.float32(x.mean(axis=0))
        return emit(d, name, [d.constant(x), d.ints(0)], data, "ReducerOptions", {"KeepDims": False}), data
    if name == "DEQUANTIZE":
        q = d.r.integers(-128, 128, shape).astype(np.int8)
        data = np.float32(q * np.float32(0.125))
        return emit(d, name, [d.constant(q, np.float32(0.125), 0)], data, "DequantizeOptions"), data
    w = packed(d.r, (1,), shape[-1])
    d.need(w.shape == (1, words(shape[-1])))
    data = np.float32(1 - 2.0 * np.unpackbits(w.view(np.uint8), axis=-1, bitorder="little")[:, :shape[-1]])
    return emit(d, name, [d.constant(w)], data), data


@operator(3, "folded")
def folded(d, name):
    """An operator on a tensor and a constant that is computed."""
    i = d.pick(test=d.grid(64))
    t = d.tensor(i)
    before = len(d.values)
    k, data = d.choice([binary, binary, unary])(d, (t.dims[-1],))
    assert len(d.values) == before
    name = d.choice(["ADD", "SUB", "MUL", "MAXIMUM"])
    known = {}
    if d.exact:
        step, most = grid_of(data), float(np.abs(data).max())
        known = dict(step=t.step * step, bound=t.bound * most) if name == "MUL" else dict(step=min(t.step, step), bound=t.bound + most)
    inputs = [k, i] if d.chance(0.3) else [i, k]
    d.emit(name, inputs, list(np.broadcast_shapes(tuple(t.dims), data.shape)), TABLES[name], **known)
