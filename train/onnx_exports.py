#!/usr/bin/env python3
"""Write bcnn/onnx/testdata/*.onnx.gz: small networks as PyTorch exports them.

Each network is written by both exporters, NAME.old and NAME.dynamo. A file holds
beside the graph, as initialisers that no node reads, "test input" and what PyTorch
makes of it, "test output"; and as metadata how many layers its author meant to be
binary or of a few bits ("test binary"), that it computes in another type than float32 ("test
type"), how many signs keep a value of their own for
0 ("test ternary"), the rule for zero that changes nothing in it ("test zero": plus,
minus), the products of bits of its layers ("test products", 1 without it), and how far
weights that the exporter has rounded are from ±α ("test tolerance").

Needs torch, onnx and onnxscript.
"""

import argparse
import copy
import gzip
import io
import pathlib
import warnings

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx import numpy_helper

warnings.filterwarnings("ignore")


class Where(nn.Module):
    def forward(self, x):
        return torch.where(x >= 0, 1.0, -1.0)


class Detached(nn.Module):
    """The usual straight-through estimator."""

    def forward(self, x):
        return x + (torch.sign(x) - x).detach()


class Clamped(nn.Module):
    """(f − p) + p with a clamp for p, as the authors of Bi-Real Net write it."""

    def forward(self, x):
        p = torch.clamp(x, -1.0, 1.0)
        return torch.sign(x).detach() - p.detach() + p


class Polynomial(nn.Module):
    """As the authors of ReActNet write it."""

    def forward(self, x):
        forward = torch.sign(x)
        mask1, mask2, mask3 = x < -1, x < 0, x < 1
        out1 = (-1) * mask1.type(torch.float32) + (x * x + 2 * x) * (1 - mask1.type(torch.float32))
        out2 = out1 * mask2.type(torch.float32) + (-x * x + 2 * x) * (1 - mask2.type(torch.float32))
        out3 = out2 * mask3.type(torch.float32) + 1 * (1 - mask3.type(torch.float32))
        return forward.detach() - out3.detach() + out3


class Step(nn.Module):
    def forward(self, x):
        return (x > 0).float()


class Sign(nn.Module):
    def forward(self, x):
        return torch.sign(x)


class Tenth(nn.Module):
    """As Hubara's BNN in PyTorch writes it."""

    def forward(self, x):
        return torch.sign(torch.sign(x) + 0.1)


class Rounded(nn.Module):
    def forward(self, x):
        return 2 * torch.round(torch.clamp((x + 1) / 2, 0, 1)) - 1


class ClampRound(nn.Module):
    def forward(self, x):
        return torch.clamp(x, -1, 1).add(1).div(2).round().mul(2).sub(1)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(0.37))

    def forward(self, x):
        return self.alpha * torch.where(x > 0, 1.0, -1.0)


class Bits(nn.Module):
    """DoReFa-Net: k bits from 0 to 1."""

    def __init__(self, k):
        super().__init__()
        self.n = float(2**k - 1)

    def forward(self, x):
        x = torch.clamp(x, 0, 1)
        return x + (torch.round(x * self.n) / self.n - x).detach()


class Stepped(nn.Module):
    """LSQ: signed levels of a learned size."""

    def __init__(self, low, high):
        super().__init__()
        self.scale, self.low, self.high = nn.Parameter(torch.tensor(0.43)), low, high

    def forward(self, x):
        return torch.round(torch.clamp(x / self.scale, self.low, self.high)) * self.scale


class Moved(nn.Module):
    """RSign: a learned threshold, expanded to the size of the image."""

    def __init__(self, channels):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(1, channels, 1, 1) * 0.3)

    def forward(self, x):
        return x + self.bias.expand_as(x)


class Joined(nn.Module):
    """Levels that are joined, shuffled, padded by channels of zeros and taken apart before a layer reads them."""

    def __init__(self, k, pixels=False):
        super().__init__()
        self.stem, self.quantise, self.pixels = stem(6), Bits(k), pixels
        self.conv1, self.bn1 = Conv(6, 6, padding=1, weights=lsq(-1, 1)), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = Conv(12, 6, padding=1), nn.BatchNorm2d(6)
        self.conv3, self.fc = Conv(8, 4), nn.LazyLinear(5)

    def forward(self, x):
        x = self.quantise(self.stem(x))
        y = self.quantise(self.bn1(self.conv1(x)))
        n, c, h, w = y.shape
        both = torch.cat([x, y], 1)
        both = both.view(n, 2, c, h, w).transpose(1, 2).reshape(n, 2 * c, h, w)
        z = self.quantise(self.bn2(self.conv2(both)))
        z = torch.cat([z[:, :, ::2], z[:, :, 1::2]], 2) if self.pixels else z.flip(1)
        return self.fc(self.conv3(F.pad(z, (0, 0, 0, 0, 0, 2))).flatten(1))


class WhereLike(nn.Module):
    """Where of the type of its input."""

    def forward(self, x):
        return torch.where(x >= 0, 1.0, -1.0).to(x.dtype)


class Inside(nn.Module):
    """A network of float16 between an input and an output of float32."""

    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x):
        return self.layers(x.to(self.layers[-1].weight.dtype)).float()


def pm1(w):
    return torch.where(w >= 0, 1.0, -1.0)


def pm1_like(w):
    return pm1(w).to(w.dtype)


def alpha_mean(w):
    """XNOR-Net: mean|w| per filter."""
    return w.abs().mean(dim=(1, 2, 3), keepdim=True) * torch.sign(w)


def alpha_bireal(w):
    """Bi-Real Net and ReActNet, nested means and a straight-through sum."""
    alpha = torch.mean(torch.mean(torch.mean(torch.abs(w), dim=3, keepdim=True), dim=2, keepdim=True), dim=1, keepdim=True).detach()
    binary = alpha * torch.sign(w)
    clipped = torch.clamp(w, -1.0, 1.0)
    return binary.detach() - clipped.detach() + clipped


def irnet(w):
    """IR-Net: standardised weights, a power of two as the scale."""
    n = w.size(0)
    bw = w - w.view(n, -1).mean(-1).view(n, 1, 1, 1)
    bw = bw / bw.view(n, -1).std(-1).view(n, 1, 1, 1)
    sw = torch.pow(torch.tensor([2.0] * n), (torch.log(bw.abs().view(n, -1).mean(-1)) / np.log(2)).round().float()).view(n, 1, 1, 1).detach()
    return torch.sign(bw) * sw


def bits(k):
    """DoReFa-Net: k bits from -1 to 1, odd multiples of 1 / (2^k - 1)."""
    def weights(w):
        n = float(2**k - 1)
        w = torch.tanh(w)
        w = w / (2 * w.abs().max()) + 0.5
        return 2 * (torch.round(w * n) / n) - 1
    return weights


def twn(w):
    """Ternary weight networks: 0 where |w| is small, a factor per filter."""
    threshold = 0.7 * w.abs().mean(dim=(1, 2, 3), keepdim=True)
    keep = (w.abs() > threshold).float()
    alpha = (w.abs() * keep).sum(dim=(1, 2, 3), keepdim=True) / keep.sum(dim=(1, 2, 3), keepdim=True)
    return alpha * torch.sign(w) * keep


def lsq(low, high):
    return lambda w: torch.round(torch.clamp(w / 0.31, low, high)) * 0.31


def ste_weights(w):
    return w + (pm1(w) - w).detach()


def l1_weights(w):
    norm = w.norm(1, 3, keepdim=True).sum(2, keepdim=True).sum(1, keepdim=True)
    return torch.sign(w) * (norm / w[0].numel()).expand(w.size())


class Conv(nn.Module):
    def __init__(self, cin, cout, k=3, weights=pm1, padding=0, fill=0.0, stride=1, bias=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cout, cin, k, k))
        self.bias = nn.Parameter(torch.randn(cout)) if bias else None
        self.weights, self.padding, self.fill, self.stride = weights, padding, fill, stride

    def forward(self, x):
        p = self.padding
        if self.fill:
            x, p = F.pad(x, (p, p, p, p), value=self.fill), 0
        return F.conv2d(x, self.weights(self.weight), self.bias, self.stride, p)


class Linear(nn.Module):
    def __init__(self, cin, cout, weights=pm1):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cout, cin))
        self.weights = weights

    def forward(self, x):
        return F.linear(x, self.weights(self.weight))


def stem(cout=6):
    return nn.Sequential(nn.Conv2d(3, cout, 3, bias=False), nn.BatchNorm2d(cout))


def net(sign, conv, between=(), cout=6):
    """A real convolution, a sign, a binary convolution and a real classifier."""
    return nn.Sequential(stem(cout), *between, sign, conv, nn.BatchNorm2d(4), nn.Flatten(), nn.LazyLinear(5))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = stem(6)
        self.sign1, self.conv1, self.bn1 = Clamped(), Conv(6, 6, weights=alpha_bireal, padding=1), nn.BatchNorm2d(6)
        self.sign2, self.conv2, self.bn2 = Clamped(), Conv(6, 6, weights=alpha_bireal, padding=1), nn.BatchNorm2d(6)
        self.fc = nn.Linear(6 * 7 * 7, 5)

    def forward(self, x):
        x = self.stem(x)
        x = self.bn1(self.conv1(self.sign1(x))) + x
        x = self.bn2(self.conv2(self.sign2(x))) + x
        return self.fc(x.view(x.size(0), -1))


class Hubara(nn.Module):
    """Hard tanh, max-pool, sign; a logarithm of the softmax is left to the user."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            stem(6), nn.Hardtanh(), nn.MaxPool2d(2), Tenth(),
            Conv(6, 7), nn.BatchNorm2d(7), nn.Hardtanh(), Tenth(), nn.Flatten(),
            Linear(7 * 4, 9), nn.BatchNorm1d(9), nn.Hardtanh(), Tenth(), Linear(9, 5), nn.BatchNorm1d(5))

    def forward(self, x):
        return self.features(x)


class Functions(nn.Module):
    """Elementary functions of one value, as modules and as they are written by hand."""

    def __init__(self):
        super().__init__()
        self.functions = [
            nn.Sigmoid(), nn.Tanh(), nn.SiLU(), nn.GELU(), nn.GELU("tanh"), nn.ELU(0.7), nn.SELU(), nn.CELU(1.3), nn.Softplus(), nn.Softplus(beta=2),
            nn.Hardswish(), nn.Hardsigmoid(), nn.Mish(), torch.exp, torch.abs, torch.square, torch.erf,
            lambda x: x * torch.sigmoid(1.702 * x),
            lambda x: torch.sigmoid(x) * x,
            lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)),
            lambda x: x * torch.tanh(F.softplus(x)),
            lambda x: x * F.relu6(x + 3) / 6,
            lambda x: x * F.hardsigmoid(x),
        ]
        self.stem = stem(6)
        self.mix = nn.Conv2d(6 * len(self.functions), 6, 1)
        self.sign, self.conv, self.norm, self.fc = Where(), Conv(6, 4), nn.BatchNorm2d(4), nn.LazyLinear(5)

    def forward(self, x):
        x = self.stem(x)
        x = self.mix(torch.cat([f(x) for f in self.functions], 1))
        return self.fc(F.silu(self.norm(self.conv(self.sign(x)))).flatten(1))


class FunctionSigns(nn.Module):
    """Functions that never fall, in front of signs: thresholds on what stands before them."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            stem(6), nn.Sigmoid(), nn.BatchNorm2d(6), Where(), Conv(6, 8, padding=1), nn.BatchNorm2d(8), nn.ELU(0.5), nn.MaxPool2d(2), Moved(8), Where(),
            Conv(8, 8, padding=1), nn.BatchNorm2d(8), nn.Softplus(), nn.BatchNorm2d(8), Where(), Conv(8, 4), nn.BatchNorm2d(4), nn.Tanh(), nn.Flatten(), nn.LazyLinear(5))

    def forward(self, x):
        return self.layers(x)


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), Step(), Linear(3 * 8 * 8, 12, ste_weights), nn.BatchNorm1d(12), Detached(),
                                    Linear(12, 7, ste_weights), nn.BatchNorm1d(7))

    def forward(self, x):
        return self.layers(x)


class BiReal(nn.Module):
    """Bi-Real Net: an average pool and a real 1×1 convolution on the way around; the mean of the image."""

    def __init__(self):
        super().__init__()
        self.stem = stem(6)
        self.sign, self.conv, self.bn = Where(), Conv(6, 8, weights=alpha_mean, padding=1, stride=2), nn.BatchNorm2d(8)
        self.down = nn.Sequential(nn.AvgPool2d(2, 2), nn.Conv2d(6, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.prelu, self.pool, self.fc = nn.PReLU(8), nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        x = self.prelu(self.bn(self.conv(self.sign(x))) + self.down(x))
        return self.fc(self.pool(x).flatten(1))


class ReActNet(nn.Module):
    """RSign and RPReLU; a 1×1 stage that doubles the channels is two convolutions and a concat."""

    def __init__(self):
        super().__init__()
        self.stem = stem(4)
        self.move1, self.conv1, self.bn1 = Moved(4), Conv(4, 4, weights=alpha_mean, padding=1, stride=2), nn.BatchNorm2d(4)
        self.rprelu1 = nn.Sequential(Moved(4), nn.PReLU(4), Moved(4))
        self.move2, self.bn2, self.bn3 = Moved(4), nn.BatchNorm2d(4), nn.BatchNorm2d(4)
        self.conv2, self.conv3 = Conv(4, 4, 1, weights=alpha_mean), Conv(4, 4, 1, weights=alpha_mean)
        self.rprelu2 = nn.Sequential(Moved(8), nn.PReLU(8), Moved(8))
        self.move4, self.conv4, self.bn4 = Moved(8), Conv(8, 8, weights=alpha_mean, padding=1), nn.BatchNorm2d(8)
        self.sign, self.down, self.fc = Where(), nn.AvgPool2d(2, 2), nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        x = self.rprelu1(self.bn1(self.conv1(self.sign(self.move1(x)))) + self.down(x))
        s = self.sign(self.move2(x))
        x = self.rprelu2(torch.cat([self.bn2(self.conv2(s)) + x, self.bn3(self.conv3(s)) + x], dim=1))
        x = self.bn4(self.conv4(self.sign(self.move4(x)))) + torch.cat([x[:, :4], x[:, :4]], dim=1)
        return self.fc(F.adaptive_avg_pool2d(x, 1).view(x.size(0), -1))


class DenseNet(nn.Module):
    """BinaryDenseNet: what a layer makes is joined to what it has read."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign = stem(5), Where()
        self.bn = nn.ModuleList(nn.BatchNorm2d(5 + 3 * i) for i in range(3))
        self.conv = nn.ModuleList(Conv(5 + 3 * i, 3, padding=1) for i in range(3))
        self.end = nn.Sequential(nn.BatchNorm2d(14), nn.MaxPool2d(2, 2), nn.ReLU(), nn.Conv2d(14, 6, 1), nn.AdaptiveAvgPool2d(1),
                                 nn.Flatten(), nn.Linear(6, 5))

    def forward(self, x):
        x = self.stem(x)
        for bn, conv in zip(self.bn, self.conv):
            x = torch.cat((x, conv(self.sign(bn(x)))), 1)
        return self.end(x)


class Shuffle(nn.Module):
    """ShuffleNet: one half of the channels passes by, then the two are mixed."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.bn = stem(8), Where(), Conv(4, 4, padding=1), nn.BatchNorm2d(4)
        self.conv2, self.fc = Conv(8, 4), nn.Linear(4, 5)

    def forward(self, x):
        x = self.stem(x)
        for _ in range(2):
            a, b = x.chunk(2, dim=1)
            x = torch.cat((a, self.bn(self.conv(self.sign(b)))), dim=1)
            n, c, h, w = x.shape
            x = x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w) + x
        return self.fc(self.conv2(self.sign(x)).mean((2, 3)))


class Gate(nn.Module):
    """Squeeze and excite with a hard gate, clip(x/6 + ½, 0, 1), and without one; ReLU6 on the way."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.bn = stem(6), Where(), Conv(6, 8, padding=1), nn.BatchNorm2d(8)
        self.squeeze, self.excite = nn.Conv2d(8, 3, 1), nn.Conv2d(3, 8, 1)
        self.conv2, self.bn2, self.gate2, self.fc = Conv(8, 8), nn.BatchNorm2d(8), nn.Linear(8, 8), nn.Linear(8, 5)

    def forward(self, x):
        x = F.relu6(self.bn(self.conv(self.sign(self.stem(x)))))
        x = x * F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))
        x = self.bn2(self.conv2(self.sign(x - 1.5)))
        x = self.gate2(x.mean([2, 3])).unsqueeze(-1).unsqueeze(-1) * x
        return self.fc(x.mean(3).mean(2))


class OptionA(nn.Module):
    """The way around of the ResNets for CIFAR: every second pixel, channels of zeros; Hardtanh that no sign follows."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign = stem(4), Where()
        self.conv, self.bn, self.fc = Conv(4, 8, weights=irnet, padding=1, stride=2), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, x):
        x = F.hardtanh(self.stem(x))
        y = self.bn(self.conv(self.sign(x))) + F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 2, 2))
        y = F.avg_pool2d(F.hardtanh(y), y.size(3))
        return self.fc(y.view(y.size(0), -1))


class Xnor(nn.Module):
    """XNOR-Net: every pixel of a sum is scaled by K, the mean of |x| over its window."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv = stem(6), Where(), Conv(6, 4, weights=alpha_mean, padding=1)
        self.end = nn.Sequential(nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))

    def forward(self, x):
        x = self.stem(x)
        k = F.conv2d(x.abs().mean(1, keepdim=True), torch.full((1, 1, 3, 3), 1 / 9), padding=1)
        return self.end(self.conv(self.sign(x)) * k)


class BinaryMean(nn.Module):
    """The sign of the mean of ±1 values, which often is 0."""

    def __init__(self, sign):
        super().__init__()
        self.stem, self.first, self.sign, self.conv = stem(6), Where(), sign, Conv(6, 4)
        self.pool, self.end = nn.AvgPool2d(2, 2), nn.Sequential(nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, 5))

    def forward(self, x):
        return self.end(self.conv(self.sign(self.pool(self.first(self.stem(x))))))


class Resized(nn.Module):
    """Resizing in every way that PyTorch has; nearest pixels of ±1 values stay ±1."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign = stem(6), Where()
        self.conv, self.bn, self.conv2 = Conv(6, 4, padding=1), nn.BatchNorm2d(4), Conv(4, 3)

    def forward(self, x):
        x = self.stem(x)
        y = self.conv(F.interpolate(self.sign(x), scale_factor=2))
        z = self.conv2(F.interpolate(self.sign(self.bn(y)), size=(9, 7)))
        ways = [
            y, z, F.interpolate(x, size=(9, 5)), F.interpolate(x, scale_factor=1.5),
            F.interpolate(x, scale_factor=2, mode="bilinear"), F.interpolate(x, size=(4, 11), mode="bilinear", align_corners=True),
            F.interpolate(x, size=(7, 3), mode="bilinear"), F.interpolate(x, scale_factor=0.5, mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=2, mode="bicubic"), F.interpolate(x, size=(5, 9), mode="bicubic", align_corners=True),
        ]
        return torch.cat([w.flatten(1) for w in ways], 1)


class Antialiased(nn.Module):
    """Resizing that takes all pixels into account where images get smaller."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv = stem(6), Where(), Conv(6, 4, padding=1)

    def forward(self, x):
        x = self.conv(self.sign(self.stem(x)))
        sizes = [((3, 2), "bilinear"), ((3, 4), "bicubic"), ((9, 3), "bilinear"), ((1, 11), "bicubic")]
        ways = [F.interpolate(x, size=size, mode=mode, antialias=True) for size, mode in sizes]
        return torch.cat([w.flatten(1) for w in ways], 1)


class Pairs(nn.Module):
    """The smaller and the larger of two tensors, of a tensor and a constant of pixels or channels, and of one that is repeated."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.conv2 = stem(6), Where(), Conv(6, 6, padding=1), Conv(6, 4)
        self.least, self.most = nn.Parameter(torch.randn(1, 6, 1, 1)), nn.Parameter(torch.randn(6, 6, 6))

    def forward(self, x):
        x = self.stem(x)
        y = torch.maximum(self.conv(self.sign(x)), x)  # maxout
        y = torch.minimum(torch.maximum(y, self.least), y.amax((2, 3), keepdim=True) * 0.5)
        y = torch.minimum(torch.maximum(y, y.mean(1, keepdim=True)), self.most)
        return self.conv2(self.sign(y - 0.3)).amax((2, 3))


class Padded(nn.Module):
    """Padding that is not around a convolution or not of zeros, crops, parts of an image, flips."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.real = stem(6), Where(), Conv(6, 4), nn.Conv2d(6, 2, 3, padding=1, padding_mode="reflect")
        self.edge, self.value = nn.ReplicationPad2d((2, 0, 1, 3)), nn.ConstantPad2d((1, 2, 0, 1), 0.5)

    def forward(self, x):
        x = self.stem(x)
        s = self.sign(x)
        top, bottom = x.split(3, dim=2)
        ways = [
            self.real(x), self.conv(F.pad(s, (1, 1, 2, 0), mode="reflect")), self.conv(self.edge(s)), F.relu(F.pad(x, (1, 0, 0, 2))),
            F.max_pool2d(F.pad(x, (1, 1, 1, 1), value=-9.0), 2), self.real(self.value(x)), F.pad(x, (-1, -2, 1, -1)),
            x[:, :, 1:-1, 2:], x[:, 2:5, 1::2], top * bottom, torch.flip(x, [3]), x[:, :, 2], x[..., -1],
        ]
        return torch.cat([w.flatten(1) for w in ways], 1)


class Transposed(nn.Module):
    """Transposed convolutions: real, of ±1 values and weights, with gaps between taps, in groups."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.bn = stem(6), Where(), nn.BatchNorm2d(4)
        self.four = nn.Parameter(torch.randn(6, 4, 4, 4))
        self.three, self.groups = nn.Parameter(torch.randn(6, 4, 3, 3)), nn.Parameter(torch.randn(6, 2, 2, 3))
        self.real = nn.ModuleList([
            nn.ConvTranspose2d(6, 3, 3, stride=2, padding=1, output_padding=1), nn.ConvTranspose2d(6, 2, 2, stride=3, dilation=2),
            nn.ConvTranspose2d(6, 4, 3, stride=1, padding=1), nn.ConvTranspose2d(6, 6, 4, stride=2, padding=3, groups=3),
            nn.ConvTranspose2d(6, 2, (1, 5), stride=(2, 1), padding=(0, 2), dilation=(1, 2), bias=False)])

    def forward(self, x):
        x = self.stem(x)
        s = self.sign(x)
        y = F.conv_transpose2d(s, pm1(self.four), stride=2, padding=1)
        t = self.sign(self.bn(y))
        ways = [y, F.conv_transpose2d(t, pm1(self.four[:4]), stride=1), F.conv_transpose2d(s, pm1(self.three) * 0.25, stride=2, padding=1),
                F.conv_transpose2d(s, pm1(self.groups), stride=(1, 2), groups=3)] + [conv(x) for conv in self.real]
        return torch.cat([w.flatten(1) for w in ways], 1)


class Shuffled(nn.Module):
    """Sub-pixel convolution (ESPCN): channels become pixels; and the largest channel of each pixel."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.last = stem(6), Where(), Conv(6, 8, padding=1), Conv(2, 3)

    def forward(self, x):
        x = self.last(self.sign(F.pixel_shuffle(self.conv(self.sign(self.stem(x))), 2)))
        return x.argmax(1)


class Sequence(nn.Module):
    """One-dimensional layers."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(3, 6, 5, padding=2, bias=False), nn.BatchNorm1d(6))
        self.sign, self.bn, self.bn2 = Where(), nn.BatchNorm1d(4), nn.BatchNorm1d(6)
        self.weight, self.back, self.groups = nn.Parameter(torch.randn(4, 6, 3)), nn.Parameter(torch.randn(4, 6, 2)), nn.Parameter(torch.randn(6, 3, 3))
        self.fc = nn.Linear(6, 5)

    def forward(self, x):
        x = F.max_pool1d(self.stem(x), 2)
        x = F.avg_pool1d(F.conv1d(self.sign(x), pm1(self.weight), stride=2, padding=1), 3, stride=1, padding=1)
        x = F.conv_transpose1d(self.sign(self.bn(x)), pm1(self.back), stride=2)
        x = F.conv1d(F.pad(F.interpolate(self.sign(self.bn2(x)), scale_factor=2), (1, 1), mode="replicate"), pm1(self.groups), dilation=2, groups=2)
        return self.fc(F.adaptive_avg_pool1d(x, 1).flatten(1))


class Best(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net(Where(), Conv(6, 4))

    def forward(self, x):
        return torch.topk(self.net(x).softmax(1), 3)[1]


class PartialPool(nn.Module):
    """The shortcut of ResNet-D: an average pool whose last windows reach beyond the image."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.bn = stem(4), Where(), Conv(4, 8, stride=2, padding=1), nn.BatchNorm2d(8)
        self.down, self.fc = nn.Sequential(nn.AvgPool2d(2, 2, ceil_mode=True), nn.Conv2d(4, 8, 1)), nn.Linear(8, 5)

    def forward(self, x):
        x = self.stem(x)
        return self.fc((self.bn(self.conv(self.sign(x))) + self.down(x)).mean((-2, -1)))


class Broadcast(nn.Module):
    """Sums with what has one pixel, one row or one channel, and sums over pixels and channels."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv = stem(6), Where(), Conv(6, 8, padding=1)
        self.bn, self.conv2, self.fc = nn.BatchNorm2d(8), Conv(8, 5, k=1), nn.Linear(10, 5)

    def forward(self, x):
        x = self.bn(self.conv(self.sign(self.stem(x))))
        x = x - x.mean((2, 3), keepdim=True) + x.amax(3, keepdim=True) * 0.5 + x.sum(1, keepdim=True)
        x = self.conv2(self.sign(x)) * x.mean((2, 3), keepdim=True)[:, :5].expand(-1, -1, x.size(2), x.size(3))
        return self.fc(torch.cat([x.sum((2, 3)), x.amin((2, 3))], 1))


class Constants(nn.Module):
    """Coordinates as channels, a learned position for every pixel, channels of zeros, and the
    product of the channels of every pixel."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv = stem(5), Where(), Conv(7, 6, padding=1)
        y, x = torch.meshgrid(torch.linspace(-1, 1, 6), torch.linspace(-1, 1, 6), indexing="ij")
        self.register_buffer("coordinates", torch.stack([y, x])[None])
        self.position, self.mix = nn.Parameter(torch.randn(1, 6, 6, 6)), nn.Linear(6, 4, bias=False)
        self.conv2, self.fc = Conv(8, 6), nn.Linear(6, 5)

    def forward(self, x):
        x = self.stem(x)
        x = torch.cat([x, self.coordinates.expand(x.size(0), -1, -1, -1)], 1)
        x = self.conv(self.sign(x)) + self.position
        y = self.mix(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        y = torch.cat([y, torch.zeros(x.size(0), 4, x.size(2), x.size(3))], 1)[:, [7, 0, 1, 2, 3, 3, 4, 5]]
        return self.fc(self.conv2(self.sign(y - 0.1)).pow(2).mean((2, 3)))


class TwoValues(nn.Module):
    """AdaBin's activations: two values around any middle."""

    def forward(self, x):
        return torch.sign(torch.clamp((x - 0.05) / 0.8, -1, 1)) * 0.8 + 0.05


class TwoSlopes(nn.Module):
    """PokeBNN's DPReLU: slopes of their own above and below a threshold per channel."""

    def __init__(self, channels):
        super().__init__()
        self.at, self.by = nn.Parameter(torch.randn(1, channels, 1, 1)), nn.Parameter(torch.randn(1, channels, 1, 1))
        self.up, self.down = nn.Parameter(torch.rand(1, channels, 1, 1)), nn.Parameter(torch.rand(1, channels, 1, 1))

    def forward(self, x):
        x = x - self.at
        return torch.where(x > 0, self.up * x, self.down * x) - self.by


class Pact(nn.Module):
    """A clip of absolute values, and its 16 levels."""

    def forward(self, x):
        y = 0.5 * (x.abs() - (x - 3.7).abs() + 3.7)
        return torch.round(y * (15 / 3.7)) / (15 / 3.7)


class Attention(nn.Module):
    """CBAM's gate of pixels, and a gate by the mean of an image."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv = stem(), Where(), Conv(6, 6, padding=1)
        self.gate, self.fc = nn.Conv2d(2, 1, 3, padding=1, bias=False), nn.Linear(6, 5)

    def forward(self, x):
        x = self.stem(x)
        x = self.conv(self.sign(x)) * x.abs().mean((1, 2, 3), keepdim=True)
        x = x * torch.sigmoid(self.gate(torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)))
        return self.fc((x / (1 + torch.exp(-x))).mean((2, 3)))


class Decoder(nn.Module):
    """A vector that becomes an image, with a batch norm on it, and features of the image for
    every pixel."""

    def __init__(self):
        super().__init__()
        self.make, self.norm = nn.Linear(3 * 16, 6 * 16), nn.BatchNorm2d(6)
        self.image, self.sign = nn.Unflatten(1, (6, 4, 4)), Where()
        self.conv, self.bn, self.conv2, self.fc = Conv(6, 6, padding=1), nn.BatchNorm2d(6), Conv(12, 4), nn.Linear(16, 5)

    def forward(self, x):
        x = self.norm(self.image(self.make(x.flatten(1))))
        x = self.bn(self.conv(self.sign(x)))
        y = x.flatten(2)
        y = torch.cat([y, y.max(2, keepdim=True)[0].repeat(1, 1, 16)], 1)
        return self.fc(self.conv2(self.sign(y.view(-1, 12, 4, 4))).flatten(1))


class Unfolded(nn.Module):
    """Convolutions as products with the windows that F.unfold gives."""

    def __init__(self, sign):
        super().__init__()
        self.stem, self.sign, self.bn = stem(6), sign, nn.BatchNorm2d(7)
        self.first, self.second = nn.Parameter(torch.randn(7, 6 * 9)), nn.Parameter(torch.randn(7 * 4, 4))
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        x = pm1(self.first) @ F.unfold(self.sign(self.stem(x)), 3, padding=1)
        x = self.sign(self.bn(x.view(-1, 7, 7, 7)))
        x = F.unfold(x, (2, 2), dilation=(1, 2), stride=(2, 1)).transpose(1, 2) @ pm1(self.second)
        return self.fc(x.transpose(1, 2).view(-1, 4, 3, 5).mean((2, 3)))


class Thermometer(nn.Module):
    """Inputs as comparisons with several thresholds, FracBNN's way and as {0, 1}."""

    def __init__(self):
        super().__init__()
        self.register_buffer("levels", torch.linspace(-1, 1, 5))
        self.conv, self.conv2 = Conv(15, 6, padding=1), Conv(15, 6, padding=1)
        self.sign, self.bn, self.last, self.fc = Where(), nn.BatchNorm2d(6), Conv(6, 4), nn.Linear(4, 5)

    def forward(self, x):
        many = torch.where(x.unsqueeze(2) >= self.levels.view(1, 1, -1, 1, 1), 1.0, -1.0)
        some = torch.stack([(x > t).float() for t in self.levels], 2).flatten(1, 2)
        x = self.conv(many.view(x.size(0), -1, x.size(2), x.size(3))) + self.conv2(some)
        return self.fc(self.last(self.sign(self.bn(x))).mean((2, 3)))


class Powers(nn.Module):
    """Local response normalisation, powers of quarters, and the distance of two vectors."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.lrn = stem(6), Where(), Conv(6, 6), nn.LocalResponseNorm(3, alpha=0.5, k=2.0)
        self.fc = nn.Linear(6, 8)

    def forward(self, x):
        x = self.lrn(self.conv(self.sign(self.lrn(self.stem(x)) - 0.05)))
        y = x.abs().mean((2, 3)) + 0.5
        y = self.fc(y.pow(0.25) * y.pow(-1.5) + y.pow(-0.75) + y.pow(-2) + y.pow(2.5))
        return torch.cat([y, F.pairwise_distance(y[:, :4], y[:, 4:])[:, None], F.cosine_similarity(y[:, :4], y[:, 4:])[:, None]], 1)


def halves(w):
    """SiMaN: 1 for the half of a filter's weights that is largest, 0 for the others."""
    v = w.flatten(1)
    middle = torch.topk(v, v.shape[1] // 2, 1)[0][:, -1:]
    return torch.where(v >= middle, 1.0, 0.0).view_as(w)


class Searched(nn.Module):
    """SLB: the more likely of two values for each weight."""

    def __init__(self):
        super().__init__()
        self.likely = nn.Parameter(torch.randn(4, 6, 3, 3, 2))

    def forward(self, x):
        values = torch.tensor([-1.0, 1.0])
        return F.conv2d(x, F.one_hot(self.likely.argmax(-1), 2).float() @ values)


class Boxes(nn.Module):
    """A detector: offsets and shares of classes for each box, of which a pixel has two."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.bn = stem(6), Where(), Conv(6, 6, padding=1), nn.BatchNorm2d(6)
        self.classes = nn.Conv2d(6, 2 * 3, 3)

    def forward(self, x):
        x = self.bn(self.conv(self.sign(self.stem(x))))
        return self.classes(x).permute(0, 2, 3, 1).reshape(x.size(0), -1, 3).softmax(-1)


class AdaBin(nn.Module):
    """Activations and weights of two values, of a sign with a value of its own for 0."""

    def __init__(self):
        super().__init__()
        self.stem, self.act, self.weight = stem(6), TwoValues(), nn.Parameter(torch.randn(4, 6, 3, 3))
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        middle, spread = self.weight.mean((1, 2, 3), keepdim=True), self.weight.std((1, 2, 3), keepdim=True)
        weight = torch.where(self.weight >= middle, 1.0, -1.0) * spread + middle
        return self.fc(F.conv2d(self.act(self.stem(x)), weight, padding=1).mean((2, 3)))


class PactWhere(nn.Module):
    """PACT with its clip as choices."""

    def forward(self, x):
        y = torch.where(x < 0, torch.zeros_like(x), torch.where(x < 1.7, x, torch.full_like(x, 1.7)))
        return torch.round(y * (3 / 1.7)) / (3 / 1.7)


class Masked(nn.Module):
    """±1 written into a copy, side by side."""

    def forward(self, x):
        y = x.clone()
        y[y >= 0] = 1.0
        y[y < 0] = -1.0
        return y


class SteppedFrom(nn.Module):
    """LSQ+: levels of a learned size that begin anywhere."""

    def __init__(self, low):
        super().__init__()
        self.scale, self.low = nn.Parameter(torch.tensor(0.43)), nn.Parameter(torch.tensor(low))

    def forward(self, x):
        return torch.round(torch.clamp((x - self.low) / self.scale, 0, 3)) * self.scale + self.low


def layer_norm(w):
    """Scaled weight standardisation."""
    return alpha_mean(0.7 * F.layer_norm(w, w.shape[1:]))


def batch_norm(w):
    """The same as a batch norm of one image whose channels are the filters."""
    return alpha_mean(F.batch_norm(w.reshape(1, w.size(0), -1), None, None, training=True, momentum=0.0).reshape_as(w))


def instance_norm(w):
    return alpha_mean(F.instance_norm(w))


def halved(w):
    """Half of the filters are without their first channel."""
    mask = torch.ones_like(w)
    mask[::2, 0] = 0.0
    return pm1(w) * mask


class Standardised(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.sign = stem(6), Where()
        self.convs = nn.ModuleList(Conv(6, 6, weights=w, padding=1) for w in (layer_norm, batch_norm, instance_norm, halved))
        self.norms, self.fc = nn.ModuleList(nn.BatchNorm2d(6) for _ in self.convs), nn.Linear(6, 5)

    def forward(self, x):
        x = self.stem(x)
        for conv, norm in zip(self.convs, self.norms):
            x = norm(conv(self.sign(x)))
        return self.fc(F.adaptive_avg_pool2d(x, 1)[:, :, 0, 0])


class Heads(nn.Module):
    """Boxes of feature maps of two sizes, behind thresholds of each pixel and bits that are rounded."""

    def __init__(self):
        super().__init__()
        self.stem, self.threshold, self.conv = stem(6), nn.Parameter(torch.randn(1, 6, 6, 6)), Conv(6, 6, padding=1)
        self.norm, self.down, self.head = nn.BatchNorm2d(6), Conv(6, 6, stride=2), Conv(6, 8, 1)

    def forward(self, x):
        x = self.norm(self.conv(torch.where(self.stem(x) > self.threshold, 1.0, -1.0)))
        bits = torch.round(torch.sigmoid(x)) * 2 - 1
        maps = [self.head(bits), self.head(torch.where(self.down(bits) >= 0, 1.0, -1.0))]
        return torch.cat([m.permute(0, 2, 3, 1).reshape(m.size(0), -1, 4) for m in maps], 1)


CASES = {  # name: network, image size, metadata
    "where": (lambda: net(Where(), Conv(6, 4, padding=1)), 8, {"binary": 1}),
    "sign_detach": (lambda: net(Detached(), Conv(6, 4)), 8, {"binary": 1, "ternary": 1, "products": "2", "zero": "plus"}),
    "sign_clamp": (lambda: net(Clamped(), Conv(6, 4, weights=alpha_bireal, padding=1)), 8, {"binary": 1, "ternary": 1, "products": "2", "zero": "minus"}),
    "sign_polynomial": (lambda: net(Polynomial(), Conv(6, 4, weights=alpha_bireal, padding=1), [Moved(6)]), 8, {"binary": 1, "ternary": 1, "products": "2", "zero": "plus"}),
    "sign_tenth": (lambda: net(Tenth(), Conv(6, 4)), 8, {"binary": 1}),
    "sign_round": (lambda: net(Rounded(), Conv(6, 4)), 8, {"binary": 1}),
    "sign_scaled": (lambda: net(Scaled(), Conv(6, 4, weights=alpha_mean, padding=1)), 8, {"binary": 1}),
    "weights_mean": (lambda: net(Where(), Conv(6, 4, weights=alpha_mean, stride=2, bias=True)), 9, {"binary": 1}),
    "weights_l1": (lambda: net(Where(), Conv(6, 4, weights=l1_weights)), 8, {"binary": 1}),
    "weights_irnet": (lambda: net(Where(), Conv(6, 4, weights=irnet, padding=1)), 8, {"binary": 1}),
    "weights_detach": (lambda: net(Where(), Conv(6, 4, weights=ste_weights)), 8, {"binary": 1}),
    "pad_minus1": (lambda: net(Where(), Conv(6, 4, padding=1, fill=-1.0)), 8, {"binary": 1}),
    "pad_plus1": (lambda: net(Where(), Conv(6, 4, padding=2, fill=1.0, weights=alpha_mean)), 8, {"binary": 1}),
    "binary01": (lambda: net(Step(), Conv(6, 4, padding=1, weights=alpha_mean, bias=True)), 8, {"binary": 1}),
    "relu_sign": (lambda: net(Sign(), Conv(6, 4, padding=1), [nn.ReLU()]), 8, {"binary": 1}),
    "relu_pool_sign": (lambda: net(Sign(), Conv(6, 4), [nn.ReLU(), nn.MaxPool2d(2)]), 10, {"binary": 1}),
    "odd_sums": (lambda: net(nn.Sequential(Where(), Conv(5, 6), Sign()), Conv(6, 4), cout=5), 8, {"binary": 2}),
    "even_sums": (lambda: net(nn.Sequential(Where(), Conv(6, 6), Sign()), Conv(6, 4)), 8, {"binary": 2, "ternary": 1, "products": "1 2"}),
    "rsign": (lambda: net(Where(), Conv(6, 4), [Moved(6)]), 8, {"binary": 1}),
    "residual": (Residual, 9, {"binary": 2, "ternary": 2, "products": "2 2", "zero": "plus"}),
    "hubara": (Hubara, 10, {"binary": 3}),
    "dense": (Dense, 8, {"binary": 2}),
    "bireal": (BiReal, 10, {"binary": 1}),
    "reactnet": (ReActNet, 10, {"binary": 4}),
    "densenet": (DenseNet, 8, {"binary": 3}),
    "shuffle": (Shuffle, 8, {"binary": 3}),
    "gate": (Gate, 8, {"binary": 2}),
    "option_a": (OptionA, 10, {"binary": 1}),
    "mean_sign": (lambda: BinaryMean(Sign()), 8, {"binary": 1, "ternary": 1, "products": "2"}),
    "mean_where": (lambda: BinaryMean(Where()), 8, {"binary": 1}),
    "xnor": (Xnor, 8, {"binary": 1}),
    "ternary_exact": (lambda: net(nn.Sequential(nn.Hardtanh(), Bits(1), Sign()), Conv(6, 4, padding=1)), 8, {"binary": 1}),
    "twn": (lambda: net(Where(), Conv(6, 4, weights=twn, padding=1)), 8, {"binary": 1, "products": "2"}),
    "twn_ternary": (lambda: net(nn.Sequential(nn.ReLU(), Where(), Conv(6, 6, weights=twn), Sign()), Conv(6, 4, weights=twn)), 8,
                    {"binary": 2, "ternary": 1, "products": "2 4"}),
    "dorefa_w1a2": (lambda: net(Bits(2), Conv(6, 4, weights=alpha_mean, padding=1)), 8, {"binary": 1, "products": "2"}),
    "dorefa_w2a2": (lambda: net(Bits(2), Conv(6, 4, weights=bits(2), padding=1, stride=2), [nn.BatchNorm2d(6)]), 9, {"binary": 1, "products": "6", "tolerance": 1e-6}),
    "dorefa_w1a1": (lambda: net(Bits(1), Conv(6, 4, weights=bits(1), padding=1)), 8, {"binary": 1}),
    "dorefa_w4a4": (lambda: net(nn.Sequential(Bits(4), nn.MaxPool2d(2)), Conv(6, 4, weights=bits(4), padding=1)), 10, {"binary": 1, "tolerance": 1e-6}),
    "lsq_w2a3": (lambda: net(nn.Sequential(nn.ReLU(), Stepped(0, 7)), Conv(6, 4, weights=lsq(-2, 1), padding=1)), 8, {"binary": 1, "products": "1"}),
    "lsq_chain": (lambda: net(nn.Sequential(Stepped(-2, 1), nn.MaxPool2d(2), Conv(6, 6, weights=lsq(-1, 1)), nn.BatchNorm2d(6), nn.ReLU(), Stepped(0, 3)),
                              Conv(6, 4, weights=lsq(-1, 1), padding=1)), 10, {"binary": 2, "products": "4 4"}),
    "functions": (Functions, 8, {"binary": 1}),
    "function_signs": (FunctionSigns, 8, {"binary": 3}),
    "resized": (Resized, 8, {"binary": 2}),
    "padded": (Padded, 8, {"binary": 2}),
    "transposed": (Transposed, 7, {"binary": 4, "products": "1 2 2 1"}),
    "shuffled": (Shuffled, 8, {"binary": 2}),
    "sequence": (Sequence, (24,), {"binary": 3}),
    "best": (Best, 8, {"binary": 1}),
    "clamp_round": (lambda: net(ClampRound(), Conv(6, 4)), 8, {"binary": 1}),
    "broadcast": (Broadcast, 8, {"binary": 2}),
    "constants": (Constants, 8, {"binary": 2}),
    "antialiased": (Antialiased, 8, {"binary": 1}),
    "pairs": (Pairs, 8, {"binary": 2}),
    "partial_pool": (PartialPool, 9, {"binary": 1}),
    "two_values": (lambda: net(TwoValues(), Conv(6, 4, weights=alpha_mean)), 8, {"binary": 1, "ternary": 1, "products": "2"}),
    "two_slopes": (lambda: net(Where(), Conv(6, 4, padding=1), [TwoSlopes(6)]), 8, {"binary": 1}),
    "pact_w1a4": (lambda: net(Pact(), Conv(6, 4, weights=alpha_mean, padding=1)), 8, {"binary": 1, "products": "4"}),
    "attention": (Attention, 8, {"binary": 1}),
    "decoder": (Decoder, 4, {"binary": 2}),
    "unfolded": (lambda: Unfolded(Where()), 9, {"binary": 2}),
    "unfolded_ternary": (lambda: Unfolded(Sign()), 9, {"binary": 2, "ternary": 1, "products": "2 1"}),
    "thermometer": (Thermometer, 8, {"binary": 3}),
    "powers": (Powers, 8, {"binary": 1}),
    "halves": (lambda: net(Where(), Conv(6, 4, weights=halves, padding=1)), 8, {"binary": 1}),
    "searched": (lambda: net(Where(), Searched()), 8, {"binary": 1}),
    "boxes": (Boxes, 8, {"binary": 1}),
    "adabin": (AdaBin, 8, {"binary": 1, "ternary": 1, "products": "2"}),
    "pact_where": (lambda: net(PactWhere(), Conv(6, 4, weights=alpha_mean, padding=1)), 8, {"binary": 1, "products": "2"}),
}

CASES |= {
    "joined_w1a2": (lambda: Joined(2), 8, {"binary": 3, "products": "4 2 2"}),
    "joined_w1a4": (lambda: Joined(4, pixels=True), 8, {"binary": 3}),
}

# The type that a network is exported in, with numbers of that type. What is compared with
# is the same network in float32.
TYPES = {"float16": torch.float16, "float16_levels": torch.float16, "float16_inside": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64}
CASES |= {
    "float16": (lambda: net(WhereLike(), Conv(6, 4, weights=pm1_like, padding=1), [nn.ReLU(), Moved(6)]), 8, {"binary": 1}),
    "float16_levels": (lambda: net(Bits(2), Conv(6, 4, weights=bits(2), padding=1)), 8, {"binary": 1, "products": "6", "tolerance": 1e-3}),
    "float16_inside": (lambda: Inside(net(nn.Sequential(nn.Sigmoid(), nn.BatchNorm2d(6), WhereLike()), Conv(6, 4, weights=pm1_like, fill=1.0, padding=1))), 8, {"binary": 1}),
    "bfloat16": (lambda: net(WhereLike(), Conv(6, 4, weights=pm1_like, stride=2), [nn.MaxPool2d(2)]), 12, {"binary": 1}),
    "float64": (lambda: net(WhereLike(), Conv(6, 4, weights=alpha_mean)), 8, {"binary": 1}),
}

CASES |= {
    "masked": (lambda: net(Masked(), Conv(6, 4, padding=1)), 8, {"binary": 1}),
    "lsq_plus": (lambda: net(nn.Sequential(SteppedFrom(-0.3), Conv(6, 6, weights=lsq(-1, 1)), nn.BatchNorm2d(6), SteppedFrom(-0.8)),
                             Conv(6, 4, weights=alpha_mean, padding=1)), 10, {"binary": 2, "products": "4 2"}),
    "standardised": (Standardised, 8, {"binary": 4, "products": "1 1 1 2"}),
    "heads": (Heads, 8, {"binary": 4}),
}


class Masks(nn.Module):
    """Activations that several comparisons make: a dead zone, two windows, and both of two values."""

    def __init__(self):
        super().__init__()
        self.stem = stem(6)
        self.convs = nn.ModuleList(Conv(6, 6, padding=1) for _ in range(5))
        self.norms, self.fc = nn.ModuleList(nn.BatchNorm2d(6) for _ in self.convs), nn.Linear(6, 5)

    def activations(self, x, y):
        yield (x > 0.5).float() - (x < -0.5).float()
        yield torch.where(x.abs() > 0.3, torch.where(x >= 0, 1.0, -1.0), torch.zeros_like(x))
        yield ((x >= 0) & (x < 1)).float()
        yield torch.where(~((x > 0.25) ^ (x > -0.75)), 1.0, -1.0)
        yield torch.where(torch.logical_and(x > 0, y < 0.5) | (y == x), 1.0, -1.0)

    def forward(self, x):
        x = self.stem(x)
        y = x
        for k, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            a = list(self.activations(x, y))[k]
            x, y = norm(conv(a)), x
        x = x * ((x > -1) & (x <= 1)).float()
        return self.fc(x.mean((2, 3)))


class Adaptive(nn.Module):
    """Adaptive pools of overlapping windows, of some of other sizes, and of more windows than pixels."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.fc = stem(6), Where(), Conv(6, 4), nn.Linear(4 * 25 + 4 * 9 + 4 * 14, 5)

    def forward(self, x):
        x = self.conv(self.sign(F.adaptive_avg_pool2d(self.stem(x), 7) - 0.1))
        return self.fc(torch.cat([F.adaptive_avg_pool2d(x, k).flatten(1) for k in (5, 3, (2, 7))], 1))


class Dilated(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.bn, self.last = stem(6), Where(), Conv(6, 6), nn.BatchNorm2d(6), Conv(6, 4)
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        x = F.max_pool2d(self.sign(self.stem(x)), 2, 1, 1, dilation=2)
        x = F.max_pool2d(self.bn(self.conv(x)), 3, 2, 1, dilation=(2, 1), ceil_mode=True)
        return self.fc(self.last(self.sign(x)).mean((2, 3)))


class Lists(nn.Module):
    """Parts of channels, which the older exporter writes as sequences."""

    def __init__(self):
        super().__init__()
        self.stem, self.sign, self.conv, self.fc = stem(8), Where(), Conv(8, 4), nn.Linear(4, 5)

    def forward(self, x):
        a, b, c = torch.tensor_split(self.stem(x), 3, 1)
        return self.fc(self.conv(self.sign(torch.cat([c, a, b], 1))).amax((2, 3)))


CASES |= {
    "masks": (Masks, 8, {"binary": 5, "products": "2 2 1 1 1"}),
    "adaptive": (Adaptive, 14, {"binary": 1}),
    "dilated": (Dilated, 16, {"binary": 2}),
    "lists": (Lists, 8, {"binary": 1}),
}

# What the newer exporter folds in float32: (±α − c) + c is ±α up to rounding.
ROUNDED = {"sign_clamp", "sign_polynomial", "residual"}

# What the older exporter cannot write.
NEW = {"antialiased", "adaptive"}


def prepared(make, size, seed):
    torch.manual_seed(seed)
    model = make()
    size = size if isinstance(size, tuple) else (size, size)
    x = torch.randn(16, 3, *size)
    model.train()
    with torch.no_grad():
        for _ in range(20):  # statistics of the batch norms
            model(torch.randn(16, 3, *size))
        for m in model.modules():
            if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d)):
                m.weight.copy_(torch.randn_like(m.weight) + 0.5)
                m.bias.copy_(torch.randn_like(m.bias) * 0.3)
    return model.eval(), x


def export(model, x, dynamo):
    buffer = io.BytesIO()
    if dynamo:
        program = torch.onnx.export(model, (x[:1],), dynamo=True, verbose=False)
        return program.model_proto
    torch.onnx.export(model, (x[:1],), buffer, dynamo=False, opset_version=17, input_names=["input"], output_names=["output"],
                      dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}})
    return onnx.load_from_string(buffer.getvalue())


def strip(model):
    """Remove what describes the source code."""
    del model.metadata_props[:]
    model.ClearField("functions")
    for group in (model.graph.node, model.graph.value_info, model.graph.input, model.graph.output, model.graph.initializer):
        for entry in group:
            entry.ClearField("doc_string")
            del entry.metadata_props[:]
    model.graph.ClearField("doc_string")


def write(model, x, y, meta, path):
    """Write a model with what a test needs of it: input, output and what its author meant."""
    strip(model)
    model.graph.initializer.append(numpy_helper.from_array(x.to(y.dtype).numpy(), "test input"))
    model.graph.initializer.append(numpy_helper.from_array(y.numpy(), "test output"))
    for key, value in meta.items():
        model.metadata_props.add(key="test " + key, value=str(value))
    path.write_bytes(gzip.compress(model.SerializeToString(), mtime=0))
    print(path, path.stat().st_size, sorted({n.op_type for n in model.graph.node}))


def main(cases, description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="networks; all without any")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("bcnn/onnx/testdata"))
    args = parser.parse_args()
    for seed, (name, (make, size, meta)) in enumerate(cases.items()):
        if args.names and name not in args.names:
            continue
        network, x = prepared(make, size, seed)
        x = x[:3]
        with torch.no_grad():
            y = network(x)
        if name in TYPES:
            network, meta = network.to(TYPES[name]), meta | {"type": str(TYPES[name])}
            x = x.to(TYPES[name])
            with torch.no_grad():
                y = copy.deepcopy(network).float()(x.float())
            if isinstance(network, Inside):
                x = x.float()
        for dynamo in (False, True):
            if name in NEW and not dynamo:
                continue
            model = export(network, x, dynamo)
            tolerance = {"tolerance": 1e-6} if dynamo and name in ROUNDED else {}
            write(model, x, y, meta | tolerance, args.out / f"{name}.{'dynamo' if dynamo else 'old'}.onnx.gz")


if __name__ == "__main__":
    main(CASES, __doc__)
