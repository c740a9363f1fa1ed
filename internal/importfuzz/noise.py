"""Tells rounding from a fault: what could come out if every operator rounded a little otherwise?

The graph is run by ONNX Runtime some times with noise behind each operator that computes:
NOISE times the sum of the absolute values of the terms, so that a sum of zeros stays 0
and what is exact by nature (selections, moves, comparisons, roundings) stays that. A sign
of a sum that is 0 but for roundings takes both values; a sign of three zeros has one.

In some runs all or some of the sums that are 0 but for the noise are 0, and what is equal
but for the noise is equal, which noise alone would never do.
"""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from graphs import PACKED, PROTO
from qonnx import written_out

NOISE = 2.0**-20  # of the sum of the terms: 16 units in the last place of float32
RUNS = 24
MANY = 400  # before something is called a fault: of many values one may not have flipped
SNAP = "|snap"  # ends the name of an input

# The terms of these are what the operator gives for absolute values.
SUMS = {"Conv", "ConvTranspose", "Gemm", "MatMul", "Einsum", "Add", "Sub", "Sum", "Mean", "AveragePool", "GlobalAveragePool",
        "ReduceSum", "ReduceMean", "Resize", "Upsample", "BatchNormalization"}
# These are as exact as their inputs: noise in front of them, and behind them.
FRONT = {"InstanceNormalization", "LayerNormalization", "GroupNormalization", "MeanVarianceNormalization", "LpNormalization", "LRN",
         "Softmax", "LogSoftmax", "QuantizeLinear", "ReduceLogSumExp", "ReduceLogSum", "ReduceL2", "Mod", "RMSNormalization", "GlobalLpPool"}
# Functions that are small differences of large numbers: noise of their input as well.
LIKE_INPUT = {"Gelu", "Mish", "Elu", "Selu", "Celu", "HardSwish", "Swish", "Erf", "Tanh", "Softsign", "LogSoftmax", "Log", "HardSigmoid",
              "Sigmoid", "Softplus", "Shrink"}
RELATIVE = {"Mul", "Div", "Exp", "Sqrt", "Reciprocal", "Pow", "LeakyRelu", "PRelu", "DequantizeLinear", "ReduceL1", "ReduceSumSquare",
            "ReduceProd", "LpPool"} | LIKE_INPUT | FRONT
SQUARES = {"LpPool", "ReduceSumSquare", "Pow", "Mul"}  # which may overflow within
FROM_ONE = {"Elu", "Selu", "Celu"}  # which lose what 1 rounds away
ALL_POSITIVE = {"Gemm": ("alpha", "beta")}


def options():
    o = onnxruntime.SessionOptions()
    o.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    o.log_severity_level = 4
    return o


OPTIONS = options()


def session(model):
    data = model if isinstance(model, bytes) else model.SerializeToString()
    return onnxruntime.InferenceSession(data, OPTIONS, providers=["CPUExecutionProvider"])


def packed(model):
    """The names of tensors of less than a byte, of which there are no arrays."""
    small = {PROTO[t] for t in PACKED}
    found = {i.name for i in model.graph.initializer if i.data_type in small}
    for n in model.graph.node:
        to = next((a.i for a in n.attribute if a.name in ("output_dtype", "to")), 0)
        if to in small or not to and n.op_type not in ("DequantizeLinear", "Cast") and found & set(n.input):
            found.update(n.output)
    return found


def every(model, inputs):
    """The values of all tensors that nodes compute, by name."""
    m = onnx.ModelProto()
    m.CopyFrom(written_out(model))
    # Outputs keep their shapes, which ONNX Runtime may infer otherwise than it computes them.
    outputs = [o.name for o in m.graph.output]
    outputs = {"", *outputs, *packed(m)}
    m.graph.output.extend(onnx.ValueInfoProto(name=o) for n in m.graph.node for o in n.output if o not in outputs)
    return dict(zip([o.name for o in m.graph.output], session(m).run(None, inputs)))


def constants_of(model):
    return {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}


class Noisy:
    """The graph with noise as further inputs."""

    def __init__(self, model, inputs, values, scale):
        self.inputs, self.scale = inputs, scale
        self.types = {k: v for k, v in values.items()} | dict(inputs)
        self.constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
        self.constants.update({n.output[0]: values[n.output[0]] for n in model.graph.node if n.op_type == "Constant"})
        self.types.update(self.constants)
        m = onnx.ModelProto()
        m.CopyFrom(model)
        self.shapes, self.nodes, self.absolute = {}, [], {}
        for node in model.graph.node:
            self._node(node)
        m.graph.ClearField("node")
        m.graph.node.extend(self.nodes)
        for name, shape in self.shapes.items():
            # Sizes are open: what ONNX Runtime infers for an average with ceil_mode is not what it gives.
            m.graph.input.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * len(shape)))
        self.session = session(m)

    def _add(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def _abs(self, name):
        if name not in self.absolute:
            self.absolute[name] = self._add("Abs", [name], name + "|abs")
        return self.absolute[name]

    def _noise(self, base, terms, output, shape, snap=False):
        """output = base + u * terms, u being an input; with snap what is less than another
        input times terms is 0."""
        self.shapes[output + "|u"] = shape
        self._add("Mul", [terms, output + "|u"], output + "|n")
        if not snap:
            self._add("Add", [base, output + "|n"], output)
            return
        self._add("Add", [base, output + "|n"], output + "|m")
        self.shapes[output + SNAP] = shape
        self._add("Mul", [terms, output + SNAP], output + "|s")
        self._add("Abs", [output + "|m"], output + "|a")
        self._add("Less", [output + "|a", output + "|s"], output + "|z")
        self._add("Sub", [output + "|m", output + "|m"], output + "|0")
        self._add("Where", [output + "|z", output + "|0", output + "|m"], output)

    def _equal(self, a, b, output):
        """|a - b| <= snap * (|a| + |b|), which is a = b where snap is 0."""
        self.shapes[output + SNAP] = self.types[output].shape
        self._add("Sub", [a, b], output + "|d")
        self._add("Abs", [output + "|d"], output + "|e")
        self._add("Add", [self._abs(a), self._abs(b)], output + "|t")
        self._add("Mul", [output + "|t", output + SNAP], output + "|s")
        self._add("Greater", [output + "|e", output + "|s"], output + "|g")
        self._add("Not", [output + "|g"], output)

    def _rounds(self, name):
        """A constant such as 1.5 * 2^23, whose sum with a value is that value rounded: the one
        sum of which the rounding is what it is for."""
        c = self.constants.get(name)
        return c is not None and c.dtype == np.float32 and c.size > 0 and np.abs(c).min() >= 2**22

    def _constant(self, output, array):
        self.nodes.append(helper.make_node("Constant", [], [output], value=numpy_helper.from_array(array)))
        return output

    def _instance(self, node):
        """The terms of x * s - mean * s + bias, which ONNX Runtime adds, with s = scale / deviation."""
        x, scale, bias = (self.types[name].astype(np.float64) for name in node.input)
        axes = tuple(range(2, x.ndim))
        epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
        mean, deviation = x.mean(axes, keepdims=True), np.sqrt(x.var(axes, keepdims=True) + epsilon)
        along = (-1,) + (1,) * len(axes)
        return ((np.abs(x) + np.abs(mean)) * np.abs(scale.reshape(along)) / deviation + np.abs(bias.reshape(along))).astype(np.float32)

    def _is_float(self, name):
        return bool(name) and getattr(self.types.get(name), "dtype", None) == np.float32

    def _node(self, node):
        op, out = node.op_type, node.output[0]
        if op == "Equal" and self._is_float(node.input[0]):
            self._equal(*node.input, out)
            return
        if op in ("Add", "Sub") and any(self._rounds(name) for name in node.input):
            self.nodes.append(node)
            return
        noisy = op in SUMS | RELATIVE and self._is_float(out) or op == "QuantizeLinear"
        if op == "Resize" and any(a.name == "mode" and a.s == b"nearest" for a in node.attribute) or not noisy:
            self.nodes.append(node)
            return
        new = onnx.NodeProto()
        new.CopyFrom(node)
        if op in FRONT:
            x = node.input[0]
            new.input[0] = out + "|x"
            self._noise(x, self._abs(x), out + "|x", self.types[x].shape)
        if op == "QuantizeLinear":
            self.nodes.append(new)
            return
        new.output[0] = out + "|y"
        self.nodes.append(new)
        shape = self.types[out].shape
        if op not in SUMS:
            terms = self._abs(out + "|y")
            if op == "InstanceNormalization":
                terms = self._constant(out + "|i", self._instance(node))
            elif op in FROM_ONE:  # e^x - 1
                terms = self._constant(out + "|i", np.ones(shape, np.float32))
            if op in LIKE_INPUT and self.types[node.input[0]].shape == shape:
                terms = self._add("Add", [terms, self._abs(node.input[0])], out + "|t")
            self._noise(out + "|y", terms, out, shape)
            return
        absolute = onnx.NodeProto()
        absolute.CopyFrom(node)
        absolute.output[0] = out + "|t"
        if op == "Sub":
            absolute.op_type = "Add"
        for i, name in enumerate(node.input):
            if self._is_float(name) and not (op in ("Resize", "Upsample") and i > 0):
                absolute.input[i] = self._abs(name)
        if op == "BatchNormalization":
            self._add("Neg", [self._abs(node.input[3])], out + "|mean")
            absolute.input[3] = out + "|mean"
        for a in absolute.attribute:
            if a.name in ALL_POSITIVE.get(op, ()):
                a.f = abs(a.f)
        if op in ("Resize", "Upsample") and any(a.name == "mode" and a.s == b"cubic" for a in node.attribute):
            # Weights are of both signs; those of a pixel add up to less than 2 in size.
            most = 2 * np.abs(self.types[node.input[0]]).max(initial=0)
            self._constant(out + "|t", np.full(shape, most, np.float32))
        else:
            self.nodes.append(absolute)
        self._noise(out + "|y", out + "|t", out, shape, snap=True)

    def run(self, rng, quiet=False, snap=False):
        feed = dict(self.inputs)
        for name, shape in self.shapes.items():
            if name.endswith(SNAP):
                share = rng.choice([0, 0.5, 1]) if snap else 0
                feed[name] = (2 * self.scale * (rng.random(shape) < share)).astype(np.float32)
                continue
            u = np.asarray(rng.uniform(-1, 1, shape))
            if rng.random() < 0.3:
                u = np.sign(u)
            # Some values stay what they are: what is equal but for roundings may be equal.
            u[rng.random(shape) < (1 if quiet else rng.choice([0, 0.3, 0.7]))] = 0
            feed[name] = (u * self.scale).astype(np.float32)
        return self.session.run(None, feed)


def runs_of(model, inputs, values, scale, count=RUNS):
    """The outputs of so many runs."""
    noisy = Noisy(model, inputs, values, scale)
    rng = np.random.default_rng(count)
    with np.errstate(all="ignore"):
        return [noisy.run(rng, quiet=i % 8 < 2, snap=i % 4 == 1) for i in range(count)]


def hull(model, inputs, values, scale, count=RUNS):
    """The least and the largest values of each output over so many runs."""
    runs = runs_of(model, inputs, values, scale, count)
    with np.errstate(all="ignore"):
        return [(np.min(column, 0), np.max(column, 0)) for column in
                ([np.asarray(r[i], np.float64) for r in runs] for i in range(len(runs[0])))]
