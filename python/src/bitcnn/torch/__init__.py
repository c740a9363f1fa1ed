"""Binary layers for PyTorch, which train in floats and infer on packed weights.

>>> import torch
>>> from bitcnn.torch import BinaryConv2d, Sign
>>> layer = BinaryConv2d(64, 64, 3, padding=1, sign=Sign()).eval()
>>> with torch.no_grad():
...     layer(torch.randn(1, 64, 8, 8)).shape
torch.Size([1, 64, 8, 8])

The operators are registered as torch.ops.bitcnn.pack, unpack, binary_conv2d and
binary_linear; they compute on the processor, or on the CUDA device of their tensors.
"""

from ._check import Check, check
from ._compile import compile, to_onnx
from ._modules import BinaryConv2d, BinaryLayer, BinaryLinear, RPReLU, RSign, Sign, sign
from ._operators import binary_conv2d, binary_linear, pack, unpack

__all__ = [
    "BinaryConv2d",
    "BinaryLayer",
    "BinaryLinear",
    "Check",
    "RPReLU",
    "RSign",
    "Sign",
    "binary_conv2d",
    "binary_linear",
    "check",
    "compile",
    "pack",
    "sign",
    "to_onnx",
    "unpack",
]
