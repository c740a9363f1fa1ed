"""Graphs of TensorFlow Lite as plain objects, and the files that they make.

The schema and its builder functions are those of the package tflite. No converter is
asked, so that a graph holds what no converter would combine or leave alone.
"""

import copy

import flatbuffers
import numpy as np
import tflite
from flatbuffers import flexbuffers

TYPES = {"float32": tflite.TensorType.FLOAT32, "int8": tflite.TensorType.INT8, "int32": tflite.TensorType.INT32,
         "uint8": tflite.TensorType.UINT8, "int64": tflite.TensorType.INT64, "bool": tflite.TensorType.BOOL}
ACTIVATIONS = {"none": 0, "relu": 1, "relu1": 2, "relu6": 3}
SAME, VALID = 0, 1


class Tensor:
    """A tensor: constant where it has data. What 8-bit values q stand for is
    (q − zero)·scale, with one scale or one for each position of dimension axis."""

    def __init__(self, dims, dtype="float32", data=None, scale=None, zero=0, axis=0, name=""):
        self.dims, self.dtype, self.data = [int(n) for n in dims], dtype, data
        self.scale, self.zero, self.axis, self.name = scale, zero, axis, name
        # What the values are known to be, see draw.py.
        self.step, self.bound, self.once, self.zeroed, self.channels = 0.0, 0.0, False, False, 0


class Operator:
    """An operator. Options of a built-in one are the name of their table and its fields,
    those of LCE's a dictionary."""

    def __init__(self, name, inputs, outputs, table=None, fields=None):
        self.name, self.inputs, self.outputs, self.table, self.fields = name, list(inputs), list(outputs), table, dict(fields or {})

    @property
    def custom(self):
        return self.name.startswith("Lce")


class Graph:
    def __init__(self):
        self.tensors, self.operators, self.inputs, self.outputs = [], [], [], []

    def add(self, tensor):
        """Adds a tensor and returns its index."""
        self.tensors.append(tensor)
        tensor.name = tensor.name or f"t{len(self.tensors) - 1}"
        return len(self.tensors) - 1

    def copy(self):
        """A copy whose tensors and operators can be changed; data is shared."""
        g = Graph()
        g.tensors = [copy.copy(t) for t in self.tensors]
        g.operators = [Operator(o.name, o.inputs, o.outputs, o.table, o.fields) for o in self.operators]
        g.inputs, g.outputs = list(self.inputs), list(self.outputs)
        return g

    def maker(self, index):
        """The operator that computes a tensor, or None."""
        return next((o for o in self.operators if index in o.outputs), None)

    def ancestors(self, outputs):
        """The operators that some tensors depend on."""
        need, used = set(outputs), []
        for o in reversed(self.operators):
            if need.intersection(o.outputs):
                need.update(o.inputs)
                used.append(o)
        return used[::-1]

    def prune(self):
        """Leaves out what no output depends on: operators, inputs and tensors."""
        self.operators = self.ancestors(self.outputs)
        used = {t for o in self.operators for t in (*o.inputs, *o.outputs) if t >= 0}.union(self.outputs)
        self.inputs = [i for i in self.inputs if i in used]
        order = [i for i in range(len(self.tensors)) if i in used]
        new = {old: i for i, old in enumerate(order)}
        new[-1] = -1
        self.tensors = [self.tensors[i] for i in order]
        for o in self.operators:
            o.inputs, o.outputs = [new[i] for i in o.inputs], [new[i] for i in o.outputs]
        self.inputs, self.outputs = [new[i] for i in self.inputs], [new[i] for i in self.outputs]
        return self


def _vector(b, offsets):
    b.StartVector(4, len(offsets), 4)
    for o in reversed(offsets):
        b.PrependUOffsetTRelative(o)
    return b.EndVector()


def _table(b, name, **fields):
    """Writes a table by the functions of its name; None leaves a field out."""
    getattr(tflite, name + "Start")(b)
    for field, value in fields.items():
        if value is not None:
            getattr(tflite, f"{name}Add{field}")(b, value)
    return getattr(tflite, name + "End")(b)


def _tensor(b, t, buffer):
    name, shape, quantization = b.CreateString(t.name), b.CreateNumpyVector(np.array(t.dims, np.int32)), None
    if t.scale is not None:
        scales = np.atleast_1d(np.asarray(t.scale, np.float32))
        zeros = np.broadcast_to(np.asarray(t.zero, np.int64), scales.shape)
        s, z = b.CreateNumpyVector(scales), b.CreateNumpyVector(np.ascontiguousarray(zeros))
        quantization = _table(b, "QuantizationParameters", Scale=s, ZeroPoint=z, QuantizedDimension=t.axis or None)
    return _table(b, "Tensor", Shape=shape, Type=TYPES[t.dtype], Buffer=buffer, Name=name, Quantization=quantization)


def _operator(b, o, code):
    inputs, outputs = b.CreateNumpyVector(np.array(o.inputs, np.int32)), b.CreateNumpyVector(np.array(o.outputs, np.int32))
    fields = dict(OpcodeIndex=code, Inputs=inputs, Outputs=outputs)
    if o.custom:
        fields["CustomOptions"] = b.CreateByteVector(bytes(flexbuffers.Dumps(o.fields)))
    elif o.table:
        fields["BuiltinOptions"] = _table(b, o.table, **o.fields)
        fields["BuiltinOptionsType"] = getattr(tflite.BuiltinOptions, o.table)
    return _table(b, "Operator", **fields)


def encode(g):
    """The file of a graph."""
    b = flatbuffers.Builder(1 << 14)
    buffers, tensors, codes, operators, known = [_table(b, "Buffer")], [], [], [], {}
    for t in g.tensors:
        buffer = 0
        if t.data is not None:
            data = b.CreateByteVector(np.ascontiguousarray(t.data).tobytes())
            buffers.append(_table(b, "Buffer", Data=data))
            buffer = len(buffers) - 1
        tensors.append(_tensor(b, t, buffer))
    for o in g.operators:
        if o.name not in known:
            known[o.name] = len(codes)
            custom = b.CreateString(o.name) if o.custom else None
            code = tflite.BuiltinOperator.CUSTOM if o.custom else getattr(tflite.BuiltinOperator, o.name)
            codes.append(_table(b, "OperatorCode", DeprecatedBuiltinCode=min(code, 127), CustomCode=custom, Version=1, BuiltinCode=code))
        operators.append(_operator(b, o, known[o.name]))
    inputs, outputs = b.CreateNumpyVector(np.array(g.inputs, np.int32)), b.CreateNumpyVector(np.array(g.outputs, np.int32))
    tensors, operators, name = _vector(b, tensors), _vector(b, operators), b.CreateString("main")
    graph = _table(b, "SubGraph", Tensors=tensors, Inputs=inputs, Outputs=outputs, Operators=operators, Name=name)
    codes, graphs, buffers = _vector(b, codes), _vector(b, [graph]), _vector(b, buffers)
    b.Finish(_table(b, "Model", Version=3, OperatorCodes=codes, Subgraphs=graphs, Buffers=buffers), b"TFL3")
    return bytes(b.Output())


def decode(data):
    """The graph of a file that encode has written."""
    m = tflite.Model.GetRootAsModel(data, 0)
    s, g = m.Subgraphs(0), Graph()
    names = {v: k for k, v in TYPES.items()}
    operators = {v: k for k, v in vars(tflite.BuiltinOperator).items() if isinstance(v, int)}
    tables = {v: k for k, v in vars(tflite.BuiltinOptions).items() if isinstance(v, int)}
    for i in range(s.TensorsLength()):
        f = s.Tensors(i)
        t = Tensor(f.ShapeAsNumpy() if f.ShapeLength() else [], names[f.Type()], name=f.Name().decode())
        if m.Buffers(f.Buffer()).DataLength():
            t.data = m.Buffers(f.Buffer()).DataAsNumpy().view(t.dtype).reshape(t.dims)
        q = f.Quantization()
        if q is not None and q.ScaleLength():
            t.scale, t.zero, t.axis = q.ScaleAsNumpy(), q.ZeroPointAsNumpy(), q.QuantizedDimension()
            if len(t.scale) == 1:
                t.scale, t.zero = np.float32(t.scale[0]), int(t.zero[0])
        g.tensors.append(t)
    for i in range(s.OperatorsLength()):
        f = s.Operators(i)
        code = m.OperatorCodes(f.OpcodeIndex())
        custom = code.BuiltinCode() == tflite.BuiltinOperator.CUSTOM
        o = Operator(code.CustomCode().decode() if custom else operators[code.BuiltinCode()], f.InputsAsNumpy().tolist(), f.OutputsAsNumpy().tolist())
        if custom:
            o.fields = flexbuffers.Loads(bytes(f.CustomOptionsAsNumpy())) if f.CustomOptionsLength() else {}
        elif f.BuiltinOptionsType():
            o.table = tables[f.BuiltinOptionsType()]
            o.fields = _fields(o.table, f.BuiltinOptions())
        g.operators.append(o)
    g.inputs, g.outputs = s.InputsAsNumpy().tolist(), s.OutputsAsNumpy().tolist()
    return g


def _fields(table, options):
    """The fields of a table of options that are numbers."""
    at, prefix, fields = getattr(tflite, table)(), table + "Add", {}
    at.Init(options.Bytes, options.Pos)
    for name in dir(tflite):
        if name.startswith(prefix) and not hasattr(at, name[len(prefix):] + "Length"):
            value = getattr(at, name[len(prefix):])
            if isinstance(value := value() if callable(value) else None, (int, float)):
                fields[name[len(prefix):]] = value
    return fields
