"""The networks that can be trained, each in a binary and in a real version of the same shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d, pad

from ..torch import BinaryConv2d, BinaryLinear, Sign, to_onnx
from ._inputs import GreyThreshold, LocalBinaryPattern, RGBThreshold, Scaled, binarize_first


class Network(nn.Module):
    """Logits [n, classes] of bytes [n, channels, size, size], as real numbers 0 to 255."""

    def __init__(self, first: nn.Module, body: nn.Module) -> None:
        super().__init__()
        self.input, self.body = first, body

    def forward(self, x: Tensor) -> Tensor:
        x = self.input(x)
        if not torch.onnx.is_in_onnx_export():
            x = x.contiguous(memory_format=torch.channels_last)  # twice as fast on a processor
        result: Tensor = self.body(x)
        return result

    def onnx(self, channels: int, size: int) -> bytes:
        """An ONNX file of the network, whose input are bytes."""
        if isinstance(self.input, GreyThreshold | LocalBinaryPattern):
            bits = torch.ones(1, self.input.out_channels, size, size)
            return binarize_first(to_onnx(self.body, bits), self.input.scheme, self.input.levels(), size)
        return to_onnx(self, torch.zeros(1, channels, size, size, dtype=torch.uint8))


def _sign(binary: bool) -> nn.Module:
    return Sign(zero_is_positive=False) if binary else nn.ReLU()


def _conv(binary: bool, cin: int, cout: int, kernel: int, padding: int = 0, padding_value: int = -1) -> nn.Module:
    if binary:
        return BinaryConv2d(cin, cout, kernel, padding=padding, padding_value=padding_value)
    return nn.Conv2d(cin, cout, kernel, padding=padding, bias=False)


def _dense(binary: bool, cin: int, cout: int) -> nn.Module:
    return BinaryLinear(cin, cout) if binary else nn.Linear(cin, cout, bias=False)


# A small momentum: batches are small, and the statistics of sums of ±1 move slowly.
_MOMENTUM = 0.03


def _vehiclenet(first: Callable[[], nn.Module]) -> Callable[[bool, int, int], Network]:
    """Khan, Huttunen and Boutellier: two convolutions and three dense layers, all binary; pooling
    comes before the batch norm, on the sums.
    """

    def build(binary: bool, classes: int, size: int) -> Network:
        head: Any = first() if binary else Scaled()
        border = -1 if head.binary else 0
        hidden, channels = 100, 32
        return Network(
            head,
            nn.Sequential(
                _conv(binary, head.out_channels, channels, 5, 2, border),
                nn.MaxPool2d(2),
                nn.BatchNorm2d(channels, momentum=_MOMENTUM),
                _sign(binary),
                _conv(binary, channels, channels, 5, 2),
                nn.MaxPool2d(2),
                nn.BatchNorm2d(channels, momentum=_MOMENTUM),
                _sign(binary),
                nn.Flatten(),
                _dense(binary, channels * (size // 4) ** 2, hidden),
                nn.BatchNorm1d(hidden, momentum=_MOMENTUM),
                _sign(binary),
                _dense(binary, hidden, hidden),
                nn.BatchNorm1d(hidden, momentum=_MOMENTUM),
                _sign(binary),
                _dense(binary, hidden, classes),
                nn.BatchNorm1d(classes, momentum=_MOMENTUM),
            ),
        )

    return build


def _digits(binary: bool, classes: int, size: int) -> Network:
    """A LeNet without padding, of one channel."""
    side = ((size - 4) // 2 - 4) // 2
    return Network(
        Scaled(channels=1, offset=0, divisor=255),
        nn.Sequential(
            _conv(binary, 1, 32, 5),
            nn.MaxPool2d(2),
            nn.BatchNorm2d(32, momentum=_MOMENTUM),
            _sign(binary),
            _conv(binary, 32, 64, 5),
            nn.MaxPool2d(2),
            nn.BatchNorm2d(64, momentum=_MOMENTUM),
            _sign(binary),
            nn.Flatten(),
            _dense(binary, 64 * side**2, 256),
            nn.BatchNorm1d(256, momentum=_MOMENTUM),
            _sign(binary),
            _dense(binary, 256, classes),
            nn.BatchNorm1d(classes, momentum=_MOMENTUM),
        ),
    )


class _BiRealBlock(nn.Module):
    """A convolution with a shortcut around it (Liu et al., ECCV 2018, figure 3)."""

    def __init__(self, binary: bool, cin: int, cout: int) -> None:
        super().__init__()
        stride = 1 if cin == cout else 2
        self.sign = Sign("polynomial") if binary else nn.ReLU()
        self.conv: nn.Module = (
            BinaryConv2d(cin, cout, 3, stride, 1, padding_value=0)
            if binary
            else nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        )
        self.norm = nn.BatchNorm2d(cout)
        self.down = (
            nn.Identity()
            if cin == cout
            else nn.Sequential(nn.AvgPool2d(2, 2), nn.Conv2d(cin, cout, 1, bias=False), nn.BatchNorm2d(cout))
        )

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.norm(self.conv(self.sign(x))) + self.down(x))


class _Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean((2, 3))


def _birealnet18(binary: bool, classes: int, _size: int) -> Network:
    """A ResNet-18 with a shortcut around every binary convolution; first and last layer are real."""
    widths = (64, 64, 64, 64, 64, 128, 128, 128, 128, 256, 256, 256, 256, 512, 512, 512, 512)
    blocks = [_BiRealBlock(binary, a, b) for a, b in pairwise(widths)]
    stem = (nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.MaxPool2d(3, 2, 1))
    return Network(Scaled(), nn.Sequential(*stem, *blocks, _Mean(), nn.Linear(512, classes)))


class Same(nn.Module):
    """Padding for a window of 3 with a stride of 2 as TensorFlow has it."""

    def forward(self, x: Tensor) -> Tensor:
        h, w = x.shape[2] % 2, x.shape[3] % 2
        return pad(x, (w, 1, h, 1))


class QuickBlock(nn.Module):
    """A binary convolution with a shortcut around it, as QuickNet has it."""

    def __init__(self, binary: bool, channels: int) -> None:
        super().__init__()
        self.sign = Sign() if binary else nn.Identity()
        self.conv = _conv(binary, channels, channels, 3, 1, 1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, x + self.norm(self.conv(self.sign(x)).relu()))


class Blur(nn.Module):
    """Halves images: the largest of 2 x 2, then weights of 1, 2, 1 along both sides (Zhang, ICML 2019)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        row = torch.tensor([1.0, 2.0, 1.0])
        weight = (row[:, None] * row / 16).expand(channels, 1, 3, 3).contiguous()
        self.same = Same()
        self.conv = nn.Conv2d(channels, channels, 3, 2, groups=channels, bias=False)
        self.conv.weight = nn.Parameter(weight, requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.conv(self.same(max_pool2d(x, 2, 1))))


def _quicknet_small(binary: bool, classes: int, _size: int) -> Network:
    """Bannink et al., "Larq Compute Engine", MLSys 2021: blocks with shortcuts of one binary
    convolution each, and real stem, transitions and last layer.
    """
    layers: list[nn.Module] = [
        *(Same(), nn.Conv2d(3, 8, 3, 2, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
        *(Same(), nn.Conv2d(8, 8, 3, 2, groups=8, bias=False), nn.BatchNorm2d(8)),
        *(nn.Conv2d(8, 32, 1, bias=False), nn.BatchNorm2d(32)),
    ]
    widths = (32, 64, 256, 512)
    for before, width in zip((0, *widths), widths, strict=False):
        if before:
            layers += [nn.ReLU(), Blur(before), nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)]
        layers += [QuickBlock(binary, width) for _ in range(4)]
    return Network(Scaled(), nn.Sequential(*layers, nn.ReLU(), _Mean(), nn.Linear(512, classes)))


@dataclass(frozen=True)
class Recipe:
    """With which settings a network is trained unless others are given. ``epochs`` are for 3,000
    photos.
    """

    size: int
    least: int  # size
    step: int  # between sizes
    channels: int = 3
    learning_rate: float = 2e-3
    batch: int = 32
    epochs: int = 40
    rotation: float = 0.06  # radians
    zoom: tuple[float, float] = (0.9, 1.2)
    shift: float = 0.04  # of the size
    light: bool = True


@dataclass(frozen=True)
class ClassifierRecipe(Recipe):
    """How a classifier is built and trained.

    ``margin`` is by how much the shorter side of a photo is longer than the network's input,
    which is its centre.
    """

    build: Callable[[bool, int, int], Network] = field(kw_only=True)  # binary, classes, size
    margin: float = 0.0

    def resize(self, size: int) -> int:
        """The length of the shorter side of a photo, 0 where it just fits."""
        return round(size * (1 + self.margin)) if self.margin else 0


def _photo(first: Callable[[], nn.Module]) -> ClassifierRecipe:
    return ClassifierRecipe(build=_vehiclenet(first), size=96, least=16, step=4, margin=1 / 24)


RECIPES: dict[str, ClassifierRecipe] = {
    "vehiclenet": _photo(Scaled),
    "vehiclenet-rgb": _photo(RGBThreshold),
    "vehiclenet-grey": _photo(GreyThreshold),
    "vehiclenet-lbp": _photo(LocalBinaryPattern),
    "quicknet-small": ClassifierRecipe(
        build=_quicknet_small, size=224, least=32, step=32, margin=1 / 7, learning_rate=1e-3
    ),
    "birealnet18": ClassifierRecipe(build=_birealnet18, size=224, least=32, step=32, margin=1 / 7, learning_rate=1e-3),
    "digits": ClassifierRecipe(
        build=_digits,
        size=28,
        least=16,
        step=4,
        channels=1,
        batch=64,
        rotation=0.15,
        zoom=(0.9, 1.1),
        shift=0.05,
        light=False,
    ),
}
