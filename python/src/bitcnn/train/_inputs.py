"""Input schemes: from bytes, as real numbers 0 to 255 of shape [n, channels, height, width], to
what the first convolution reads.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

from ..torch import Sign

# Thresholds are learned at this scale, that of the activations.
LEVELS_PER_UNIT = 64


class Scaled(nn.Module):
    """No binarisation: (x - offset) / divisor."""

    binary = False

    def __init__(self, channels: int = 3, offset: float = 128, divisor: float = LEVELS_PER_UNIT) -> None:
        super().__init__()
        self.out_channels, self.offset, self.divisor = channels, offset, divisor

    def forward(self, x: Tensor) -> Tensor:
        x = x.float() if x.dtype == torch.uint8 else x
        return (x - self.offset) / self.divisor if self.offset else x / self.divisor


class RGBThreshold(nn.Module):
    """One bit for each channel: x / 64 + T[c] > 0, with T learned."""

    binary = True
    out_channels = 3

    def __init__(self) -> None:
        super().__init__()
        self.threshold = nn.Parameter(torch.full((1, 3, 1, 1), -128 / LEVELS_PER_UNIT))
        self.sign = Sign(zero_is_positive=False)

    @torch.no_grad()
    def start(self, images: Tensor) -> None:
        """Starts T at the means of images."""
        self.threshold.copy_(-images.float().mean((0, 2, 3), keepdim=True) / LEVELS_PER_UNIT)

    def forward(self, x: Tensor) -> Tensor:
        x = x.float() if x.dtype == torch.uint8 else x
        result: Tensor = self.sign(x / LEVELS_PER_UNIT + self.threshold)
        return result


def grey(x: Tensor) -> Tensor:
    """(77 R + 150 G + 29 B) >> 8, exactly: [n, 3, h, w] to [n, 1, h, w]."""
    return torch.floor((77 * x[:, 0:1] + 150 * x[:, 1:2] + 29 * x[:, 2:3]) / 256)


class GreyThreshold(nn.Module):
    """One bit for each pixel: grey / 64 + T > 0, with T learned."""

    binary = True
    out_channels = 1
    scheme = "grey"

    def __init__(self) -> None:
        super().__init__()
        self.threshold = nn.Parameter(torch.full((1, 1, 1, 1), -128 / LEVELS_PER_UNIT))
        self.sign = Sign(zero_is_positive=False)

    @torch.no_grad()
    def start(self, images: Tensor) -> None:
        """Starts T at the mean of images."""
        self.threshold.fill_(float(-grey(images.float()).mean() / LEVELS_PER_UNIT))

    def levels(self) -> list[int]:
        """The smallest grey level whose bit is +1."""
        return [math.floor(-self.threshold.item() * LEVELS_PER_UNIT) + 1]

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.sign(grey(x) / LEVELS_PER_UNIT + self.threshold)
        return result


class LocalBinaryPattern(nn.Module):
    """Three bits for each pixel: is the top-left, the right, the bottom-left neighbour brighter
    than the centre? Beyond the border, pixels repeat.
    """

    binary = True
    out_channels = 3
    scheme = "lbp"
    neighbours = ((-1, -1), (0, 1), (1, -1))  # dy, dx

    def levels(self) -> list[int]:
        """It has none."""
        return []

    def forward(self, x: Tensor) -> Tensor:
        difference = torch.zeros(3, 1, 3, 3, dtype=x.dtype, device=x.device)
        difference[:, 0, 1, 1] = -1
        for channel, (dy, dx) in enumerate(self.neighbours):
            difference[channel, 0, 1 + dy, 1 + dx] = 1
        d = conv2d(pad(grey(x), (1, 1, 1, 1), mode="replicate"), difference)
        return (d > 0).to(x.dtype).mul_(2).sub_(1)


def binarize_first(onnx_bytes: bytes, scheme: str, levels: list[int], size: int) -> bytes:
    """Puts bitcnn::Binarize, whose scheme is integer arithmetic on bytes, before the graph of
    an ONNX file that reads its bits.
    """
    import onnx
    from onnx import TensorProto, helper

    model = onnx.load_model_from_string(onnx_bytes)
    graph = model.graph
    bits = graph.input[0].name
    node = helper.make_node("Binarize", ["image"], [bits], domain="bitcnn", scheme=scheme)
    if levels:
        node.attribute.append(helper.make_attribute("thresholds", levels))
    graph.node.insert(0, node)
    del graph.input[:]
    graph.input.append(helper.make_tensor_value_info("image", TensorProto.UINT8, [1, 3, size, size]))
    model.opset_import.append(helper.make_opsetid("bitcnn", 1))
    return bytes(model.SerializeToString())
