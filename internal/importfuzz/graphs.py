"""The builder of random ONNX graphs: values, nodes, constants, and the model they make.

In an exact graph every value is a multiple of 2^-q no larger than m, and an operator that
computes is drawn only if m * 2^q stays within the 24 bits of a float32: whatever the order
in which sums are added, there is no rounding, so any difference is a fault. Operators that
select or move values may have constants of any bits; what they give is determined, too.
"""

import math
import random

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, DOUBLE, HALF, INT64, INT32, BOOL, UINT8, INT8 = (
    "float32", "float64", "float16", "int64", "int32", "bool", "uint8", "int8")
PROTO = {FLOAT: TensorProto.FLOAT, DOUBLE: TensorProto.DOUBLE, HALF: TensorProto.FLOAT16,
         INT64: TensorProto.INT64, INT32: TensorProto.INT32, BOOL: TensorProto.BOOL,
         UINT8: TensorProto.UINT8, INT8: TensorProto.INT8, "int16": TensorProto.INT16, "uint16": TensorProto.UINT16,
         "int4": TensorProto.INT4, "uint4": TensorProto.UINT4, "int2": TensorProto.INT2, "uint2": TensorProto.UINT2}
PACKED = {name: getattr(ml_dtypes, name) for name in ("int4", "uint4", "int2", "uint2")}  # which ONNX Runtime has no arrays of
DOMAIN = "qonnx.custom_op.general"
BITS = 24  # of a float32
NARROW = 1 << 23  # a value of more steps than these has more bits than formulas of it can keep


class Skip(Exception):
    """The operator does not fit the value, the opset or the mode."""


class Value:
    """A tensor of the graph. shape has the number of images where the batch is."""

    def __init__(self, name, shape, dtype=FLOAT, q=0, m=1.0, levels=None):
        self.name, self.shape, self.dtype = name, tuple(int(d) for d in shape), dtype
        self.q, self.m = int(q), float(m)  # see above; q means nothing in a graph that is not exact
        self.levels = levels  # the few values that it has, where they are known
        self.used = 0

    @property
    def rank(self):
        return len(self.shape)


def quantum(values):
    """The least q for which all values are multiples of 2^-q."""
    q = -126
    for v in np.unique(np.abs(np.asarray(values, np.float64)).ravel()):
        if v and math.isfinite(v):
            n, d = float(v).as_integer_ratio()
            q = max(q, d.bit_length() - 1 if d > 1 else -((n & -n).bit_length() - 1))
    return q


class Graph:
    """A graph that grows. All that is drawn comes from rng, seeded by the number of the graph."""

    def __init__(self, rng):
        self.rng = rng
        self.np = np.random.Generator(np.random.PCG64(rng.getrandbits(64)))
        self.opset = rng.choice([9, 10, 11, 11, 12, 13, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 21, 21, 22, 23, 23, 24, 25, 26, 27, 28])
        self.exact = rng.random() < 0.5
        self.special = False  # inputs have infinities and the like
        self.symbolic = rng.random() < 0.75  # the batch has a name and no number
        self.batch = rng.choice([3, 4, 5, 6]) if self.symbolic else rng.choice([1, 1, 2, 3])
        self.listed = rng.random() < 0.1  # initialisers are listed as inputs, too
        self.nodes, self.constants, self.inputs, self.values, self.outputs = [], {}, [], [], []
        self.count = 0

    # Drawing.

    def chance(self, p):
        return self.rng.random() < p

    def choice(self, *options):
        return self.rng.choice(options)

    def need(self, condition):
        if not condition:
            raise Skip

    def since(self, opset):
        self.need(self.opset >= opset)

    def name(self, prefix="t"):
        self.count += 1
        return "%s%d" % (prefix, self.count)

    def dyadic(self, low=-2.0, high=2.0, bits=None):
        """A number of few bits, or, where the graph is not exact, of any."""
        if bits is None:
            bits = self.rng.choice([0, 0, 1, 1, 2, 3])
        v = math.floor(self.rng.uniform(low, high) * 2**bits + 0.5) / 2**bits
        if not self.exact and self.chance(0.5):
            v = float(np.float32(self.rng.uniform(low, high)))
            if self.chance(0.5):
                v = round(v, self.rng.choice([1, 1, 2]))
        return v

    def factors(self, shape, zero=0.05):
        """Numbers to multiply with: some negative, some 0; powers of two where exact."""
        def one():
            if self.chance(zero):
                return 0.0
            v = self.rng.choice([0.25, 0.5, 1.0, 1.0, 2.0, 0.5, 1.5, 3.0])
            if not self.exact and self.chance(0.6):
                v = self.rng.choice([0.1, 0.3, 0.7, 1.7, self.rng.uniform(0.01, 3)])
            return -v if self.chance(0.35) else v
        return self.fill(shape, one)

    def fill(self, shape, one):
        n = int(np.prod(shape, dtype=np.int64))
        if n > 64:  # fewer calls
            return self.np.choice([one() for _ in range(32)], shape).astype(np.float32)
        return np.array([one() for _ in range(n)], np.float32).reshape(shape)

    # Building.

    def input(self, shape, dtype, q, m):
        v = Value("x%d" % len(self.inputs), shape, dtype, q, m)
        self.inputs.append(v)
        self.values.append(v)
        return v

    def const(self, array, dtype=FLOAT, plain=False):
        """A constant: an initialiser, a node Constant, or ConstantOfShape. Plain ones are initialisers."""
        a = np.array(array).astype(PACKED.get(dtype, dtype))
        name = self.name("c")
        draw = self.rng.random()
        if not plain and draw < 0.1:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(a)))
        elif not plain and draw < 0.13 and a.size and a.ndim and np.all(a == a.flat[0]):
            shape = self.const(np.array(a.shape), INT64, True)
            self.nodes.append(helper.make_node("ConstantOfShape", [shape], [name],
                                               value=numpy_helper.from_array(a.flat[:1].copy())))
        else:
            self.constants[name] = a
        return name

    def node(self, op, inputs, shape, like=None, dtype=None, q=None, m=None, levels=None, domain="", outputs=None, **attributes):
        """Adds a node and returns its first value, whose bounds are those of like unless given."""
        names = [i.name if isinstance(i, Value) else i for i in inputs]
        shape = tuple(int(d) for d in shape)
        self.need(all(d > 0 for d in shape) and int(np.prod(shape, dtype=np.int64)) <= 20000)
        if like is not None:
            q, m = like.q if q is None else q, like.m if m is None else m
            dtype = dtype or like.dtype
        v = Value(self.name(), shape, dtype or FLOAT, 0 if q is None else q, 1.0 if m is None else m, levels)
        if v.dtype in (FLOAT, DOUBLE, HALF):
            self.need(v.m < 1e30)
        for i in inputs:
            if isinstance(i, Value):
                i.used += 1
        self.nodes.append(helper.make_node(op, names, outputs or [v.name], domain=domain, **attributes))
        if outputs:
            v.name = outputs[0]
        self.values.append(v)
        return v

    def computed(self, op, inputs, shape, q, m, **more):
        """A node that computes: in an exact graph without any rounding."""
        if self.exact:
            self.need(-100 < q < 100 and float(m) * 2.0**q <= 1 << BITS)
        return self.node(op, inputs, shape, q=q, m=m, **more)

    def rounding(self):
        """The operator rounds, so that it is none for exact graphs."""
        self.need(not self.exact)

    # Choosing operands.

    def pick(self, dtype=FLOAT, rank=None, like=None, last=0.7):
        found = [v for v in self.values
                 if v.dtype == dtype and (v.rank > 0 if rank is None else v.rank in rank) and (like is None or v.shape == like.shape)]
        self.need(found)
        return found[-1] if self.chance(last) else self.rng.choice(found)

    # The model.

    def model(self):
        def info(v):
            shape = list(v.shape)
            if self.symbolic and shape and shape[0] == self.batch:
                shape[0] = "N"
            return helper.make_tensor_value_info(v.name, PROTO[v.dtype], shape)

        inputs = [info(v) for v in self.inputs]
        if self.listed:
            inputs += [helper.make_tensor_value_info(n, PROTO[str(a.dtype)], a.shape) for n, a in self.constants.items()]
        graph = helper.make_graph(self.nodes, "g", inputs, [info(v) for v in self.outputs],
                                  [numpy_helper.from_array(a, n) for n, a in self.constants.items()])
        # Whoever reads operators that onnx does not know has to know how many dimensions they take.
        if any(n.domain == DOMAIN for n in self.nodes):
            graph.value_info.extend(info(v) for v in self.values if v not in self.inputs)
        domains = {n.domain for n in self.nodes} - {""}
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)] + [helper.make_opsetid(d, 1) for d in domains],
                                 ir_version=8 if self.opset < 19 else 10 if self.opset < 24 else 12)


def prune(model):
    """Takes away nodes, initialisers and inputs that no output depends on."""
    g = model.graph
    needed, keep = {o.name for o in g.output}, []
    for n in reversed(g.node):
        if needed & set(n.output):
            needed |= set(n.input)
            keep.append(n)
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for field, items in (("node", keep[::-1]), ("initializer", [i for i in g.initializer if i.name in needed]),
                         ("input", [i for i in g.input if i.name in needed])):
        made.graph.ClearField(field)
        getattr(made.graph, field).extend(items)
    return made


def rng_of(seed, number):
    return random.Random("%d/%d" % (seed, number))
