#!/usr/bin/env python3
"""Write bcnn/onnx/testdata/brevitas_*.onnx.gz: small networks as Brevitas exports them.

Each network is written in the form of QONNX, NAME.qonnx, and where Brevitas can as
QuantizeLinear, Clip and DequantizeLinear, NAME.qcdq; both by either exporter of PyTorch
(_old is the older one). What a file holds beside the graph
is told in onnx_exports.py.

Needs brevitas 0.13, torch, onnx and onnxscript.
"""

import argparse
import pathlib
import tempfile

import brevitas.nn as qnn
import onnx
import torch
import torch.nn as nn
from brevitas.export import export_onnx_qcdq, export_qonnx
from brevitas.quant.binary import SignedBinaryActPerTensorConst, SignedBinaryWeightPerTensorConst
from brevitas.quant.scaled_int import Int8WeightPerChannelFloat, Int32Bias
from brevitas.quant.shifted_scaled_int import ShiftedUint8ActPerTensorFloat, ShiftedUint8WeightPerTensorFloat
from brevitas.quant.ternary import SignedTernaryWeightPerTensorConst
from onnx_exports import prepared, write


def sign(**kwargs):
    return qnn.QuantIdentity(act_quant=SignedBinaryActPerTensorConst, **kwargs)


def binary(cin, cout, k=3, **kwargs):
    return qnn.QuantConv2d(cin, cout, k, weight_quant=SignedBinaryWeightPerTensorConst, bias=False, **kwargs)


def conv(cin, cout, bits, k=3, bias=False, **kwargs):
    return qnn.QuantConv2d(cin, cout, k, weight_bit_width=bits, bias=bias, **kwargs)


def net(*body, size=6):
    """A stem of 6 real channels, and a classifier of 8 channels of so many pixels."""
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), *body, nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * size * size, 4))


class Sum(nn.Module):
    """Two quantised values of one scale."""

    def __init__(self):
        super().__init__()
        self.first = qnn.QuantReLU(bit_width=2, return_quant_tensor=True)
        self.conv = conv(6, 6, 2, padding=1)
        self.add = qnn.QuantEltwiseAdd(bit_width=3)
        self.last = conv(6, 8, 2)

    def forward(self, x):
        x = self.first(x)
        return self.last(self.add(self.conv(x), x))


CASES = {
    "sign": (lambda: net(sign(), binary(6, 7, padding=1), nn.BatchNorm2d(7), nn.MaxPool2d(2), sign(), binary(7, 8), size=2), {"binary": 2}),
    "hard_tanh": (lambda: net(qnn.QuantHardTanh(act_quant=SignedBinaryActPerTensorConst, min_val=-0.5, max_val=0.5), binary(6, 8)), {"binary": 1}),
    "w2a2": (lambda: net(qnn.QuantReLU(bit_width=2), conv(6, 7, 2), nn.BatchNorm2d(7), qnn.QuantReLU(bit_width=2), conv(7, 8, 2), size=4), {"binary": 2}),
    "signed": (lambda: net(qnn.QuantIdentity(bit_width=3), conv(6, 8, 3, weight_quant=Int8WeightPerChannelFloat)), {"binary": 1}),
    "ternary": (lambda: net(qnn.QuantReLU(bit_width=2, return_quant_tensor=True), nn.MaxPool2d(2),
                            qnn.QuantConv2d(6, 8, 3, weight_quant=SignedTernaryWeightPerTensorConst, bias=False), size=2), {"binary": 1}),
    "zero_point": (lambda: net(qnn.QuantIdentity(act_quant=ShiftedUint8ActPerTensorFloat, bit_width=2),
                               conv(6, 8, 2, weight_quant=ShiftedUint8WeightPerTensorFloat)), {"binary": 1}),
    "trunc": (lambda: net(qnn.QuantReLU(bit_width=4, return_quant_tensor=True), qnn.TruncAvgPool2d(2, bit_width=2), conv(6, 8, 2), size=2), {"binary": 1}),
    "sum": (lambda: net(Sum()), {"binary": 1}),
    "bias": (lambda: nn.Sequential(qnn.QuantIdentity(return_quant_tensor=True), conv(3, 6, 4, bias=True, bias_quant=Int32Bias, return_quant_tensor=True),
                                   qnn.QuantReLU(bit_width=2, return_quant_tensor=True), conv(6, 8, 2), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 36, 4)), {"binary": 1}),
}

# By the newer exporter of PyTorch, and by the older one.
FORMS = (("qonnx", export_qonnx, True), ("qcdq", export_onnx_qcdq, True), ("qonnx_old", export_qonnx, False), ("qcdq_old", export_onnx_qcdq, False))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="networks; all without any")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bcnn/onnx/testdata"))
    args = parser.parse_args()
    for seed, (name, (make, meta)) in enumerate(CASES.items()):
        if args.names and name not in args.names:
            continue
        network, x = prepared(make, 10, seed)
        x = x[:3]
        with torch.no_grad():
            y = network(x)
        for form, export, dynamo in FORMS:
            if name == "trunc" and "qcdq" in form:
                continue  # rounds to the nearest, which is another network
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "network.onnx"
                try:
                    export(network, x[:1], str(path), dynamo=dynamo, input_names=["input"], output_names=["output"])
                except (AssertionError, RuntimeError) as e:
                    print(name, form, e)  # no ±1, and no biases
                    continue
                model = onnx.load(path)
            write(model, x, y, meta, args.out / f"brevitas_{name}.{form}.onnx.gz")


if __name__ == "__main__":
    main()
