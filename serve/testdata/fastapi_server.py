"""ONNX Runtime behind FastAPI, as one would write it, with a network of the shape of VehicleNet:
what docs/serving.md compares bcnn serve with. It answers binary requests of the Open Inference
Protocol for the one model. Packages: fastapi uvicorn[standard] onnxruntime onnx numpy.

usage: fastapi_server.py PORT
"""

import json
import os
import sys

import numpy as np
import onnx
import onnxruntime
import uvicorn
from fastapi import FastAPI, Request, Response
from onnx import TensorProto, helper, numpy_helper


def network():
    """VehicleNet in float32 with random weights: the arithmetic is the same for any."""
    rng = np.random.default_rng(1)
    weights, nodes = [], []

    def constant(name, *shape):
        weights.append(numpy_helper.from_array(rng.normal(0, 0.1, shape).astype(np.float32), name))
        return name

    def node(op, *inputs, **attributes):
        nodes.append(helper.make_node(op, list(inputs), [f"t{len(nodes)}"], **attributes))
        return f"t{len(nodes) - 1}"

    x = node("Transpose", node("Cast", "input", to=TensorProto.FLOAT), perm=[0, 3, 1, 2])
    for i, channels in enumerate((3, 32)):
        x = node("Conv", x, constant(f"w{i}", 32, channels, 5, 5), constant(f"b{i}", 32), pads=[2, 2, 2, 2])
        x = node("Relu", node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]))
    x = node("Flatten", x)
    for i, (n, m) in enumerate(((24 * 24 * 32, 100), (100, 100), (100, 6))):
        x = node("Gemm", x, constant(f"d{i}", n, m), constant(f"e{i}", m))
        if m != 6:
            x = node("Relu", x)
    nodes[-1].output[0] = "output"
    graph = helper.make_graph(
        nodes, "vehiclenet", [helper.make_tensor_value_info("input", TensorProto.UINT8, ["N", 96, 96, 3])],
        [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", 6])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


options = onnxruntime.SessionOptions()
options.intra_op_num_threads = os.cpu_count()
session = onnxruntime.InferenceSession(network(), options, providers=["CPUExecutionProvider"])
app = FastAPI()


@app.post("/v2/models/vehiclenet/infer")
async def infer(request: Request):
    body = await request.body()
    length = int(request.headers["inference-header-content-length"])
    header = json.loads(body[:length])
    x = np.frombuffer(body, np.uint8, offset=length).reshape(header["inputs"][0]["shape"])
    y = session.run(None, {"input": x})[0]
    answer = json.dumps({"model_name": "vehiclenet", "outputs": [
        {"name": "output", "datatype": "FP32", "shape": list(y.shape), "parameters": {"binary_data_size": y.nbytes}}]}).encode()
    return Response(answer + y.tobytes(), media_type="application/octet-stream",
                    headers={"Inference-Header-Content-Length": str(len(answer))})


@app.get("/metrics")
def metrics():
    times = os.times()
    return Response(f"process_cpu_seconds_total {times.user + times.system}\n", media_type="text/plain")


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
