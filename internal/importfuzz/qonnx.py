"""Writes operators of QONNX as operators of ONNX, for engines that have only these."""

import numpy as np
import onnx
from onnx import helper, numpy_helper

from graphs import DOMAIN
from quantizers import limits


class Writer:
    """The nodes that take the place of one."""

    def __init__(self, node, constants, ranks):
        self.node, self.constants, self.nodes = node, constants, []
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        self.rank = ranks.get(node.input[0])

    def text(self, name, default):
        return self.attributes.get(name, default.encode()).decode().upper()

    def constant(self, i):
        return np.asarray(self.constants[self.node.input[i]], np.float32)

    def number(self, i):
        return float(self.constant(i).reshape(()))

    def add(self, op, *inputs, last=False, **attributes):
        """A node; inputs that are no names are constants."""
        name = self.node.output[0] if last else "%s|q%d" % (self.node.output[0], len(self.nodes))
        names = []
        for i, value in enumerate(inputs):
            if not isinstance(value, str):
                names.append("%s|c%d" % (name, i))
                self.nodes.append(helper.make_node("Constant", [], names[-1:], value=numpy_helper.from_array(np.asarray(value))))
            else:
                names.append(value)
        self.nodes.append(helper.make_node(op, names, [name], **attributes))
        return name

    def limit(self, x, low, high):
        return self.add("Min", self.add("Max", x, np.float32(low)), np.float32(high))

    def round(self, x, mode):
        if mode in ("ROUND", "HALF_EVEN"):
            return self.add("Round", x)
        if mode in ("CEIL", "FLOOR"):
            return self.add(mode.capitalize(), x)
        size = self.add("Abs", x)
        if mode == "HALF_UP":
            size = self.add("Add", size, np.float32(0.5))
        elif mode == "HALF_DOWN":
            size = self.add("Sub", size, np.float32(0.5))
        return self.add("Mul", self.add("Sign", x), self.add("Ceil" if mode in ("UP", "HALF_DOWN") else "Floor", size))

    def signs(self, x, scale):
        # Not x < 0, of which the opposite holds of NaN.
        return self.add("Where", self.add("GreaterOrEqual", x, np.float32(0)), scale, -scale, last=True)

    def Quant(self):
        x, scale, zero, bits = self.node.input[0], self.constant(1), self.constant(2), self.number(3)
        signed, narrow = self.attributes.get("signed", 1), self.attributes.get("narrow", 1)
        y = self.add("Add", self.add("Div", x, scale), zero)
        if signed and bits == 1:
            self.signs(y, scale)
            return
        y = self.round(self.limit(y, *limits(signed, narrow, int(bits))), self.text("rounding_mode", "ROUND"))
        self.add("Mul", self.add("Sub", y, zero), scale, last=True)

    IntQuant = Quant

    def BipolarQuant(self):
        self.signs(self.node.input[0], self.constant(1))

    def Trunc(self):
        scale = self.number(1)
        y = self.add("Round", self.add("Add", self.add("Div", self.node.input[0], np.float32(scale)), self.constant(2)))
        mode = self.text("rounding_mode", "FLOOR")
        if len(self.node.input) == 5:
            out, power = scale, 2.0 ** (self.number(3) - self.number(4))
            y = self.add("Div", y, np.float32(power))
        else:
            out = self.number(4)
            power = 2.0 ** round(np.log2(out / scale))
            y = self.limit(self.add("Div", y, np.float32(power)),
                           *limits(self.attributes.get("signed", 1), self.attributes.get("narrow", 0), int(self.number(5))))
        y = self.round(y, mode)
        self.add("Mul", self.add("Sub", y, self.constant(2) / np.float32(power)), np.float32(out), last=True)

    def MultiThreshold(self):
        table, layout = self.constant(1), self.text("data_layout", "")
        at = layout.index("C") if layout else 1
        shape = [len(table) if i == at else 1 for i in range(self.rank)] + [table.shape[1]]
        reached = self.add("GreaterOrEqual", self.add("Unsqueeze", self.node.input[0], np.int64([self.rank])), table.reshape(shape))
        count = self.add("ReduceSum", self.add("Cast", reached, to=1), np.int64([self.rank]), keepdims=0)
        scaled = self.add("Mul", count, np.float32(self.attributes.get("out_scale", 1.0)))
        self.add("Add", scaled, np.float32(self.attributes.get("out_bias", 0.0)), last=True)


def ranks_of(model):
    """How many dimensions the tensors have of which the model says it, by name."""
    g = model.graph
    return {v.name: len(v.type.tensor_type.shape.dim) for v in [*g.input, *g.value_info]}


def written_out(model):
    """The model without operators of QONNX; itself if it has none."""
    if all(n.domain != DOMAIN for n in model.graph.node):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for n in model.graph.node:
        if n.op_type == "Constant":
            constants[n.output[0]] = numpy_helper.to_array(n.attribute[0].t)
        elif n.op_type == "ConstantOfShape":
            constants[n.output[0]] = np.broadcast_to(numpy_helper.to_array(n.attribute[0].t), constants[n.input[0]])
    ranks, nodes = ranks_of(model), []
    for n in model.graph.node:
        if n.domain != DOMAIN:
            nodes.append(n)
            continue
        w = Writer(n, constants, ranks)
        getattr(w, n.op_type)()
        nodes += w.nodes
    made.graph.ClearField("node")
    made.graph.node.extend(nodes)
    del made.opset_import[:]
    made.opset_import.extend(o for o in model.opset_import if o.domain != DOMAIN)
    return made
