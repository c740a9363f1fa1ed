"""Writes MODEL.npz for an ONNX file of bcnn/onnx/testdata: its test input, and every
tensor that onnxruntime computes from it. The output is PyTorch's, which the file has."""

import gzip
import sys

import numpy
import onnx
import onnxruntime
from onnx import numpy_helper

here = __file__.rsplit("/", 1)[0]
for name in sys.argv[1:]:
    with gzip.open(f"{here}/../../../bcnn/onnx/testdata/{name}.onnx.gz") as f:
        model = onnx.load_from_string(f.read())
    tests = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name.startswith("test ")}
    for t in [t for t in model.graph.initializer if t.name.startswith("test ")]:
        model.graph.initializer.remove(t)
    output = model.graph.output[0].name
    names = [n.output[0] for n in model.graph.node if n.output[0] != output]
    shaped = onnx.shape_inference.infer_shapes(model)
    floats = {v.name for v in shaped.graph.value_info if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
    names = [n for n in names if n in floats]
    model.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x = tests["test input"]
    arrays = dict(zip(names, session.run(names, {session.get_inputs()[0].name: x})))
    arrays = {n: a for n, a in arrays.items() if a.ndim and len(a) == len(x)}
    arrays[session.get_inputs()[0].name] = x
    arrays[output] = tests["test output"]
    numpy.savez_compressed(f"{here}/{name}.npz", **arrays)
    print(name, {n: (a.shape, a.dtype) for n, a in arrays.items()})
