"""What a detector is trained by: which boxes have to find an object, and how far they are from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from ._annotations import CLASS, CROWD, X0
from ._detector import ANCHORS, Detector, overlaps, shape_overlap
from ._distort import area

# Anchors of at least this shape have to find an object, and the one that is the most like it in any case.
_SHAPE = 0.5
# A box that overlaps an object by more is not wrong to see one.
_NEAR = 0.6
# The weight of the distance of boxes.
_DISTANCE = 2.0


@dataclass(frozen=True)
class Assigned:
    """The boxes of a head that have to find an object."""

    image: Tensor
    anchor: Tensor
    row: Tensor
    column: Tensor
    which: Tensor  # of the objects of the image


def is_object(boxes: Tensor) -> Tensor:
    """Which of the boxes [n, most, 6] are single objects with an area on the image: the others are none at all, of
    the class -1, or crowds.
    """
    return (boxes[..., CLASS] >= 0) & (boxes[..., CROWD] == 0) & (area(boxes[..., X0:CROWD]) > 0)


def assign(boxes: Tensor, anchors: Tensor, shapes: Sequence[tuple[int, int]]) -> list[Assigned]:
    """Gives objects to the cells of their centres, in maps of these heights and widths. ``anchors`` are in parts of
    the image, [head, anchor, 2]. Of two objects for one box it takes the one that is more like the anchor.
    """
    image, which = is_object(boxes).nonzero(as_tuple=True)
    mine = boxes[image, which, X0:CROWD]
    centre = (mine[:, :2] + mine[:, 2:]) / 2
    alike = shape_overlap(mine[:, 2:] - mine[:, :2], anchors.reshape(-1, 2))
    wanted = alike >= _SHAPE
    wanted[torch.arange(len(mine)), alike.argmax(1)] = True
    result = []
    for head, (h, w) in enumerate(shapes):
        part = slice(head * ANCHORS, (head + 1) * ANCHORS)
        at, anchor = wanted[:, part].nonzero(as_tuple=True)
        order = alike[:, part][at, anchor].argsort(descending=True, stable=True)
        at, anchor = at[order], anchor[order]
        column = (centre[at, 0] * w).long().clamp(0, w - 1)
        row = (centre[at, 1] * h).long().clamp(0, h - 1)
        key = ((image[at] * ANCHORS + anchor) * h + row) * w + column
        keys, inverse = key.unique(return_inverse=True)  # type: ignore[no-untyped-call]
        number = torch.arange(len(key), device=key.device)
        first = torch.full_like(keys, len(key)).scatter_reduce(0, inverse, number, "amin")
        result.append(Assigned(image[at][first], anchor[first], row[first], column[first], which[at][first]))
    return result


def generalized_overlap(a: Tensor, b: Tensor) -> Tensor:
    """Intersection over union of boxes [n, 4], less the share that neither has of the box around both (Rezatofighi
    and others, "Generalized Intersection over Union", 2019).
    """
    both = (torch.minimum(a[:, 2:], b[:, 2:]) - torch.maximum(a[:, :2], b[:, :2])).clamp(min=0).prod(1)
    either = area(a) + area(b) - both
    around = (torch.maximum(a[:, 2:], b[:, 2:]) - torch.minimum(a[:, :2], b[:, :2])).prod(1)
    return both / either.clamp(min=1e-9) - (around - either) / around.clamp(min=1e-9)


def box_loss(net: Detector, maps: Sequence[Tensor], boxes: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of the maps of images with boxes [n, most, 6], in parts of the image, and the share of those that
    have to find an object which overlap it by half and know its class.

    The loss is the distance of these boxes by their generalized overlap and the cross entropies of their
    classes and of whether there is an object. The last is that of all boxes but those that overlap an object or
    lie in a crowd.
    """
    n = len(boxes)
    found = net.boxes(maps)
    assigned = assign(boxes, net.anchors / net.size, [(m.shape[2], m.shape[3]) for m in maps])
    objects = is_object(boxes)
    objectness = boxes.new_zeros(())
    near, want, logits, classes = [], [], [], []
    for (places, rest), to in zip(found, assigned, strict=True):
        target = torch.zeros_like(rest[..., 0])
        at = (to.image, to.anchor, to.row, to.column)
        target[at] = 1
        near.append(places[at])
        want.append(boxes[to.image, to.which, X0:CROWD])
        logits.append(rest[at][:, 1:])
        classes.append(boxes[to.image, to.which, CLASS].long())
        with torch.no_grad():
            flat = places.reshape(n, -1, 4)
            both = overlaps(flat, boxes[..., X0:CROWD])
            own, others = area(flat)[..., None], area(boxes[..., X0:CROWD])[:, None]
            over_union = both / (own + others - both).clamp(min=1e-9)
            over_own = both / own.clamp(min=1e-9)
            crowds = (boxes[..., CLASS] >= 0) & ~objects
            ignored = ((over_union > _NEAR) & objects[:, None]) | ((over_own > 0.5) & crowds[:, None])
            counts = ~ignored.any(2).view(target.shape) | (target > 0)
        each = binary_cross_entropy_with_logits(rest[..., 0], target, reduction="none")
        objectness = objectness + (each * counts).sum()
    b, w, y, k = torch.cat(near), torch.cat(want), torch.cat(logits), torch.cat(classes)
    count = max(len(b), 1)
    overlap = generalized_overlap(b, w)
    distance, kind = (1 - overlap).sum() / count, cross_entropy(y, k, reduction="sum") / count
    good = ((y.argmax(1) == k) & (overlap > 0.5)).sum() / count
    return _DISTANCE * distance + kind + objectness / max(len(b), n), good.detach()
