"""Writes which pixels ONNX Runtime takes for the nearest ones, to
bcnn/onnx/testdata/resize.npz: for each way to give coordinates and each way to round an array
[from - 1, to - 1, i] of pixel i of an image of `from` pixels that is resized to `to`; -1 behind
the last.

    python onnx_resize.py ../bcnn/onnx/testdata/resize.npz

ONNX Runtime 1.32 has made the file that is there.
"""

import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

COORDINATES = {  # and the operator set
    "half_pixel": 19,
    "half_pixel_symmetric": 19,
    "pytorch_half_pixel": 19,
    "align_corners": 19,
    "asymmetric": 19,
    "tf_half_pixel_for_nn": 11,
}
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
FROM, TO = 13, 24


def nearest(coordinates, rounding):
    opset = COORDINATES[coordinates]
    inputs = ["x", "" if opset >= 13 else "none", "" if opset >= 13 else "none", "sizes"]
    node = helper.make_node("Resize", inputs, ["y"], mode="nearest", coordinate_transformation_mode=coordinates, nearest_mode=rounding)
    graph = helper.make_graph(
        [node],
        "resize",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, None]), helper.make_tensor_value_info("sizes", TensorProto.INT64, [3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("none", TensorProto.FLOAT, [0], [])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    result = np.full((FROM, TO, TO), -1, np.int8)
    for a in range(1, FROM + 1):
        for b in range(1, TO + 1):
            x = np.arange(a, dtype=np.float32)[None, None]
            result[a - 1, b - 1, :b] = session.run(None, {"x": x, "sizes": np.array([1, 1, b])})[0].ravel()
    return result


onnxruntime.set_default_logger_severity(3)  # it warns of the initializer that is left
np.savez_compressed(sys.argv[1], **{f"{c} {r}": nearest(c, r) for c in COORDINATES for r in ROUNDINGS})
