"""Layers of binary convolutional networks for PyTorch.

Weights and activations are +1 or -1. Training keeps real-valued latent
weights; the forward pass sees their signs, and the backward pass lets the
gradient through (straight-through estimator).
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class SignFunction(torch.autograd.Function):
    """sign(x) with the gradient of hard tanh: 1 where |x| <= 1, else 0."""

    @staticmethod
    def forward(ctx, x, zero_is_positive):
        ctx.save_for_backward(x)
        return signs(x, zero_is_positive)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1), None


class WeightSignFunction(torch.autograd.Function):
    """sign(w) for latent weights. They are kept within [-1, 1], so the
    gradient passes unchanged."""

    @staticmethod
    def forward(ctx, latent):
        return signs(latent, False)

    @staticmethod
    def backward(ctx, grad):
        return grad


def signs(x, zero_is_positive=False):
    """+1 or -1 for every element, without a gradient."""
    positive = x >= 0 if zero_is_positive else x > 0
    return positive.to(x.dtype).mul_(2).sub_(1)


class Sign(nn.Module):
    """Binary activation. zero_is_positive chooses the rule for 0: x >= 0
    gives +1, or (the default) only x > 0 does."""

    def __init__(self, zero_is_positive=False):
        super().__init__()
        self.zero_is_positive = zero_is_positive

    def forward(self, x):
        if torch.onnx.is_in_onnx_export():
            # Plain operators (Greater, Where) that any importer reads.
            positive = x >= 0 if self.zero_is_positive else x > 0
            one = torch.ones((), dtype=x.dtype)
            return torch.where(positive, one, -one)
        return SignFunction.apply(x, self.zero_is_positive)


class BinaryLayer(nn.Module):
    """What convolution and dense layers share: one latent weight tensor."""

    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(*shape))
        nn.init.xavier_uniform_(self.weight)
        self.frozen = False

    def binary_weight(self):
        """The weights the forward pass uses."""
        return self.weight if self.frozen else WeightSignFunction.apply(self.weight)

    @torch.no_grad()
    def clip(self):
        """Keeps the latent weights in [-1, 1]: further out they would need
        many steps to change sign. Called after every optimiser step."""
        self.weight.clamp_(-1, 1)

    @torch.no_grad()
    def freeze(self):
        """Replaces the latent weights by their signs, for export."""
        self.weight.copy_(signs(self.weight))
        self.frozen = True


class BinaryConv2d(BinaryLayer):
    """Convolution with +-1 weights and no bias. Padded taps have the value
    padding_value: -1 or +1 for binary inputs, 0 for real ones."""

    def __init__(self, in_channels, out_channels, kernel_size, padding=0, padding_value=-1):
        if padding_value not in (-1, 0, 1):
            raise ValueError("padding_value must be -1, 0 or +1")
        super().__init__(out_channels, in_channels, kernel_size, kernel_size)
        self.padding = padding
        self.padding_value = padding_value

    def forward(self, x):
        weight = self.binary_weight()
        if x.is_contiguous(memory_format=torch.channels_last):
            weight = weight.contiguous(memory_format=torch.channels_last)
        if self.padding == 0 or self.padding_value == 0:
            return F.conv2d(x, weight, padding=self.padding)
        x = F.pad(x, [self.padding] * 4, value=float(self.padding_value))
        return F.conv2d(x, weight)


class BinaryLinear(BinaryLayer):
    """Dense layer with +-1 weights and no bias."""

    def __init__(self, in_features, out_features):
        super().__init__(out_features, in_features)

    def forward(self, x):
        return F.linear(x, self.binary_weight())


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
