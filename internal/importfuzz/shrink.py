"""Makes a graph that shows a fault smaller, as long as it shows that fault."""

import time

import numpy as np
import onnx
from onnx import helper, numpy_helper

import graphs
import noise
import oracle


def copy(model):
    m = onnx.ModelProto()
    m.CopyFrom(model)
    return m


class Shrinker:
    """Tries smaller graphs and inputs; keeps those with a fault of the same cause."""

    def __init__(self, model, inputs, runner, exact, wide, checks, verdict, symbolic, special, seconds):
        self.model, self.inputs, self.verdict = model, inputs, verdict
        self.runner, self.exact, self.wide, self.checks = runner, exact, wide, checks
        self.symbolic, self.special, self.end = symbolic, special, time.monotonic() + seconds

    def shows(self, model, inputs):
        """Takes over a graph that still shows the fault."""
        if time.monotonic() > self.end:
            return False
        try:
            model = graphs.prune(model)
        except Exception:
            return False
        inputs = {i.name: inputs[i.name] for i in model.graph.input if i.name in inputs}
        if not inputs:
            return False
        verdict = oracle.judge(model, inputs, self.runner, self.exact, self.wide, self.checks, self.special)
        if verdict.kind != oracle.FAULT or verdict.cause != self.verdict.cause:
            return False
        if self.exact and verdict.cause == "wrong" and self.large(model, inputs):
            return False
        self.model, self.inputs, self.verdict = model, inputs, verdict
        return True

    def large(self, model, inputs):
        """An operator computes with numbers that leave no bits for exact arithmetic: what was
        taken away made them so. The sum with 1.5 * 2^23 and the difference behind it are meant."""
        values = {**inputs, **noise.every(model, inputs)}
        return any(np.abs(values[name]).max(initial=0) >= graphs.NARROW
                   for node in model.graph.node if node.op_type in (noise.SUMS | noise.RELATIVE) - {"Add", "Sub"}
                   for name in node.input if name in values and values[name].dtype == np.float32)

    def run(self):
        self.initializers()
        progress = True
        while progress and time.monotonic() < self.end:
            progress = any([self.one_output(), self.one_image(), self.earlier_output(), self.later_input(), self.bypass(), self.constants(), self.plain_inputs()])
        return self

    def initializers(self):
        """Constant nodes as initialisers, which other steps make simpler, and those not as inputs."""
        m = copy(self.model)
        for node in list(m.graph.node):
            if node.op_type == "Constant":
                c = onnx.TensorProto()
                c.CopyFrom(node.attribute[0].t)
                c.name = node.output[0]
                m.graph.initializer.append(c)
                m.graph.node.remove(node)
        names = {c.name for c in m.graph.initializer}
        inputs = [i for i in m.graph.input if i.name not in names]
        del m.graph.input[:]
        m.graph.input.extend(inputs)
        self.shows(m, self.inputs)

    def values(self):
        try:
            return noise.every(self.model, self.inputs)
        except Exception:
            return {}

    def info(self, name, value):
        shape = list(value.shape)
        images = next(iter(self.inputs.values())).shape[0]
        if self.symbolic and shape and shape[0] == images:
            shape[0] = "N"
        return helper.make_tensor_value_info(name, graphs.PROTO[str(value.dtype)], shape)

    def one_output(self):
        if len(self.model.graph.output) < 2:
            return False
        for o in list(self.model.graph.output):
            m = copy(self.model)
            del m.graph.output[:]
            m.graph.output.append(o)
            if self.shows(m, self.inputs):
                return True
        return False

    def one_image(self):
        """One of the images of a batch; where the file gives the batch a number, that as well."""
        n = next(iter(self.inputs.values())).shape[0]
        if n == 1 or not self.symbolic or any(a.shape[0] != n for a in self.inputs.values()):
            return False
        for i in range(n):
            if self.shows(self.model, {k: a[i:i + 1] for k, a in self.inputs.items()}):
                return True
        return False

    def earlier_output(self):
        """A tensor on the way as the output."""
        values = self.values()
        for node in self.model.graph.node:
            for name in node.output:
                v = values.get(name)
                if v is None or str(v.dtype) not in graphs.PROTO or len(self.model.graph.output) == 1 and name == self.model.graph.output[0].name:
                    continue
                if node.op_type == "Constant":
                    continue
                m = copy(self.model)
                del m.graph.output[:]
                m.graph.output.append(self.info(name, v))
                # Of values with all bits no exact comparison is made: see oracle.exact_difference.
                if self.exact and v.dtype == np.float32 and name not in self.wide and (graphs.quantum(v) > 20 or np.abs(v).max() >= graphs.NARROW):
                    continue
                if self.shows(m, self.inputs):
                    return True
        return False

    def later_input(self):
        """A tensor on the way as an input, the last ones first."""
        values = self.values()
        constant = {n.output[0] for n in self.model.graph.node if n.op_type in ("Constant", "ConstantOfShape")}
        outputs = {o.name for o in self.model.graph.output}
        for node in reversed(self.model.graph.node):
            if not node.input:
                continue
            m = copy(self.model)
            given = dict(self.inputs)
            names = [n for n in node.output if n in values and n not in outputs and n not in constant]
            if not names or any(str(values[n].dtype) not in ("float32",) or values[n].ndim == 0 for n in names):
                continue
            if self.exact and any(np.abs(values[n]).max() >= graphs.NARROW for n in names):
                continue  # what reads it may round
            for other in m.graph.node:
                if other.output[0] == node.output[0]:
                    m.graph.node.remove(other)
                    break
            for n in names:
                m.graph.input.append(self.info(n, values[n]))
                given[n] = values[n]
            if self.shows(m, given):
                return True
        return False

    def bypass(self):
        """Without a node: who reads its output reads an input of it of the same shape and type."""
        values = self.values()
        shapes = {**values, **self.inputs}
        for node in self.model.graph.node:
            v = values.get(node.output[0])
            for name in node.input:
                x = shapes.get(name)
                if v is None or x is None or x.shape != v.shape or x.dtype != v.dtype:
                    continue
                m = copy(self.model)
                for other in m.graph.node:
                    for i, read in enumerate(other.input):
                        if read == node.output[0]:
                            other.input[i] = name
                if any(o.name == node.output[0] for o in m.graph.output):
                    continue
                if self.shows(m, self.inputs):
                    return True
        return False

    def constants(self):
        """Constants of several values as one value, or as rounder ones."""
        for k, c in enumerate(self.model.graph.initializer):
            a = numpy_helper.to_array(c)
            if a.dtype != np.float32 or a.size < 2:
                continue
            for new in (np.ones_like(a), np.full_like(a, a.flat[0]), np.sign(a)):
                if np.array_equal(new, a) or np.array_equal(a, np.ones_like(a)) or a.size > 1 and np.all(a == a.flat[0]):
                    continue
                m = copy(self.model)
                m.graph.initializer[k].CopyFrom(numpy_helper.from_array(new.astype(np.float32), c.name))
                if self.shows(m, self.inputs):
                    return True
        return False

    def plain_inputs(self):
        """Inputs with zeros, or with rounder numbers."""
        for name, a in self.inputs.items():
            if a.dtype != np.float32:
                continue
            for new in (np.zeros_like(a), np.round(a)):
                if np.array_equal(new, a) or not np.isfinite(new).all():
                    continue
                if self.shows(self.model, {**self.inputs, name: new.astype(a.dtype)}):
                    return True
        return False


# Operators that a fault is often the same for, under one name.
FAMILIES = {
    "compare": "Greater Less GreaterOrEqual LessOrEqual Equal",
    "round": "Round Floor Ceil",
    "limit": "Clip Min Max Relu",
    "layer": "Conv ConvTranspose Gemm MatMul Einsum",
    "scale": "Mul Div",
    "add": "Add Sub",
    "move": "Reshape Flatten Transpose Squeeze Unsqueeze Slice Split Gather Expand Tile Concat Identity MaxPool",
    "": "Constant ConstantOfShape",
}
FAMILY = {op: family for family, ops in FAMILIES.items() for op in ops.split()}


def form(node):
    """The operator, of some with the attributes that make it another one."""
    found = {a.name: a for a in node.attribute}
    words = [found["mode"].s.decode() if "mode" in found else ""] if node.op_type in ("Pad", "Resize") else []
    words += [name for name in ("antialias", "axes", "ceil_mode") if name in found and node.op_type in ("Resize", "AveragePool", "MaxPool")]
    return "-".join([FAMILY.get(node.op_type, node.op_type)] + [w for w in words if w])


def signature(verdict, model):
    """What a fault is told from others by: its cause and the operators of the smallest graph."""
    return verdict.cause + ": " + " ".join(sorted(filter(None, map(form, model.graph.node))))
