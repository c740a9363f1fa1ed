"""DigitsNet: a LeNet with binary weights and activations, for MNIST."""

import torch
import torch.nn.functional as F
from torch import nn

from bcnn_layers import BinaryConv2d, BinaryLayer, BinaryLinear, ScaledInput, Sign

SIZE = 28
LABELS = [str(digit) for digit in range(10)]


class DigitsNet(nn.Module):
    """Two convolutions without padding and two dense layers. The first
    convolution reads pixel / 255."""

    def __init__(self):
        super().__init__()
        self.input = ScaledInput(offset=0, divisor=255)
        self.activation = Sign()
        self.conv1 = BinaryConv2d(1, 32, 5)
        self.conv2 = BinaryConv2d(32, 64, 5)
        self.dense1 = BinaryLinear(64 * 4 * 4, 256)
        self.dense2 = BinaryLinear(256, len(LABELS))
        self.norm1 = nn.BatchNorm2d(32, momentum=0.03)
        self.norm2 = nn.BatchNorm2d(64, momentum=0.03)
        self.norm3 = nn.BatchNorm1d(256, momentum=0.03)
        self.norm4 = nn.BatchNorm1d(len(LABELS), momentum=0.03)

    def forward(self, image):
        """Logits [N, 10] of images [N, 1, 28, 28] of values 0..255."""
        x = self.input(image)
        if not torch.onnx.is_in_onnx_export():
            x = x.contiguous(memory_format=torch.channels_last)
        x = self.activation(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        x = self.activation(self.norm2(F.max_pool2d(self.conv2(x), 2)))
        x = x.flatten(1)
        x = self.activation(self.norm3(self.dense1(x)))
        return self.norm4(self.dense2(x))

    def binary_layers(self):
        """The layers with +-1 weights."""
        return [m for m in self.modules() if isinstance(m, BinaryLayer)]

    def describe(self):
        """What a checkpoint needs to build this network again."""
        return {"kind": "digits"}
