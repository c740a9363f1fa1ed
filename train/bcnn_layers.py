"""Input schemes of binary convolutional networks, and the layers of bitcnn.torch.

In these networks sign(x) is +1 only for x > 0.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from bitcnn.torch import BinaryConv2d, BinaryLayer, BinaryLinear
from bitcnn.torch import Sign as AnySign

__all__ = [
    "BinaryConv2d",
    "BinaryLayer",
    "BinaryLinear",
    "GreyThreshold",
    "LocalBinaryPattern",
    "RGBThreshold",
    "ScaledInput",
    "Sign",
]


class Sign(AnySign):
    """Binary activation with the gradient of hard tanh."""

    def __init__(self):
        super().__init__("clipped", zero_is_positive=False)


def signs(x, zero_is_positive=False):
    """+1 or -1 for every element, without a gradient."""
    positive = x >= 0 if zero_is_positive else x > 0
    return positive.to(x.dtype).mul_(2).sub_(1)


# Input schemes: from bytes, given as real numbers 0..255 of shape
# [N, 3, H, W], to what the first convolution reads.

# Thresholds are learned at this scale, that of the activations.
LEVELS_PER_UNIT = 64


class ScaledInput(nn.Module):
    """No binarisation: (x - offset) / divisor."""

    out_channels = 3
    binary = False

    def __init__(self, offset=128, divisor=LEVELS_PER_UNIT):
        super().__init__()
        self.offset = offset
        self.divisor = divisor

    def forward(self, x):
        x = x.float() if x.dtype == torch.uint8 else x
        if self.offset:
            x = x - self.offset
        return x / self.divisor


class RGBThreshold(nn.Module):
    """One bit per channel: x / 64 + T[c] > 0, with T learned."""

    out_channels = 3
    binary = True

    def __init__(self):
        super().__init__()
        self.threshold = nn.Parameter(torch.full((1, 3, 1, 1), -128 / LEVELS_PER_UNIT))
        self.sign = Sign()

    @torch.no_grad()
    def start_at_mean(self, images):
        """Starts T at the mean of each channel of images."""
        mean = images.to(torch.float32).mean((0, 2, 3), keepdim=True)
        self.threshold.copy_(-mean / LEVELS_PER_UNIT)

    def forward(self, x):
        x = x.float() if x.dtype == torch.uint8 else x
        return self.sign(x / LEVELS_PER_UNIT + self.threshold)


def grey(x):
    """(77 R + 150 G + 29 B) >> 8, exactly: [N, 3, H, W] to [N, 1, H, W]."""
    return torch.floor((77 * x[:, 0:1] + 150 * x[:, 1:2] + 29 * x[:, 2:3]) / 256)


def local_binary_pattern(x, neighbours):
    """+1 where the grey level of a neighbour (dy, dx) exceeds that of the
    pixel: [N, 3, H, W] to one channel per neighbour. Beyond the border, pixels
    repeat."""
    difference = torch.zeros(len(neighbours), 1, 3, 3, dtype=x.dtype)
    difference[:, 0, 1, 1] = -1
    for channel, (dy, dx) in enumerate(neighbours):
        difference[channel, 0, 1 + dy, 1 + dx] = 1
    padded = F.pad(grey(x), (1, 1, 1, 1), mode="replicate")
    return signs(F.conv2d(padded, difference))


class BinarizeFunction(torch.autograd.Function):
    """Gives an input scheme of integer arithmetic one node in ONNX:
    bitcnn::Binarize, which reads the bytes. levels are the smallest grey
    levels that become +1; a local binary pattern has none."""

    @staticmethod
    def forward(ctx, image, scheme, levels):
        x = image.float()
        if scheme == "grey":
            return signs(grey(x) - levels[0], zero_is_positive=True)
        return local_binary_pattern(x, LocalBinaryPattern.neighbours)

    @staticmethod
    def symbolic(g, image, scheme, levels):
        attributes = {"scheme_s": scheme}
        if levels:
            attributes["thresholds_i"] = levels
        sizes = image.type().varyingSizes()
        sizes[1] = 1 if scheme == "grey" else 3
        node = g.op("bitcnn::Binarize", image, **attributes)
        return node.setType(image.type().with_dtype(torch.float32).with_sizes(sizes))


class GreyThreshold(nn.Module):
    """One bit per pixel: grey / 64 + T > 0, with T learned."""

    out_channels = 1
    binary = True

    def __init__(self):
        super().__init__()
        self.threshold = nn.Parameter(torch.full((1, 1, 1, 1), -128 / LEVELS_PER_UNIT))
        self.sign = Sign()

    @torch.no_grad()
    def start_at_mean(self, images):
        """Starts T at the mean grey level of images."""
        mean = grey(images.to(torch.float32)).mean()
        self.threshold.fill_(-mean / LEVELS_PER_UNIT)

    def freeze(self):
        """Turns T into the smallest grey level whose bit is +1, for export."""
        self.levels = [math.floor(-self.threshold.item() * LEVELS_PER_UNIT) + 1]

    def forward(self, x):
        if torch.onnx.is_in_onnx_export():
            return BinarizeFunction.apply(x, "grey", self.levels)
        return self.sign(grey(x) / LEVELS_PER_UNIT + self.threshold)


class LocalBinaryPattern(nn.Module):
    """Three bits per pixel: is the top-left, the right, the bottom-left
    neighbour brighter than the centre?"""

    out_channels = 3
    binary = True

    # (dy, dx): every third neighbour, clockwise from the top left.
    neighbours = ((-1, -1), (0, 1), (1, -1))

    def forward(self, x):
        if torch.onnx.is_in_onnx_export():
            return BinarizeFunction.apply(x, "lbp", [])
        return local_binary_pattern(x, self.neighbours)
