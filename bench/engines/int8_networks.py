#!/usr/bin/env python3
"""Lets bcnn take turns with ONNX Runtime and OpenVINO on networks in int8, one thread each.

The networks have random weights and ONNX Runtime's own static quantisation (QDQ, uint8 and
int8 per channel): ResNet-18, MobileNetV2 with ReLU6, and the same with hard swish. Times
are of the shortest runs: processor time of the others, of bcnn that of the clock. Before
that the outputs are compared: by rounding alone a value may be the next of 256 levels.

    int8_networks.py --models DIR [--bcnn bin/bcnn] [--rounds 20]
"""

import argparse
import json
import os
import subprocess
import tempfile
import time

import numpy as np
import onnx
import resnet18_int8
from onnx import TensorProto, helper, numpy_helper

# Expansion, channels, blocks and stride of the stages of MobileNetV2.
STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def mobilenet(hard_swish):
    rng = np.random.default_rng(2)
    nodes, weights = [], []

    def add(kind, inputs, **attributes):
        name = f"t{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], name=f"{kind}{len(nodes)}", **attributes))
        return name

    def constant(value):
        name = f"w{len(weights)}"
        weights.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def conv(x, inputs, outputs, size, stride, groups=1):
        taps = inputs // groups * size * size
        w = constant(rng.normal(0, (2 / taps) ** 0.5, (outputs, inputs // groups, size, size)))
        b = constant(rng.normal(0, 0.1, outputs))
        return add("Conv", [x, w, b], kernel_shape=[size, size], strides=[stride, stride], pads=[size // 2] * 4, group=groups)

    def activation(x):
        return add("HardSwish", [x]) if hard_swish else add("Clip", [x, constant(0), constant(6)])

    x, channels = activation(conv("x", 3, 32, 3, 2)), 32
    for expansion, out, blocks, first in STAGES:
        for block in range(blocks):
            stride, inner = first if block == 0 else 1, channels * expansion
            y = x if expansion == 1 else activation(conv(x, channels, inner, 1, 1))
            y = conv(activation(conv(y, inner, inner, 3, stride, inner)), inner, out, 1, 1)
            x, channels = add("Add", [x, y]) if stride == 1 and channels == out else y, out
    x = activation(conv(x, channels, 1280, 1, 1))
    x = add("Flatten", [add("GlobalAveragePool", [x])])
    add("Gemm", [x, constant(rng.normal(0, 0.03, (1280, 1000))), constant(np.zeros(1000))])
    nodes[-1].output[0] = "y"
    graph = helper.make_graph(
        nodes, "mobilenet", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1000])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


NETWORKS = {
    "resnet18": resnet18_int8.float_model,
    "mobilenetv2": lambda: mobilenet(False),
    "mobilenetv2-hardswish": lambda: mobilenet(True),
}


def outputs(bcnn, path):
    """What bcnn makes of a random image, and what ONNX Runtime does."""
    import onnxruntime as ort

    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, "x.npy"), x)
        subprocess.run([bcnn, "run", "--model", path, "--input", os.path.join(folder, "x.npy"),
                        "--output", os.path.join(folder, "y.npy")], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        y = np.load(os.path.join(folder, "y.npy"))
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return y, ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def openvino(path):
    """A function that runs a file in OpenVINO on one thread."""
    import openvino as ov

    core = ov.Core()
    request = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}).create_infer_request()
    shape = tuple(request.get_input_tensor().shape)
    request.set_input_tensor(ov.Tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32)))
    return request.infer


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", required=True, help="folder for the networks, which are made once")
    p.add_argument("--bcnn", default="bin/bcnn")
    p.add_argument("--isa", default="", help="instruction set of bcnn")
    p.add_argument("--rounds", type=int, default=5, help="how often the engines take turns")
    args = p.parse_args()
    os.makedirs(args.models, exist_ok=True)
    isa = ["--isa", args.isa] if args.isa else []
    for name, make in NETWORKS.items():
        path = resnet18_int8.quantized(args.models, name, make)
        ours, theirs = outputs(args.bcnn, path)
        runs, shortest = {"ONNX Runtime": resnet18_int8.session(args.models, name, make), "OpenVINO": openvino(path)}, float("inf")
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(args.rounds):
            out = subprocess.run([args.bcnn, "bench", "-d", "cpu", "--threads", "1", "--json", "--runs", "50", *isa, "--model", path],
                                 check=True, capture_output=True, text=True).stdout
            shortest = min(shortest, json.loads(out.splitlines()[0])["min_us"])
            for engine, run in runs.items():
                for _ in range(20):
                    start = time.process_time()
                    run()
                    best[engine] = min(best[engine], 1e3 * (time.process_time() - start))
        print(f"{name}: bcnn {shortest / 1e3:.2f} ms, " + ", ".join(f"{e} {t:.2f} ms" for e, t in best.items()) + "; "
              f"largest difference {np.abs(ours - theirs).max():.3g} of {np.abs(theirs).max():.3g}", flush=True)


if __name__ == "__main__":
    main()
