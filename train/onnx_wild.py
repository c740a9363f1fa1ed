#!/usr/bin/env python3
"""Write bcnn/onnx/testdata/wild_*.onnx.gz: small networks in the style of published code.

What onnx_exports.py has as single idioms is here as their repositories put it together: how
activations and weights are made few-valued, what stands around the layers, and how shapes are
computed. The files are as onnx_exports.py says.

Needs torch, onnx and onnxscript.
"""

import math

import onnx_exports
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx_exports import Clamped, Conv, Detached, Linear, Moved, Polynomial, Sign, Where, alpha_bireal, alpha_mean, irnet, pm1, stem


class Head(nn.Module):
    """A real stem, a body, and a classifier of the means."""

    def __init__(self, body, cin=6, cout=6):
        super().__init__()
        self.stem, self.body, self.norm, self.fc = stem(cin), body, nn.BatchNorm2d(cout), nn.Linear(cout, 5)

    def forward(self, x):
        x = self.norm(self.body(self.stem(x)))
        return self.fc(F.avg_pool2d(x, x.size(3)).view(x.size(0), -1))


class Scaled(nn.Module):
    """Times a number."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x * self.factor


def masked_ternary(w):
    """Ternary weights as trained ternary quantisation writes them: masks, and what they select
    written into a copy."""
    delta = 0.05 * w.abs().max()
    a, b = (w > delta), (w < -delta)
    t, alpha = torch.zeros_like(w), w[a | b].abs().mean()
    t[a] = alpha
    t[b] = -alpha
    return t


def counted_ternary(w):
    """Ternary weight networks as loops over filters write them: masks, counts, and sums of what
    they select."""
    out = []
    for f in w.unbind(0):
        keep = (f.abs() > 0.7 * f.abs().mean()).nonzero(as_tuple=True)
        alpha = f[keep].abs().sum() / keep[0].numel() if isinstance(keep[0].numel(), int) else f[keep].abs().mean()
        out.append(alpha * torch.sign(f) * (f.abs() > 0.7 * f.abs().mean()).float())
    return torch.stack(out)


def apot(w):
    """Additive powers of two: the nearest of a list of levels for each weight."""
    levels = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0])
    w = (w - w.mean()) / w.std()
    w = (w / 2.0).clamp(-1, 1)
    nearest = (w.view(-1).unsqueeze(1) - levels.unsqueeze(0)).abs().min(dim=1)[1]
    return levels[nearest].view_as(w) * 2.0


class Lsq(nn.Module):
    """LSQ with its factor for the gradient of the step, of the number of values."""

    def __init__(self, low, high):
        super().__init__()
        self.s, self.low, self.high = nn.Parameter(torch.tensor(0.43)), low, high

    def forward(self, x):
        g = 1.0 / math.sqrt(x.numel() * self.high) if isinstance(x.numel(), int) else 1.0 / torch.sqrt(x.numel() * float(self.high))
        s = (self.s - self.s * g).detach() + self.s * g
        q = (x / s).clamp(self.low, self.high)
        return ((q.round() - q).detach() + q) * s


class LsqConv(nn.Conv2d):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, bias=False, **kwargs)
        self.quantise = Lsq(-2, 1)

    def forward(self, x):
        return self._conv_forward(x, self.quantise(self.weight), None)


class Ewgs(nn.Module):
    """EWGS: levels between two learned bounds, for activations, and for weights around 0."""

    def __init__(self, levels, weights):
        super().__init__()
        self.low, self.high = nn.Parameter(torch.tensor(-0.9 if weights else 0.0)), nn.Parameter(torch.tensor(0.9 if weights else 1.7))
        self.levels, self.weights = levels, weights

    def forward(self, x):
        x = ((x - self.low) / (self.high - self.low)).clamp(min=0, max=1)
        x = torch.round(x * (self.levels - 1)) / (self.levels - 1)
        return (x - 0.5) * 2 if self.weights else x


class EwgsConv(nn.Conv2d):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, bias=False, **kwargs)
        self.activations, self.weights, self.scale = Ewgs(4, False), Ewgs(2, True), nn.Parameter(torch.tensor(0.7))

    def forward(self, x):
        return self._conv_forward(self.activations(x), self.weights(self.weight), None) * self.scale.abs()


class HandRounded(nn.Conv2d):
    """micronet's DoReFa: rounding is a sign, a magnitude and a floor, of activations and weights."""

    def __init__(self, *args, bits=2, **kwargs):
        super().__init__(*args, **kwargs)
        self.step = 1 / float(2 ** bits - 1)

    def rounded(self, x):
        x = x / self.step
        return torch.sign(x) * torch.floor(torch.abs(x) + 0.5) * self.step

    def forward(self, x):
        w = torch.tanh(self.weight)
        w = 2 * self.rounded(w / 2 / torch.max(torch.abs(w)) + 0.5) - 1
        return self._conv_forward(self.rounded(torch.clamp(x * 0.1, 0, 1)), w, self.bias)


class XnorBlock(nn.Module):
    """XNOR-Net's order: batch norm, sign, convolution, ReLU; weights centred, clamped and scaled."""

    def __init__(self, cin, cout):
        super().__init__()
        self.bn, self.conv, self.relu = nn.BatchNorm2d(cin, eps=1e-4, momentum=0.1), Conv(cin, cout, padding=1, weights=self.binarise, bias=True), nn.ReLU(inplace=True)

    @staticmethod
    def binarise(w):
        w = (w - w.mean(1, keepdim=True)).clamp(-1.0, 1.0)
        m = w.norm(1, 3, keepdim=True).sum(2, keepdim=True).sum(1, keepdim=True).div(w[0].nelement())
        return w.sign().mul(m.expand(w.size()))

    def forward(self, x):
        return self.relu(self.conv(torch.where(self.bn(x) > 0, 1.0, -1.0)))


class ReActBlock(nn.Module):
    """ReActNet: a moved sign, a convolution, a shortcut, and a PReLU between two shifts; two of
    them where the channels double."""

    def __init__(self, channels):
        super().__init__()
        self.move, self.sign, self.conv, self.bn, self.pool = Moved(channels), Polynomial(), Conv(channels, channels, stride=2, padding=1, weights=alpha_bireal), nn.BatchNorm2d(channels), nn.AvgPool2d(2, 2)
        self.before, self.act, self.after = Moved(channels), nn.PReLU(channels), Moved(channels)
        self.point = nn.ModuleList(Conv(channels, channels, k=1, weights=alpha_bireal) for _ in range(2))
        self.norms, self.move2, self.act2 = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2)), Moved(channels), nn.PReLU(2 * channels)

    def forward(self, x):
        y = self.bn(self.conv(self.sign(self.move(x)))) + self.pool(x)
        y = self.after(self.act(self.before(y)))
        b = self.sign(self.move2(y))
        return self.act2(torch.cat([norm(conv(b)) + y for conv, norm in zip(self.point, self.norms)], 1))


class BiRealBlock(nn.Module):
    """Bi-Real Net: one shortcut for every convolution, which shrinks by a pool and a real 1x1."""

    def __init__(self, cin, cout):
        super().__init__()
        self.sign, self.conv, self.bn = Clamped(), Conv(cin, cout, stride=2, padding=1, weights=alpha_bireal), nn.BatchNorm2d(cout)
        self.down = nn.Sequential(nn.AvgPool2d(2, 2), nn.Conv2d(cin, cout, 1, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        return self.bn(self.conv(self.sign(x))) + self.down(x)


class ReCU(nn.Module):
    """ReCU: standardised weights clamped at quantiles of a Laplace distribution, then signs."""

    def __init__(self, cin, cout):
        super().__init__()
        self.weight, self.alpha, self.tau = nn.Parameter(torch.randn(cout, cin, 3, 3)), nn.Parameter(torch.rand(cout, 1, 1) + 0.1), torch.tensor([0.99])

    def forward(self, x):
        w = self.weight
        w = w - w.mean([1, 2, 3], keepdim=True)
        w = w / (torch.sqrt(w.var([1, 2, 3], keepdim=True) + 1e-5) / 2 / math.sqrt(2))
        bound = -torch.log(2 - 2 * self.tau) * w.abs().mean([1, 2, 3], keepdim=True)
        w = torch.max(torch.min(w, bound), -bound)
        return F.conv2d(torch.sign(x), torch.sign(w), None, 1, 1) * self.alpha


class Rotated(nn.Module):
    """RBNN: weights turned by two rotations, from one side and the other."""

    def __init__(self, cin, cout):
        super().__init__()
        self.weight, self.turn = nn.Parameter(torch.randn(cout, cin, 3, 3)), nn.Parameter(torch.tensor([0.3]))
        a, b = 6, cin * 9 // 6
        self.register_buffer("r1", torch.linalg.qr(torch.randn(a, a))[0])
        self.register_buffer("r2", torch.linalg.qr(torch.randn(b, b))[0])

    def forward(self, x):
        w = self.weight
        w = w / torch.sqrt(w.pow(2).sum([1, 2, 3], keepdim=True))
        out = []
        for i in range(w.size(0)):
            m = w[i].view(self.r1.size(0), self.r2.size(0))
            turned = self.r1.t() @ m @ self.r2
            out.append((m + torch.abs(torch.sin(self.turn)) * (turned - m)).view_as(w[i]))
        return F.conv2d(torch.where(x >= 0, 1.0, -1.0), torch.sign(torch.stack(out)) * 0.5, None, 1, 1)


class ReSte(nn.Module):
    """ReSTE: the estimator is a power of the magnitude, whose value cancels."""

    def forward(self, x):
        p = torch.sign(x) * torch.pow(x.abs() + 1e-3, 1 / 3)
        return torch.where(x >= 0, 1.0, -1.0).detach() - p.detach() + p


class GroupNet(nn.Module):
    """Group-Net: bases side by side with a soft gate, whose mean is taken."""

    def __init__(self, channels, bases=3):
        super().__init__()
        self.convs, self.norms = nn.ModuleList(Conv(channels, channels, padding=1) for _ in range(bases)), nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(bases))
        self.gate = nn.Parameter(torch.rand(bases))

    def forward(self, x):
        out = 0
        for conv, norm, gate in zip(self.convs, self.norms, self.gate):
            g = torch.sigmoid(gate)
            out = out + g * norm(conv(torch.where(x >= 0, 1.0, -1.0))) + (1 - g) * x
        return out / len(self.convs)


class BNext(nn.Module):
    """BNext: a squeeze-and-excite gate of the input beside a binary convolution."""

    def __init__(self, channels):
        super().__init__()
        self.move, self.conv, self.norm, self.act = Moved(channels), Conv(channels, channels, padding=1, weights=alpha_mean), nn.BatchNorm2d(channels), nn.PReLU(channels)
        self.squeeze, self.excite = nn.Conv2d(channels, 2, 1), nn.Conv2d(2, channels, 1)

    def forward(self, x):
        y = self.act(self.norm(self.conv(torch.where(self.move(x) >= 0, 1.0, -1.0))))
        s = F.adaptive_avg_pool2d(x, 1)
        return y * torch.sigmoid(self.excite(F.relu(self.squeeze(s)))) + x


class SuperResolution(nn.Module):
    """BBCU and E2FIF: binary bodies at low resolution, a shuffle of pixels, and a bicubic skip."""

    def __init__(self):
        super().__init__()
        self.head, self.tail = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 12, 3, padding=1)
        self.body = nn.ModuleList(Conv(6, 6, padding=1, weights=alpha_mean) for _ in range(2))
        self.moves, self.acts, self.up = nn.ModuleList(Moved(6) for _ in self.body), nn.ModuleList(nn.PReLU(6) for _ in self.body), nn.PixelShuffle(2)

    def forward(self, x):
        y = self.head(x)
        for conv, move, act in zip(self.body, self.moves, self.acts):
            y = act(conv(torch.where(move(y) >= 0, 1.0, -1.0)) + y)
        y = self.up(self.tail(y)) + F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        return y.flatten(1)


class Speech(nn.Module):
    """BiFSMN: depthwise memory over time and binary point convolutions, on sequences."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.memory = nn.Conv1d(3, 8, 3, padding=1), nn.BatchNorm1d(8), nn.Conv1d(8, 8, 5, padding=2, groups=8, bias=False)
        self.weight, self.norm2, self.fc = nn.Parameter(torch.randn(8, 8, 1)), nn.BatchNorm1d(8), nn.Linear(8, 5)

    def forward(self, x):
        x = self.norm(self.first(x))
        y = F.conv1d(torch.where(x >= 0, 1.0, -1.0), pm1(self.weight) * self.weight.abs().mean((1, 2), keepdim=True))
        y = self.norm2(y)
        return self.fc((y + self.memory(y) + x).mean(2))


class Points(nn.Module):
    """BiPointNet: a product for every point, for which all points of all clouds become rows, and
    the largest of each feature."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.norm2 = nn.Linear(3, 8), nn.BatchNorm1d(8), nn.BatchNorm1d(8)
        self.second, self.third, self.fc = Linear(8, 8), Linear(8, 6), nn.Linear(6, 5)

    def rows(self, x, layer):
        n, c, points = x.size()
        return layer(x.transpose(2, 1).contiguous().view(-1, c)).view(n, points, -1).transpose(2, 1).contiguous()

    def forward(self, x):
        x = self.norm(self.rows(x, self.first))
        x = self.norm2(self.rows(torch.where(x >= 0, 1.0, -1.0), self.second))
        x = self.rows(torch.where(x >= 0, 1.0, -1.0), self.third)
        return self.fc(x.max(2)[0])


class PointLabels(Points):
    """PointNet's head: shares of labels for every point, of a matrix of all points, and their roots."""

    def __init__(self):
        super().__init__()
        self.last = nn.Conv1d(6, 4, 1)

    def forward(self, x):
        b, _, n = x.size()
        x = self.norm(self.rows(x, self.first))
        x = self.rows(torch.where(x >= 0, 1.0, -1.0), nn.Sequential(self.second, self.norm2, Where(), self.third))
        x = self.last(x).transpose(2, 1).contiguous()
        return F.softmax(x.view(b * n, 4), dim=-1).view(b, n, 4).sqrt()


class Quotient(nn.Module):
    """Sizes that are computed: as many values as an image has, and channels of groups."""

    def __init__(self):
        super().__init__()
        self.stem, self.conv, self.fc = stem(6), Conv(6, 6), nn.Linear(6 * 16, 5)

    def forward(self, x):
        x = self.conv(torch.where(self.stem(x) >= 0, 1.0, -1.0))
        b, c, h, w = x.shape
        x = x.view(b, 2, c // 2, h * w).transpose(1, 2).reshape(b, -1, h, w)
        return self.fc(x.view(b, x.numel() // b))


class FracInput(nn.Module):
    """FracBNN's thermometer: levels of bytes, compared with a list of thresholds."""

    def __init__(self, levels=8):
        super().__init__()
        self.register_buffer("levels", torch.arange(levels).float() * 32)
        self.conv, self.norm, self.last, self.fc = Conv(3 * levels, 6, padding=1), nn.BatchNorm2d(6), Conv(6, 4), nn.Linear(4, 5)

    def forward(self, x):
        x = torch.round(torch.clamp(x * 64 + 128, 0, 255))
        x = torch.cat([(x > t).float() * 2 - 1 for t in self.levels], 1)
        x = self.norm(self.conv(x))
        return self.fc(self.last(torch.where(x >= 0, 1.0, -1.0)).mean((2, 3)))


class Thermometer(nn.Module):
    """FracBNN's thermometer as its repository writes it: a tensor of all thresholds of all pixels is
    compared with rounded values, which have a dimension for them."""

    def __init__(self, levels=8, size=8):
        super().__init__()
        self.register_buffer("placeholder", torch.ones(1, 3, levels, size, size) * torch.arange(levels).view(1, 1, -1, 1, 1))
        self.conv, self.norm, self.last, self.fc = Conv(3 * levels, 6, padding=1), nn.BatchNorm2d(6), Conv(6, 4), nn.Linear(4, 5)

    def forward(self, x):
        n, c, levels, h, w = self.placeholder.shape
        x = (x * 255.0).view(-1, c, 1, h, w)
        x = (self.placeholder < torch.round(x / 32)).float() * 2.0 - 1.0
        x = self.norm(self.conv(x.view(-1, levels * c, h, w)))
        return self.fc(self.last(torch.where(x >= 0, 1.0, -1.0)).mean((2, 3)))


def repvgg(w):
    """Weights of a branch of 1x1 merged into those of 3x3, made by a convolution and a pool of weights."""
    one = F.pad(F.conv2d(w, torch.full((1, w.size(1), 3, 3), 0.25)), [1, 1, 1, 1])
    return pm1(w + one - F.max_pool2d(w, 3, 1, 1) / 2)


def diagonal(w):
    """A mask of channels: those on a diagonal and below it."""
    return pm1(w) * torch.tril(torch.ones(w.size(0), w.size(1)))[:, :, None, None]


def ranked(w):
    """Per-filter thresholds of sorted weights."""
    v, _ = w.flatten(1).sort(1)
    return torch.where(w > v[:, v.size(1) // 3].view(-1, 1, 1, 1), 1.0, -1.0)


CASES = {
    "ternary_masks": (lambda: Head(nn.Sequential(Where(), Conv(6, 6, weights=masked_ternary, padding=1))), 8, {"binary": 1, "products": "2"}),
    "twn_loops": (lambda: Head(nn.Sequential(Where(), Conv(6, 6, weights=counted_ternary, padding=1))), 8, {"binary": 1, "products": "2"}),
    "apot": (lambda: Head(nn.Sequential(Where(), Conv(6, 6, weights=apot, padding=1))), 8, {"binary": 1, "products": "4"}),
    "lsq": (lambda: Head(nn.Sequential(nn.ReLU(), Lsq(0, 3), LsqConv(6, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), Lsq(0, 3), LsqConv(6, 6, 3))), 8, {"binary": 2}),
    "ewgs": (lambda: Head(nn.Sequential(EwgsConv(6, 6, 3, padding=1), nn.BatchNorm2d(6), EwgsConv(6, 6, 3, padding=1))), 8, {"binary": 2, "products": "2 2"}),
    "micronet": (lambda: Head(nn.Sequential(Scaled(10), HandRounded(6, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), Scaled(10), HandRounded(6, 6, 3))), 8, {"binary": 2, "tolerance": 1e-6}),
    "xnor": (lambda: Head(nn.Sequential(XnorBlock(6, 8), XnorBlock(8, 6))), 8, {"binary": 2}),
    "react": (lambda: Head(ReActBlock(6), cout=12), 10, {"binary": 3, "ternary": 2}),
    "bireal": (lambda: Head(nn.Sequential(BiRealBlock(6, 8), BiRealBlock(8, 6)), cout=6), 10, {"binary": 2, "ternary": 2}),
    "irnet": (lambda: Head(nn.Sequential(Sign(), Conv(6, 6, weights=irnet, padding=1), nn.BatchNorm2d(6), nn.Hardtanh(), Sign(), Conv(6, 6, weights=irnet))), 10,
              {"binary": 2, "ternary": 1}),
    "recu": (lambda: Head(ReCU(6, 6)), 8, {"binary": 1, "ternary": 1}),
    "rbnn": (lambda: Head(Rotated(6, 6)), 8, {"binary": 1}),
    "reste": (lambda: Head(nn.Sequential(ReSte(), Conv(6, 6, padding=1, weights=alpha_mean))), 8, {"binary": 1}),
    "groupnet": (lambda: Head(GroupNet(6)), 8, {"binary": 3}),
    "bnext": (lambda: Head(BNext(6)), 8, {"binary": 1}),
    "superresolution": (SuperResolution, 8, {"binary": 2}),
    "bifsmn": (Speech, (16,), {"binary": 1}),
    "bipointnet": (Points, (20,), {"binary": 2}),
    "pointlabels": (PointLabels, (20,), {"binary": 2}),
    "sizes": (Quotient, 8, {"binary": 1}),
    "fracbnn": (FracInput, 8, {"binary": 2}),
    "thermometer": (Thermometer, 8, {"binary": 2}),
    "repvgg": (lambda: Head(nn.Sequential(Detached(), Conv(6, 6, weights=repvgg, padding=1))), 8, {"binary": 1, "ternary": 1}),
    "diagonal": (lambda: Head(nn.Sequential(Where(), Conv(6, 6, weights=diagonal))), 8, {"binary": 1, "products": "2"}),
    "ranked": (lambda: Head(nn.Sequential(Where(), Conv(6, 6, weights=ranked))), 8, {"binary": 1}),
}

onnx_exports.ROUNDED |= {"wild_react", "wild_bireal"}
# "Kernel of unknown shape", the older exporter says.
onnx_exports.NEW.add("wild_repvgg")

if __name__ == "__main__":
    onnx_exports.main({"wild_" + name: case for name, case in CASES.items()}, __doc__)
