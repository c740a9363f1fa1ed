#!/usr/bin/env python3
"""Write bcnn/onnx/testdata/folding.onnx.gz: operators on constants, evaluated by
onnxruntime, or where that has none for a type by the reference evaluator of onnx.

For every case the graph computes a tensor named after the operator, and an
initialiser "want " + that name holds what onnxruntime made of it. Names that begin
with "~" are compared up to rounding.

Needs numpy, onnx and onnxruntime.
"""

import gzip
import sys

import numpy as np
import onnx
import onnx.reference
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

OPSET = 20

rng = np.random.default_rng(1)


def real(*dims):
    """Numbers of few bits, so that sums and products of some are exact."""
    return (rng.integers(-16, 17, dims) / 8).astype(np.float32)


def rough(*dims):
    return rng.normal(size=dims).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


cases = []  # name, operator, inputs, attributes, number of outputs, opset


def case(op, *inputs, exact=True, outputs=1, **attributes):
    name = f"{'' if exact else '~'}{op} {len(cases)}"
    cases.append((name, op, inputs, attributes, outputs))


for op in ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceProd", "ReduceSumSquare"]:
    for axes in [(1, 2, 3), (0,), (-1,), (0, 2)]:
        for keep in (0, 1):
            case(op, real(2, 3, 4, 2), ints(*axes), exact=op not in ("ReduceL2", "ReduceProd"), keepdims=keep)
    case(op, real(3, 2))
    case(op, real(3, 2), ints(), noop_with_empty_axes=0, exact=op not in ("ReduceL2", "ReduceProd"))
    case(op, rough(5, 7), ints(1), exact=False)
    if op != "ReduceL2":
        case(op, ints(3, -4, 5), ints(0))
case("ReduceLogSum", np.abs(rough(3, 5)), ints(1), exact=False)

special = np.array([0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-30, 3e38, np.inf, -np.inf, np.nan], np.float32)
for op in ["Abs", "Ceil", "Floor", "Neg", "Round", "Sign", "Relu", "Reciprocal"]:
    case(op, special)
    case(op, rough(9))
for op in ["Sqrt", "Log"]:
    case(op, np.abs(special[:-1]), exact=op == "Sqrt")
for op in ["Exp", "Sigmoid", "Tanh", "Erf", "Sin", "Cos"]:
    case(op, rough(20) * 4, exact=False)
case("Not", np.array([True, False]))

a, b = rough(3, 1, 4), rough(2, 1)
for op in ["Add", "Sub", "Mul", "Div", "Max", "Min", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"]:
    case(op, a, b)
    case(op, special, special[::-1].copy())
case("Equal", a, a[:, :, :1].copy())
case("Equal", ints(1, 2, -1), ints(-1))
case("Pow", np.abs(a), b, exact=False)
case("Pow", a, np.array(2.0, np.float32))
case("Pow", a, ints(2))
for op in ["Max", "Min", "Sum"]:
    case(op, a)
    case(op, a, b, rough(4))
for op in ["Add", "Sub", "Mul", "Div", "Max", "Min"]:
    case(op, ints(7, -7, 9), ints(2, 2, -4))
for op in ["And", "Or", "Xor"]:
    case(op, np.array([True, True, False, False]), np.array([True, False, True, False]))

x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
big = np.iinfo(np.int64)
for starts, ends, axes, steps in [
    ((-1,), (big.min,), (0,), (-1,)), ((-1,), (-(2**31),), (2,), (-1,)), ((0,), (big.max,), (1,), (1,)),
    ((4, 0), (0, 3), (2, 0), (-2, 2)), ((1,), (-1,), (-2,), (1,)), ((3,), (1,), (1,), (1,)), ((1,), (3,), (1,), (-1,)),
    ((100,), (-100,), (2,), (-3,)), ((0,), (5,), (2,), (7,)), ((4,), (0,), (2,), (big.min + 1,)), ((0, 1, 2), (3, 4, 5), (0, 1, 2), (2, 2, 2)),
]:
    case("Slice", x, ints(*starts), ints(*ends), ints(*axes), ints(*steps))
case("Slice", x, ints(1, 1), ints(3, 3))
case("Expand", rough(3, 1, 2), ints(2, 1, 4, 1))
case("Tile", rough(2, 3), ints(2, 3))
case("Tile", ints(1, 2), ints(0))
case("Transpose", x, perm=[2, 0, 1])
case("Transpose", x)
case("Reshape", x, ints(0, -1))
case("Reshape", x, ints(5, -1, 2))
case("Flatten", x)
case("Flatten", x, axis=0)
case("Flatten", x, axis=-1)
case("Squeeze", x[:1, :, :1].copy())
case("Squeeze", x[:1, :, :1].copy(), ints(-1))
case("Unsqueeze", x, ints(0, -1))
case("Identity", x)
case("Concat", x, x[:, :2].copy(), x[:, 1:].copy(), axis=-2)
case("Gather", x, ints(2, -1, 0).reshape(1, 3), axis=1)
case("Gather", x, np.array(1, np.int64), axis=2)
case("Split", x, outputs=3, axis=2, num_outputs=3)
case("Split", x, ints(1, 3), outputs=2, axis=1)
case("Shape", x)
case("Shape", x, start=-2, end=3)
case("Size", x)
case("Range", np.array(1, np.int64), np.array(12, np.int64), np.array(3, np.int64))
case("Range", np.array(1, np.int64), np.array(-8, np.int64), np.array(-2, np.int64))
case("Range", np.array(0.5, np.float32), np.array(2.75, np.float32), np.array(0.25, np.float32))
case("ConstantOfShape", ints(2, 3), value=helper.make_tensor("", TensorProto.INT64, [1], [7]))
case("ConstantOfShape", ints(2, 0))
case("Where", np.array([[True], [False]]), rough(3), rough(2, 3))
case("Where", np.array([True, False]), ints(2**53 + 1), ints(-(2**53) - 1))
case("Clip", special[:-1], np.array(-1, np.float32), np.array(1, np.float32))
case("Clip", rough(5), np.array(-0.5, np.float32))
values = np.array([0, 1, -1, 1.5, -1.5, 2.5, 200, 0.1, 65519, 65520, 1e-7, 6e-8, 3e-8, 1e38], np.float32)
case("Cast", values[:7], to=TensorProto.INT64)
case("Cast", values[:7], to=TensorProto.INT32)
case("Cast", values, to=TensorProto.FLOAT16)
case("Cast", values, to=TensorProto.BFLOAT16)
case("Cast", values, to=TensorProto.DOUBLE)
case("Cast", special, to=TensorProto.BOOL)
case("Cast", np.array([True, False]), to=TensorProto.FLOAT)
case("Cast", ints(-3, 2**40), to=TensorProto.FLOAT)
case("Cast", ints(0, 255), to=TensorProto.UINT8)
case("Cast", ints(-128, 127), to=TensorProto.INT8)
case("CastLike", ints(1, 2), np.array(0, np.float32))
case("DequantizeLinear", np.array([[-128, 5], [127, 0]], np.int8), np.array(0.3, np.float32), np.array(3, np.int8))
case("DequantizeLinear", np.arange(12, dtype=np.uint8).reshape(2, 3, 2), np.array([0.1, 0.7, 3], np.float32), np.array([0, 5, 255], np.uint8))
for axis in (0, 1, -1):
    case("TopK", real(3, 4, 5), ints(2), axis=axis, outputs=2)
    case("TopK", real(3, 4, 5), ints(3), axis=axis, outputs=2, largest=0)
    case("ArgMax", real(3, 4, 5), axis=axis)
    case("ArgMin", real(3, 4, 5), axis=axis, keepdims=0)
    case("ArgMax", real(3, 4, 5), axis=axis, select_last_index=1)
    case("OneHot", ints(0, 2, -1, 5), np.array(4, np.int64), np.array([-1, 2], np.float32), axis=axis)
case("Mod", ints(7, -7, 7, -7, 6), ints(3, 3, -3, -3, 3))
case("Mod", np.array([7.5, -7.5, 7.5, -7.5, 6], np.float32), np.array([3, 3, -3, -3, 3], np.float32), fmod=1)
case("MatMul", real(2, 3, 4), real(4))
case("DequantizeLinear", np.array([[1, -1], [1, 1]], np.int8), np.array([0.37, 0.11], np.float32), axis=0)
for op in ["LayerNormalization", "InstanceNormalization", "BatchNormalization"]:
    per = {"LayerNormalization": [(5,)] * 2, "InstanceNormalization": [(3,)] * 2, "BatchNormalization": [(3,)] * 4}[op]
    inputs = [rough(*d) for d in per]
    inputs[3:] = [np.abs(v) for v in inputs[3:]]
    case(op, rough(2, 3, 5), *inputs, epsilon=0.25, exact=False)
    if op != "LayerNormalization":
        case(op, rough(2, 3, 4, 5), *inputs, exact=False)
case("BatchNormalization", rough(3, 2), rough(2), rough(2), rough(2), np.abs(rough(2)), exact=False)
case("LayerNormalization", rough(2, 3, 4), rough(3, 4), axis=1, exact=False)
case("ScatterND", x, ints(0, -1, 2, 3).reshape(2, 2), rough(2, 5))
case("ScatterND", x, ints(2, 0, 2).reshape(3, 1), rough(3, 4, 5))
case("ScatterND", x, rng.permuted(np.indices(x.shape).reshape(3, -1).T, axis=0)[:7].astype(np.int64).reshape(7, 1, 3), rough(7, 1))
for op in [("GatherElements",), ("ScatterElements",)]:
    for axis in (0, 1, -1):
        at = rng.permuted(np.broadcast_to(np.arange(3), (2, 4, 3)), axis=2)[:, :, :2].transpose(2, 0, 1).copy() if axis == 0 else ints(0, -1, 2).reshape(1, 3, 1) if axis == 1 else ints(-2, 1).reshape(1, 1, 2)
        case(op[0], x, at.astype(np.int64), *([rough(*at.shape)] if op[0] == "ScatterElements" else []), axis=axis)
for exclusive, reverse in [(0, 0), (1, 0), (0, 1), (1, 1)]:
    case("CumSum", real(3, 4, 2), np.array(1, np.int64), exclusive=exclusive, reverse=reverse)
case("CumSum", ints(3, 1, -7), np.array(-1, np.int64))

def draw(*dims):
    """Truth values."""
    return rng.integers(0, 2, dims).astype(bool)


for op in ["Acos", "Asin", "Atanh"]:
    case(op, np.clip(rough(20) / 3, -0.9, 0.9), exact=False)
for op in ["Asinh", "Atan", "Cosh", "Sinh", "Tan"]:
    case(op, rough(20), exact=False)
case("Acosh", 1 + np.abs(rough(20)), exact=False)
for op, several in {
    "Celu": [{}, {"alpha": 0.3}], "Elu": [{}, {"alpha": 0.3}], "Gelu": [{}, {"approximate": "tanh"}], "HardSigmoid": [{}, {"alpha": 0.3, "beta": 0.4}],
    "HardSwish": [{}], "LeakyRelu": [{}, {"alpha": 0.3}], "Mish": [{}], "Selu": [{}, {"alpha": 1.5, "gamma": 0.7}], "Softplus": [{}], "Softsign": [{}],
    "ThresholdedRelu": [{}, {"alpha": 0.3}], "Shrink": [{}, {"bias": 0.25, "lambd": 0.3}],
}.items():
    for attributes in several:
        case(op, np.maximum(rough(3, 9) * 3, -2), exact=op in ("ThresholdedRelu", "Shrink"), **attributes)
case("Shrink", ints(-7, 0, 1, 9), bias=2.0, lambd=3.0)
case("PRelu", rough(2, 3, 4), rough(3, 1), exact=False)
case("PRelu", real(2, 3, 4), np.array(0.25, np.float32))
case("IsNaN", special)
for up, down in [(1, 1), (0, 1), (1, 0)]:
    case("IsInf", special, detect_positive=up, detect_negative=down)
for dtype in (np.uint8, np.uint16, np.uint32):
    few = rng.integers(0, np.iinfo(dtype).max, (3, 5), dtype)
    for direction in ("LEFT", "RIGHT"):
        case("BitShift", few, rng.integers(0, 8, 5).astype(dtype), direction=direction)
for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    for op in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]:
        case(op, rng.integers(least, most, (3, 5), dtype), rng.integers(least, most, (1, 5), dtype))
    case("BitwiseNot", rng.integers(least, most, (3, 5), dtype))
for op in ["Softmax", "LogSoftmax", "Hardmax"]:
    for axis in (0, 1, -1):
        case(op, rough(3, 4, 5), axis=axis, exact=op == "Hardmax")
    case(op, real(3, 4), exact=op == "Hardmax")
for axis in (0, -1):
    for p in (1, 2):
        case("LpNormalization", np.concatenate([rough(3, 4), np.zeros((1, 4), np.float32)]), axis=axis, p=p, exact=False)
case("MeanVarianceNormalization", rough(2, 3, 4, 5), exact=False)
case("MeanVarianceNormalization", rough(2, 3, 4), axes=[1, -1], exact=False)
case("ReduceLogSumExp", rough(3, 5), ints(1), exact=False)
case("ReduceLogSumExp", rough(3, 5) * 100, exact=False)
case("ReduceLogSumExp", rough(3, 5, 2), ints(0, -1), keepdims=0, exact=False)
for op in ["ReduceMax", "ReduceMin"]:
    case(op, rng.integers(0, 255, (3, 5), np.uint8), ints(1))
    case(op, rng.integers(-128, 127, (3, 5), np.int8), ints(0), keepdims=0)
for mask in [draw(3, 4), rng.integers(-1, 2, (2, 3, 2)), real(7) * draw(7), np.zeros((2, 2), np.float32)]:
    case("NonZero", mask)
case("Compress", x, draw(60))
case("Compress", x, np.array([False, True, True]))
for axis in (0, 1, -1):
    case("Compress", x, np.array([True, False, True]), axis=axis)
for k in (None, -2, 0, 1, 9, -9):
    for upper in (0, 1):
        for of in (rough(2, 4, 3), rng.integers(-9, 9, (3, 5))):
            case("Trilu", of, *([] if k is None else [np.array(k, np.int64)]), upper=upper)
for k in (-1, 0, 2, 7, -7):
    case("EyeLike", rough(3, 4), k=k)
case("EyeLike", rough(4, 2), dtype=TensorProto.INT64)
case("EyeLike", draw(4, 4), dtype=TensorProto.DOUBLE, k=1)
for t, axis in [(rng.integers(0, 4, (3, 3)), None), (real(4, 3), None), (rng.integers(0, 2, (6, 2)), 0), (rng.integers(0, 2, (2, 7)), 1), (rng.integers(0, 2, (2, 5, 2)), -2)]:
    for ordered in (0, 1):
        case("Unique", t, outputs=4, sorted=ordered, **({} if axis is None else {"axis": axis}))
case("GatherND", x, rng.integers(-3, 3, (5, 1)))
case("GatherND", x, rng.integers(-3, 3, (2, 2, 2)))
case("GatherND", x, rng.integers(-3, 3, (4, 3)))
case("GatherND", x, rng.integers(-4, 4, (3, 2, 1)), batch_dims=1)
case("GatherND", x, rng.integers(-5, 5, (3, 4, 1)), batch_dims=2)
case("GatherND", draw(3, 4), rng.integers(0, 3, (6, 2)))
case("ReverseSequence", rough(5, 3, 2), ints(5, 1, 3))
case("ReverseSequence", rough(3, 5, 2), ints(0, 2, 4), batch_axis=0, time_axis=1)
for mode in ("DCR", "CRD"):
    case("DepthToSpace", rough(2, 12, 2, 3), blocksize=2, mode=mode)
case("SpaceToDepth", rough(2, 3, 4, 6), blocksize=2)
for mode in ("constant", "reflect", "edge", "wrap"):
    case("Pad", rough(3, 4, 5), ints(1, 2, 0, 2, 1, 3), *([np.array(7, np.float32)] if mode == "constant" else []), mode=mode)
    case("Pad", rough(3, 4, 5), ints(1, 2, 0, 1), np.array(0, np.float32), ints(-1, 0), mode=mode)
case("Pad", rough(3, 4, 5), ints(-1, 2, 0, 1, -2, -3))
case("Pad", rng.integers(-9, 9, (2, 3)), ints(1, 1, 1, 1), np.array(5, np.int64))
for op in ["ScatterND", "ScatterElements"]:
    for how in ("add", "mul", "max", "min"):
        if op == "ScatterND":
            case(op, real(4, 3), ints(1, 3, 1).reshape(3, 1), real(3, 3), reduction=how)
        else:
            case(op, real(4, 3), rng.integers(-4, 4, (5, 2)), real(5, 2), reduction=how, axis=0)
for equation, *of in [
    ("ij,jk->ik", (3, 4), (4, 2)), ("ij,jk", (3, 4), (4, 2)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ii->i", (4, 4)), ("ii", (4, 4)), ("ij->ji", (2, 3)),
    ("i,j->ij", (3,), (4,)), ("...ij,...jk->...ik", (2, 1, 3, 4), (1, 5, 4, 2)), ("ij->", (3, 4)), ("ij,ij->i", (3, 4), (3, 4)), ("...a->a...", (2, 3, 4)),
    ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 2)), ("oihw,i->oihw", (2, 3, 2, 2), (3,)),
]:
    case("Einsum", *[real(*d) for d in of], equation=equation)
case("Gemm", real(3, 4), real(4, 2))
case("Gemm", real(4, 3), real(2, 4), real(2), transA=1, transB=1, alpha=0.5, beta=2.0)
case("Gemm", real(3, 4), real(4, 2), real(3, 1), beta=0.25)
for left, right in [((4,), (4,)), ((4,), (4, 3)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)), ((2, 1, 3, 4), (5, 4, 2)), ((3, 4), (2, 4, 2)), ((2, 3, 4), (2, 4, 5))]:
    case("MatMul", real(*left), real(*right))
case("MatMul", rng.integers(-9, 9, (2, 3)), rng.integers(-9, 9, (3, 4)))
for dims, attributes in [
    ((4, 3, 3, 2), {}), ((4, 3, 3, 2), {"strides": [2, 1], "pads": [1, 0, 2, 1]}), ((4, 3, 2, 2), {"dilations": [2, 3]}), ((6, 1, 3, 3), {"group": 3}),
    ((4, 3, 3, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}), ((4, 3, 3, 2), {"auto_pad": "SAME_LOWER"}), ((4, 3, 3, 2), {"auto_pad": "VALID"}),
]:
    case("Conv", real(2, 3, 6, 5), real(*dims), **attributes)
case("Conv", real(2, 3, 6), real(4, 3, 3), real(4), pads=[1, 1])
case("Conv", real(1, 2, 4, 5, 3), real(2, 2, 2, 3, 1), real(2))
for op in ["MaxPool", "AveragePool"]:
    for attributes in [{}, {"strides": [2, 1], "pads": [1, 0, 1, 1]}, {"auto_pad": "SAME_LOWER", "strides": [2, 2]}]:
        case(op, real(2, 3, 6, 5), kernel_shape=[2, 3], exact=op == "MaxPool", **attributes)
    case(op, real(2, 3, 8), kernel_shape=[3], strides=[2], exact=op == "MaxPool")
case("MaxPool", real(2, 3, 7, 7), kernel_shape=[2, 3], dilations=[2, 3])
case("AveragePool", real(2, 3, 6, 5), kernel_shape=[2, 2], pads=[1, 1, 1, 1], count_include_pad=1)
case("GlobalAveragePool", real(2, 3, 4, 4))
case("GlobalMaxPool", real(2, 3, 4, 5))
case("GroupNormalization", rough(2, 6, 4), rough(3), rough(3), num_groups=3, exact=False)
case("QuantizeLinear", rough(3, 4) * 20, np.array(0.25, np.float32), np.array(3, np.int8))
case("QuantizeLinear", rough(3, 4) * 20, np.array([0.5, 1, 2, 0.25], np.float32), np.array([0, 128, 200, 10], np.uint8), axis=1)
for dtype in (np.float64, np.float16):  # rounded to the type of the file
    for op in ["ReduceSum", "ReduceMean"]:
        case(op, real(3, 5).astype(dtype), ints(1), exact=False)
    case("Mul", rough(5).astype(dtype), rough(5).astype(dtype))
case("Einsum", real(3, 4).astype(np.float64), real(4, 2).astype(np.float64), equation="ij,jk->ik")
case("Where", draw(3, 1), draw(4), draw(3, 4))
case("Where", draw(4), rng.integers(0, 255, 4, np.uint8), rng.integers(0, 255, 4, np.uint8))


def graph_of(name, op, inputs, attributes, outputs):
    names = [f"{name} in {i}" for i in range(len(inputs))]
    outs = [name if i == 0 else f"{name} out {i}" for i in range(outputs)]
    node = helper.make_node(op, names, outs, name, **attributes)
    tensors = [numpy_helper.from_array(np.asarray(v), n) for n, v in zip(names, inputs)]
    return node, tensors, outs


def model_of(graph):
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


nodes, tensors = [], []
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
options.log_severity_level = 3
for name, op, inputs, attributes, outputs in cases:
    node, constants, outs = graph_of(name, op, inputs, attributes, outputs)
    graph = helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name=o) for o in outs], constants)
    inferred = onnx.shape_inference.infer_shapes(model_of(graph), data_prop=True)
    types = {v.name: v for v in list(inferred.graph.value_info) + list(inferred.graph.output)}
    extra, fetch = [], []
    for o in outs:
        t = types[o].type.tensor_type.elem_type or constants[0].data_type  # some equations of Einsum have none
        if t == TensorProto.BFLOAT16:  # fetched as float32
            extra.append(helper.make_node("Cast", [o], [o + " wide"], to=TensorProto.FLOAT))
            fetch.append((o + " wide", TensorProto.FLOAT))
        else:
            fetch.append((o, t))
    graph = helper.make_graph([node] + extra, "g", [], [helper.make_tensor_value_info(o, t, None) for o, t in fetch], constants)
    try:
        session = onnxruntime.InferenceSession(model_of(graph).SerializeToString(), options, providers=["CPUExecutionProvider"])
        want = session.run(None, {})
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:  # for these types
        print(f"{name}: by the reference evaluator of onnx")
        want = onnx.reference.ReferenceEvaluator(model_of(graph)).run(None, {})
    nodes.append(node)
    tensors += constants
    for o, w in zip(outs, want):
        tensors.append(numpy_helper.from_array(np.asarray(w), "want " + o))

path = sys.argv[1] if len(sys.argv) > 1 else "bcnn/onnx/testdata/folding.onnx.gz"
graph = helper.make_graph(nodes, "folding", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1])],
                          [helper.make_tensor_value_info(cases[-1][0], TensorProto.FLOAT, None)], tensors)
with open(path, "wb") as f:
    f.write(gzip.compress(model_of(graph).SerializeToString(), mtime=0))
print(f"{path}: {len(cases)} cases")
