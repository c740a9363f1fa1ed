"""One operator with attributes that are drawn from ONNX's schema of it, at any opset.

operands.py says what each operator takes; this file draws attributes of it, alone and in pairs,
from their types and what the schema says of them. Most are not valid: then no engine runs them.
"""

import re

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

import noise
import operands
from graphs import Skip

OLDEST, NEWEST = 7, defs.onnx_opset_version()
SKIPPED = {"consumed_inputs", "seed", "equation"}  # which only mean something to engines, or are drawn with the operands
TYPES = {"to", "dtype", "output_dtype", "output_datatype", "stash_type", "precision"}
# Numbers that are true or false: what others mean is up to each engine.
FLAGS = {"keepdims", "noop_with_empty_axes", "select_last_index", "largest", "sorted", "exclusive", "reverse", "ceil_mode", "count_include_pad",
         "storage_order", "exclude_outside", "antialias", "detect_negative", "detect_positive", "transA", "transB", "allowzero", "upper", "fmod",
         "saturate", "training_mode", "spatial", "time_axis", "batch_axis"}
FLOATS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, -0.25, -0.5, -1.0, -2.0)
INTS = (0, 0, 1, 1, 2, 3, 4, -1, -2, -3)

DRAWN = [defs.OpSchema.AttrType.INT, defs.OpSchema.AttrType.FLOAT, defs.OpSchema.AttrType.INTS, defs.OpSchema.AttrType.FLOATS,
         defs.OpSchema.AttrType.STRING]


def words(attribute):
    """The words that an attribute may have, as the schema has them: in quotes, or in capitals."""
    text = attribute.description
    found = set(re.findall(r"[`\"'*]+([A-Za-z][A-Za-z_]*)[`\"'*]+", text)) | set(re.findall(r"\b[A-Z]{2,}(?:_[A-Z]+)*\b", text))
    return sorted(found) or ["none"]


def lengths(name, given, rank):
    """How many numbers a list has."""
    if given is not None:
        return [len(given)]
    if name == "pads":
        return [2 * (rank - 2)]
    if name in ("kernel_shape", "strides", "dilations", "output_padding", "output_shape"):
        return [rank - 2]
    return [1, 1, 2, rank - 2] if name != "perm" else [rank]


def numbers(rng, name, given, rank):
    n = rng.choice(lengths(name, given, rank))
    if n < 1:
        raise Skip
    if name == "perm":
        rest = rng.sample(range(1, n), n - 1)
        return [0] + rest if rng.random() < 0.7 else rng.sample(range(n), n)
    if name == "axes":
        low = -rank if rng.random() < 0.5 else 0
        return rng.sample(range(low, low + rank), min(n, rank))
    if given is not None and rng.random() < 0.3:
        return rng.sample(list(given), n)
    few = {"pads": (0, 0, 1, 2), "output_padding": (0, 1, 2), "strides": (1, 2, 3), "dilations": (1, 2, 3), "kernel_shape": (1, 2, 3, 4)}
    return [rng.choice(few.get(name, (1, 2, 3, 4, 5, 6))) for _ in range(n)]


def value(rng, attribute, given, rank):
    kind, name = attribute.type, attribute.name
    if kind == defs.OpSchema.AttrType.INT:
        if name in TYPES:
            return rng.choice((1, 1, 2, 3, 6, 7, 9, 10, 11, 16, 22))
        if name in FLAGS:
            return rng.choice((0, 1))
        return rng.choice(INTS)
    if kind == defs.OpSchema.AttrType.FLOAT:
        return rng.choice(FLOATS)
    if kind == defs.OpSchema.AttrType.INTS:
        return numbers(rng, name, given, rank)
    if kind == defs.OpSchema.AttrType.FLOATS:
        return [rng.choice((1.0, 2.0, 3.0, 0.5)) for _ in given or (1,)]
    if kind == defs.OpSchema.AttrType.STRING:
        return rng.choice(words(attribute))
    raise ValueError(kind)


def versions():
    """The opsets from which the operators of operands.py have each schema of theirs, by name."""
    found = {op: {OLDEST} for op in operands.NAMES}
    for s in defs.get_all_schemas_with_history():
        if s.domain == "" and s.name in found:
            found[s.name].add(max(s.since_version, OLDEST))
    return {op: sorted(opsets) for op, opsets in found.items()}


VERSIONS = versions()
# An operator is drawn more often the more attributes it has.
WEIGHTS = [1 + max(len(s.attributes) for s in defs.get_all_schemas_with_history() if (s.domain, s.name) == ("", op)) for op in operands.NAMES]


def opset_of(rng, op):
    """An opset: each schema of the operator is as likely."""
    first = rng.choice(VERSIONS[op])
    later = [v for v in VERSIONS[op] if v > first]
    return rng.randint(first, later[0] - 1 if later else NEWEST)


class Single:
    """A graph of one operator, with an input for each computed operand."""

    def __init__(self, rng, op):
        self.rng, self.op = rng, op
        self.np = np.random.Generator(np.random.PCG64(rng.getrandbits(64)))
        self.opset = opset_of(rng, op)
        try:
            self.schema = defs.get_schema(self.op, self.opset, "")
        except defs.SchemaError:
            raise Skip from None
        if self.schema.deprecated:
            raise Skip
        # All operands constant: an operator that an importer evaluates.
        self.constant = self.op in operands.FOLDED or rng.random() < 0.25
        self.batch, self.symbolic = rng.choice((1, 2, 3)), rng.random() < 0.7
        self.nodes, self.initializers, self.inputs, self.fed, self.count = [], [], [], {}, 0
        case = operands.case(self)
        self.attributes = self.drawn(case.attributes)
        self.outputs = ["y"] + ["y%d" % i for i in range(1, case.outputs)]
        self.nodes.append(helper.make_node(self.op, case.inputs, self.outputs, **self.attributes))
        if self.constant:
            self.hold()
        self.model = self.build()

    # What operands.py draws with.

    def chance(self, p):
        return self.rng.random() < p

    def choice(self, *options):
        return self.rng.choice(options)

    def need(self, condition):
        if not condition:
            raise Skip

    def name(self, prefix):
        self.count += 1
        return "%s%d" % (prefix, self.count)

    def held(self, array):
        """A constant."""
        name = self.name("c")
        a = np.asarray(array)
        if self.chance(0.8):
            self.initializers.append(numpy_helper.from_array(a, name))
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(a)))
        return name

    def computed(self, shape, values=None):
        """An operand that is computed from the network's input, or a constant in its place."""
        a = (self.np.integers(-16, 17, shape) / 4 if values is None else values).astype(np.float32)
        if self.constant:
            return self.held(a)
        name = self.name("x")
        half = self.chance(0.5)  # a layer in front, without which moves may leave no layer at all
        self.fed[name] = a * np.float32(2) if half else a
        self.inputs.append(helper.make_tensor_value_info(name, 1, (["N"] if self.symbolic else [shape[0]]) + list(shape[1:])))
        return self.node("Mul", name, self.held(np.float32(0.5))) if half else name

    def node(self, op, *inputs, **attributes):
        name = self.name("t")
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    # The graph.

    def drawn(self, given):
        """The attributes of the operands with one or two others, or with none."""
        attributes = dict(given)
        names = sorted(n for n, a in self.schema.attributes.items() if n not in SKIPPED and a.type in DRAWN)
        for name in self.rng.sample(names, min(len(names), self.rng.choice((0, 1, 1, 1, 2, 2)))):
            attributes[name] = value(self.rng, self.schema.attributes[name], attributes.get(name), operands.rank(self))
        if "auto_pad" in attributes and attributes["auto_pad"] != "NOTSET":
            attributes.pop("pads", None)
            # Where windows have gaps, ONNX Runtime pads less than the schema says; of a ConvTranspose
            # it makes less than that where strides are larger than windows.
            self.need(attributes["auto_pad"] == "VALID" or set(attributes.get("dilations", ())) <= {1})
            self.need(self.op != "ConvTranspose" or set(attributes.get("strides", ())) <= {1})
        # Of these onnx does not say that they are wrong: it ends the process.
        self.need(attributes.get("num_outputs", 2) == 2 and attributes.get("batch_dims", 0) >= 0)
        # ONNX Runtime refuses lists of scales for an axis of another length; onnx.reference, which
        # stands in for it at the newest opset, does not.
        self.need(self.op not in ("QuantizeLinear", "DequantizeLinear") or self.opset < NEWEST or attributes.get("axis", 1) == 1)
        self.need(self.op != "TopK" or attributes.get("sorted", 1))  # any order is right
        return attributes

    def hold(self):
        """The sum of an input with the results, which are constant: of any shape, as a row."""
        self.inputs, self.fed = [], {}
        model = self.build()
        try:
            values = noise.session(model).run(None, {})
        except Exception:  # nor would the sum run
            raise Skip from None
        rows = []
        for name, v in zip(self.outputs, values):
            v = np.asarray(v)
            if v.dtype == object or v.size == 0 or v.size > 2000 or not np.isfinite(v.astype(np.float64)).all():
                raise Skip
            rows.append(self.node("Reshape", self.node("Cast", name, to=1), self.held(np.int64([1, -1]))))
        n = sum(np.size(v) for v in values)
        self.constant = False
        x = self.computed((self.batch, n))
        row = rows[0] if len(rows) == 1 else self.node("Concat", *rows, axis=1)
        self.nodes.append(helper.make_node("Add", [self.node("Mul", x, self.held(np.float32(2))), row], ["z"]))
        self.outputs = ["z"]

    def build(self):
        """The model, which onnx itself must have no objection to."""
        graph = helper.make_graph(self.nodes, "g", self.inputs, [onnx.ValueInfoProto(name=o) for o in self.outputs], self.initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8 if self.opset < 19 else 10)
        try:
            inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
            onnx.checker.check_model(inferred)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
            raise Skip from None
        for o in inferred.graph.output:  # of which only the type is told, as exporters have it
            o.type.tensor_type.ClearField("shape")
        model.graph.ClearField("output")
        model.graph.output.extend(inferred.graph.output)
        return model


def draw(rng):
    """A graph of one operator. Each is tried a few times: of some few attributes are valid."""
    while True:
        op = rng.choices(operands.NAMES, WEIGHTS)[0]
        for _ in range(20):
            try:
                return Single(rng, op)
            except Skip:
                continue
