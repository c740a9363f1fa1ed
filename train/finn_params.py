#!/usr/bin/env python3
"""Writes the CNV network that FINN's BNN-PYNQ publishes for CIFAR-10, road signs or house
numbers (cnvW1A1, BSD 3-Clause) as ONNX, from its folder of parameters.

    git clone https://github.com/Xilinx/BNN-PYNQ
    train/finn_params.py BNN-PYNQ/bnn/params/cifar10/cnvW1A1 cifar10.onnx

The folder holds the memories of an accelerator: LAYER-PE-weights.bin has words of SIMD weights, one
bit each, 1 for +1, of the neurons PE, PE + PEs, PE + 2 PEs, ... one after the other, in the order
(row, column, channel); LAYER-PE-thres.bin has their thresholds: a neuron is +1 where more of its
products are +1 than that, and in the first layer where the sum of inputs / 128 is above it / 256
(finnthesizer.py there). Needs onnx and NumPy.
"""

import argparse
import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

# Processing elements, bits of a word, outputs, inputs (channels of a convolution of 3x3).
LAYERS = [
    (16, 3, 64, 3),
    (32, 32, 64, 64),
    (16, 32, 128, 64),
    (16, 32, 128, 128),
    (4, 32, 256, 128),
    (1, 32, 256, 256),
    (1, 4, 512, 256),
    (1, 8, 512, 512),
    (4, 1, 64, 512),  # or fewer outputs: no more than there are classes are used
]
POOLED = (1, 3)  # convolutions in front of a max-pool
CONVOLUTIONS = 6


def read(folder, layer, kind, elements):
    """The words of a layer, [element][...]."""
    words = [np.fromfile(folder / f"{layer}-{pe}-{kind}.bin", "<u8" if kind == "weights" else "<i8") for pe in range(elements)]
    return np.stack(words)


def weights(folder, layer):
    """The weights of a layer, +-1, [output][input], or [output][channel][row][column]."""
    elements, simd, _, inputs = LAYERS[layer]
    n = inputs * (9 if layer < CONVOLUTIONS else 1)
    words = read(folder, layer, "weights", elements).reshape(elements, -1, n // simd)
    words = words.transpose(1, 0, 2).reshape(-1, n // simd, 1)
    bits = words >> np.arange(simd, dtype=np.uint64) & np.uint64(1)
    outputs = len(words)
    w = bits.reshape(outputs, n).astype(np.float32) * 2 - 1
    return w.reshape(outputs, 3, 3, inputs).transpose(0, 3, 1, 2) if layer < CONVOLUTIONS else w


def thresholds(folder, layer):
    """What sums of a layer have to be above."""
    elements, _, outputs, inputs = LAYERS[layer]
    t = read(folder, layer, "thres", elements).reshape(elements, outputs // elements).T.reshape(outputs).astype(np.float32)
    if layer == 0:
        return t / 2  # of sums of inputs as integers
    return 2 * t - inputs * (9 if layer < CONVOLUTIONS else 1)


def build(folder, labels, scale):
    nodes, values = [], []

    def constant(name, array):
        values.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def node(op, *inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"{op}_{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    one, minus, zero = constant("one", 1), constant("minus one", -1), constant("zero", 0)
    x = node("Sub", node("Cast", "image", to=TensorProto.FLOAT), constant("middle", 128))
    for layer in range(len(LAYERS) - 1):
        w, t = constant(f"w{layer}", weights(folder, layer)), thresholds(folder, layer)
        if layer < CONVOLUTIONS:
            x = node("Sub", node("Conv", x, w), constant(f"t{layer}", t[:, None, None]))
        else:
            if layer == CONVOLUTIONS:
                x = node("Flatten", x)
            x = node("Sub", node("Gemm", x, w, transB=1), constant(f"t{layer}", t))
        x = node("Where", node("Greater", x, zero), one, minus)
        if layer in POOLED:
            x = node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    last = len(LAYERS) - 1
    x = node("Gemm", x, constant("w8", weights(folder, last)[: len(labels)]), transB=1)
    nodes.append(helper.make_node("Mul", [x, constant("scale", scale)], ["logits"]))
    image = helper.make_tensor_value_info("image", TensorProto.UINT8, ["N", 3, 32, 32])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", len(labels)])
    graph = helper.make_graph(nodes, "cnv", [image], [logits], values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("params", type=pathlib.Path)
    parser.add_argument("onnx", type=pathlib.Path)
    parser.add_argument("--name", help="of the network (default: that of the file)")
    parser.add_argument("--scale", type=float, default=1 / 64, help="of the sums of the last layer, for probabilities (default 1/64)")
    args = parser.parse_args()
    labels = [line.strip() for line in (args.params / "classes.txt").read_text(encoding="utf-8").splitlines() if line.strip()]
    model = build(args.params, labels, args.scale)
    for key, value in {"labels": json.dumps(labels), "name": args.name or args.onnx.stem}.items():
        model.metadata_props.add(key=key, value=value)
    onnx.checker.check_model(model)
    onnx.save(model, args.onnx)


if __name__ == "__main__":
    main()
