#!/usr/bin/env python3
"""Lets bcnn's binary layers take turns with int8 layers of OpenVINO and ONNX Runtime, one thread each.

A layer of 8 bits is a 3×3 convolution with ReLU in QDQ form (uint8, int8 per channel, random
weights). Its time is an eighth of what chains of nine and of one differ by. VGG-16 is a chain
of such layers too, beside `vgg16` of bcnn. Times are of the shortest run in all rounds, of
the other engines processor time.

    int8_layers.py [--bcnn bin/bcnn] [--isa avx512amx] [--rounds 5]
"""

import argparse
import json
import subprocess
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Side, channels, and the operator of `bcnn bench --ops`.
LAYERS = [(56, 64, "dabnn_3x3_64"), (28, 128, "dabnn_3x3_128"), (28, 256, "c256"), (14, 256, "dabnn_3x3_256"),
          (28, 512, "c512"), (14, 512, "conv5.1"), (7, 512, "dabnn_3x3_512")]
VGG16 = [64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0]


class Chain:
    """Layers in QDQ form, one after the other."""

    def __init__(self, channels, side):
        self.rng, self.nodes, self.weights = np.random.default_rng(0), [], []
        self.channels, self.shape = channels, [1, channels, side, side]
        self.scale, self.zero = self.constant(np.float32(0.02)), self.constant(np.uint8(0))
        self.x = self.add("QuantizeLinear", ["x", self.scale, self.zero])

    def constant(self, value):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind, inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def values(self):
        return self.add("DequantizeLinear", [self.x, self.scale, self.zero])

    def quantised(self, y):
        self.x = self.add("QuantizeLinear", [y, self.scale, self.zero])

    def matrix(self, kind, shape, **attributes):
        n = shape[0]
        w = self.add("DequantizeLinear", [self.constant(self.rng.integers(-127, 128, shape).astype(np.int8)),
                                          self.constant(np.full(n, 0.0005, np.float32)), self.constant(np.zeros(n, np.int8))], axis=0)
        bias = self.constant(self.rng.normal(size=n).astype(np.float32))
        return self.add(kind, [self.values(), w, bias], **attributes)

    def conv(self, out):
        y = self.matrix("Conv", (out, self.channels, 3, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
        self.quantised(self.add("Relu", [y]))
        self.channels = out

    def pool(self):
        self.x = self.add("MaxPool", [self.x], kernel_shape=[2, 2], strides=[2, 2])

    def dense(self, inputs, out, last=False):
        y = self.matrix("Gemm", (out, inputs), transB=1)
        if not last:
            self.quantised(self.add("Relu", [y]))
        return y

    def save(self, path, y=None):
        y = y or self.values()
        graph = helper.make_graph(self.nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
                                  [helper.make_tensor_value_info(y, TensorProto.FLOAT, None)], self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def layers(path, side, channels, count):
    c = Chain(channels, side)
    for _ in range(count):
        c.conv(channels)
    c.save(path)


def vgg16(path):
    c = Chain(3, 224)
    for out in VGG16:
        if out:
            c.conv(out)
        else:
            c.pool()
    c.x = c.add("Flatten", [c.x])
    c.dense(25088, 4096)
    c.dense(4096, 4096)
    c.save(path, c.dense(4096, 1000, last=True))


def engines(path):
    """Functions that run a file on one thread, by engine."""
    import onnxruntime as ort
    import openvino as ov

    core = ov.Core()
    request = core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}).create_infer_request()
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).random([int(d) for d in session.get_inputs()[0].shape], np.float32)
    request.set_input_tensor(ov.Tensor(x))
    return {"OpenVINO": request.infer, "ONNX Runtime": lambda: session.run(None, {"x": x})}


def least(run, best, seconds):
    """The shortest of some runs, in ms, and of those before."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.process_time()
        run()
        best = min(best, 1e3 * (time.process_time() - start))
    return best


def ours(args, *what):
    out = subprocess.run([args.bcnn, "bench", "-d", "cpu", "--threads", "1", "--json", *(["--isa", args.isa] if args.isa else []), *what],
                         check=True, capture_output=True, text=True).stdout
    return json.loads(out.splitlines()[0])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bcnn", default="bin/bcnn")
    p.add_argument("--isa", default="", help="instruction set of bcnn")
    p.add_argument("--rounds", type=int, default=5, help="how often the engines take turns")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for side, channels, op in LAYERS:
            runs = {}
            for count in (1, 9):
                path = f"{folder}/{side}x{channels}x{count}.onnx"
                layers(path, side, channels, count)
                runs[count] = engines(path)
            best, binary = {(n, e): float("inf") for n in runs for e in runs[n]}, {"min_ms": float("inf"), "peak_fraction": 0}
            for _ in range(args.rounds):
                for key in best:
                    best[key] = least(runs[key[0]][key[1]], best[key], 0.15)
                now = ours(args, "--ops=" + op)
                binary = {"min_ms": min(binary["min_ms"], now["min_ms"]), "peak_fraction": max(binary["peak_fraction"], now.get("peak_fraction", 0))}
            times = {e: (best[9, e] - best[1, e]) / 8 for e in runs[1]}
            print(f"{side}×{side}×{channels}: bcnn {binary['min_ms']:.4f} ms ({binary['peak_fraction']:.0%} of peak); "
                  + ", ".join(f"{e} {t:.4f} ms ({t / binary['min_ms']:.2f})" for e, t in times.items()), flush=True)
        vgg16(f"{folder}/vgg16.onnx")
        runs, ms = engines(f"{folder}/vgg16.onnx"), float("inf")
        times = dict.fromkeys(runs, float("inf"))
        for _ in range(args.rounds):
            for e in runs:
                times[e] = least(runs[e], times[e], 0.3)
            ms = min(ms, ours(args, "--model", "vgg16", "--runs", "30")["min_us"] / 1e3)
        print(f"vgg16: bcnn {ms:.2f} ms; " + ", ".join(f"{e} {t:.2f} ms ({t / ms:.2f})" for e, t in times.items()))


if __name__ == "__main__":
    main()
