"""Detectors that can be trained: the network, what its outputs mean, and its file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from ..torch import BinaryConv2d, Sign, to_onnx
from ._distort import area
from ._inputs import Scaled
from ._networks import Blur, QuickBlock, Recipe

# Of each head. Those of the coarse map are for larger objects.
ANCHORS = 3
# Values of a box before the classes: x, y, width, height, objectness.
VALUES = 5

# What the file of a model says: boxes with lower scores are none, and of two of a class whose
# intersection over union is larger, one is dropped.
THRESHOLD, OVERLAP = 0.01, 0.45

FIT = "letterbox"


class Detector(nn.Module):
    """Two maps [n, anchors * (5 + classes), h, w] of bytes [n, channels, size, size], as real numbers 0 to 255: with
    cells of 8 and of 16 pixels. For each anchor they have x and y, width and height, objectness and the
    classes, as YOLO has them (Redmon and Farhadi, "YOLOv3", 2018). Layers between the first one and the heads are
    blocks of QuickNet, with one binary convolution each.
    """

    anchors: Tensor

    def __init__(self, channels: int, classes: int, size: int, anchors: Tensor) -> None:
        super().__init__()
        self.input = Scaled(channels)
        self.size, self.classes = size, classes
        self.register_buffer("anchors", anchors)  # pixels: [head, anchor, width and height]
        outputs = ANCHORS * (VALUES + classes)
        self.fine = nn.Sequential(
            *(nn.Conv2d(channels, 32, 6, 4, padding=1, bias=False), nn.BatchNorm2d(32)),
            QuickBlock(True, 32),
            *_halved(32, 64),
            *(QuickBlock(True, 64) for _ in range(4)),
        )
        self.coarse = nn.Sequential(*_halved(64, 64), *(QuickBlock(True, 64) for _ in range(2)))
        # What the coarse map knows, for the fine one (Lin and others, "Feature Pyramid Networks", 2017).
        self.down = nn.Sequential(Sign(), BinaryConv2d(64, 64, 1), nn.BatchNorm2d(64))
        self.both = QuickBlock(True, 64)
        self.heads = nn.ModuleList(nn.Sequential(nn.ReLU(), nn.Conv2d(64, outputs, 1)) for _ in range(2))
        for head in self.heads:
            bias: Any = head[1].bias  # type: ignore[index]
            nn.init.zeros_(bias)
            bias.data.view(ANCHORS, -1)[:, VALUES - 1] = -4  # nearly all boxes are none

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.input(x)
        if not torch.onnx.is_in_onnx_export():
            x = x.contiguous(memory_format=torch.channels_last)
        fine = self.fine(x)
        coarse = self.coarse(fine)
        fine = self.both(fine + interpolate(self.down(coarse), scale_factor=2.0, mode="nearest"))
        return self.heads[0](fine), self.heads[1](coarse)

    def boxes(self, maps: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
        """For each head the boxes [n, anchor, h, w, 4], left, top, right and bottom in parts of the input, and
        what is not in them, [n, anchor, h, w, 1 + classes]: objectness and classes before their functions.
        """
        found = []
        for values, anchors in zip(maps, self.anchors, strict=True):
            n, _, h, w = values.shape
            v = values.view(n, ANCHORS, VALUES + self.classes, h, w).permute(0, 1, 3, 4, 2)
            column = torch.arange(w, device=v.device, dtype=v.dtype)
            row = torch.arange(h, device=v.device, dtype=v.dtype)[:, None]
            x, y = (column + v[..., 0].sigmoid()) / w, (row + v[..., 1].sigmoid()) / h
            # e^8 is wider than any input for any anchor; beyond it training would not recover.
            half = v[..., 2:4].clamp(max=8).exp() * (anchors.to(v.dtype) / self.size / 2)[:, None, None]
            centre = torch.stack([x, y], -1)
            found.append((torch.cat([centre - half, centre + half], -1), v[..., VALUES - 1 :]))
        return found

    def onnx(self, channels: int, size: int) -> bytes:
        """An ONNX file of the network, whose input are bytes, with the metadata that say what its boxes are."""
        import onnx

        model = onnx.load_model_from_string(to_onnx(self, torch.zeros(1, channels, size, size, dtype=torch.uint8)))
        heads = [
            {
                "kind": "yolo",
                "params": {
                    "output": i,
                    "anchors": anchors,
                    "centre": "logistic",
                    "object": "logistic",
                    "class": "softmax",
                },
            }
            for i, anchors in enumerate(self.anchors.tolist())
        ]
        detection = {
            "classes": self.classes,
            "background": -1,
            "threshold": THRESHOLD,
            "overlap": OVERLAP,
            "heads": heads,
        }
        onnx.helper.set_model_props(model, {"detection": json.dumps(detection), "photo": json.dumps({"fit": FIT})})
        return bytes(model.SerializeToString())


def _halved(cin: int, cout: int) -> list[nn.Module]:
    return [nn.ReLU(), Blur(cin), nn.Conv2d(cin, cout, 1, bias=False), nn.BatchNorm2d(cout)]


def reader(channels: int, size: int) -> bytes:
    """An ONNX file of a model that reads photos as detectors do, and makes nothing of them."""
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(v, TensorProto.FLOAT, [1, channels, size, size]) for v in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "reader", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, {"photo": json.dumps({"fit": FIT})})
    return bytes(model.SerializeToString())


def anchors_of(sizes: Tensor, heads: int = 2) -> Tensor:
    """Widths and heights that boxes [n, 2] are near to, [heads, ANCHORS, 2], by k-means with the distance
    1 - intersection over union (Redmon and Farhadi, "YOLO9000", 2016), the smallest first. It starts from
    the quantiles of their areas.
    """
    sizes = sizes.double().clamp(min=1)
    count = heads * ANCHORS
    order = sizes.prod(1).argsort(stable=True)
    at = ((torch.arange(count) + 0.5) / count * len(sizes)).long()
    anchors = sizes[order][at]
    for _ in range(100):
        nearest = shape_overlap(sizes, anchors).argmax(1)
        moved = anchors.clone()
        for k in range(count):
            if bool((nearest == k).any()):
                moved[k] = sizes[nearest == k].mean(0)
        if torch.equal(moved, anchors):
            break
        anchors = moved
    anchors = anchors[anchors.prod(1).argsort(stable=True)]
    # Rounded, so that sums in another order make the same file.
    return ((anchors * 100).round() / 100).float().view(heads, ANCHORS, 2)


def shape_overlap(sizes: Tensor, anchors: Tensor) -> Tensor:
    """Intersection over union of [n, 2] and [k, 2] with the same centre: [n, k]."""
    both = torch.minimum(sizes[:, None], anchors[None]).prod(2)
    return both / (sizes.prod(1)[:, None] + anchors.prod(1)[None] - both)


def overlaps(a: Tensor, b: Tensor) -> Tensor:
    """The areas of the intersections of boxes [..., n, 4] and [..., m, 4]: [..., n, m]."""
    low = torch.maximum(a[..., :, None, :2], b[..., None, :, :2])
    high = torch.minimum(a[..., :, None, 2:], b[..., None, :, 2:])
    return (high - low).clamp(min=0).prod(-1)


@dataclass(frozen=True)
class Found:
    """The boxes on an image, the best first."""

    boxes: Tensor  # [n, 4], in parts of the input
    classes: Tensor
    scores: Tensor


def select(net: Detector, maps: Sequence[Tensor], threshold: float, overlap: float = OVERLAP) -> Found:
    """Decides of the maps of one image as the runtime does."""
    all_boxes, all_scores = [], []
    for boxes, rest in net.boxes(maps):
        scores = rest[..., :1].sigmoid() * rest[..., 1:].softmax(-1)
        # In the order of rows, columns and anchors.
        all_boxes.append(boxes[0].permute(1, 2, 0, 3).reshape(-1, 4))
        all_scores.append(scores[0].permute(1, 2, 0, 3).reshape(-1, net.classes))
    boxes, scores = torch.cat(all_boxes), torch.cat(all_scores)
    index, cls = (scores > threshold).nonzero(as_tuple=True)
    by_class = cls.argsort(stable=True)
    index, cls = index[by_class], cls[by_class]
    best = scores[index, cls].argsort(descending=True, stable=True)
    index, cls = index[best], cls[best]
    kept: list[int] = []
    for i in range(len(index)):
        same = [k for k in kept if cls[k] == cls[i]]
        mine, others = boxes[index[i]][None], boxes[index[same]]
        both = overlaps(mine, others)[0]
        if not bool((both / (area(mine) + area(others) - both) > overlap).any()):
            kept.append(i)
    return Found(boxes[index[kept]], cls[kept], scores[index[kept], cls[kept]])


@dataclass(frozen=True)
class DetectorRecipe(Recipe):
    """How a detector is built and trained."""

    build: Callable[[int, int, int, Tensor], Detector] = field(kw_only=True)  # channels, classes, size, anchors


DETECTORS: dict[str, DetectorRecipe] = {
    "detector": DetectorRecipe(build=Detector, size=256, least=32, step=16, zoom=(0.8, 1.25), shift=0.1, rotation=0),
    "detector-grey": DetectorRecipe(
        build=Detector, size=128, least=32, step=16, channels=1, zoom=(0.8, 1.25), shift=0.1, rotation=0
    ),
}
