"""The training of detectors: from photos with boxes to a model and what it is worth."""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import convert, load
from .._boxes import Box
from .._image import read_input
from .._model import Model
from . import _annotations as annotated
from . import _loop as loop
from . import _photos as photos_of
from . import _precision as precision
from ._annotations import CLASS, CROWD, X0, X1, Annotated
from ._boxloss import box_loss, is_object
from ._detector import THRESHOLD, Detector, DetectorRecipe, Found, anchors_of, reader, select
from ._distort import distort_with_boxes
from ._photos import PhotosError, say

# How many boxes of a photo are measured.
_MOST = 1000
# The least score of the boxes by which the runtime is compared with PyTorch: that of those who detect.
_COMPARED = 0.5
# How far their edges may be apart, in parts of the photo, and their scores.
_APART = 1e-4
# The first layer is one of real numbers, and where a sum is so near to 0 that rounding decides its sign, the
# boxes of a photo may differ: on this share of the photos at the most.
_ROUNDED = 0.02


@dataclass(frozen=True)
class Read:
    """Photos as a detector reads them, with what their boxes are there and on the photo."""

    photos: Annotated
    images: Tensor  # bytes [n, channels, size, size]
    boxes: Tensor  # [n, most, 6] in parts of the input; the class is -1 where there is none
    truths: list[Tensor]  # [n, 6] in pixels of the photo

    def part(self, indices: Sequence[int]) -> Read:
        """The photos of some indices."""
        at = list(indices)
        return Read(self.photos.part(at), self.images[at], self.boxes[at], [self.truths[i] for i in at])


class Detection:
    """To find objects."""

    def __init__(self, net: Detector, recipe: DetectorRecipe, settings: loop.Settings, data: Read) -> None:
        self.net, self.recipe, self.settings = net, recipe, settings
        self.images, self.boxes = data.images, data.boxes

    def views(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        device = self.settings.device
        images, boxes = self.images[chosen].to(device), self.boxes[chosen].to(device)
        return distort_with_boxes(images, boxes, self.recipe, self.settings.mirror)

    def loss(self, outputs: Any, views: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        return box_loss(self.net, outputs, known)


def find(folder: Path, file: Path | None, labels: Sequence[str] | None) -> Annotated:
    """The photos of a folder with boxes, of a file in COCO's format or of text files."""
    if file is None:
        return annotated.find_yolo(folder, labels)
    return annotated.find_coco(file, folder, labels)


def read(photos: Annotated, what: str, channels: int, size: int, skip: bool) -> Read:
    """The photos as the runtime makes them an input."""
    with load(reader(channels, size), device="cpu", input_dtype="uint8", threads=1) as model:

        def one(file: Path) -> tuple[Any, Any]:
            return read_input(model._session, photos_of.source_of(file), model.inputs[0], (0, 0, 0))

        made, good = photos_of.read_each(photos.files, what, one)
    photos_of.check_all_read(len(good), len(photos.files), skip)
    photos = photos.part(good)
    images = torch.from_numpy(np.stack([x.reshape(channels, size, size) for x, _ in made])) if made else None
    if images is None:
        raise PhotosError("none of the photos can be read")
    most = max(max(map(len, photos.boxes)), 1)
    boxes = torch.zeros(len(made), most, 6)
    boxes[:, :, CLASS] = -1
    truths = []
    for i, (own, (_, frame)) in enumerate(zip(photos.boxes, made, strict=True)):
        pixels = own.clone()
        if photos.parts:
            whole = torch.tensor([frame.photo_width, frame.photo_height], dtype=torch.float64)
            pixels[:, X0:X1] *= whole
            pixels[:, X1:CROWD] *= whole
        truths.append(pixels)
        at, sides = torch.tensor([frame.x, frame.y]), torch.tensor([frame.width, frame.height])
        seen = pixels.clone()
        for edge in (X0, X1):
            corner = pixels[:, edge : edge + 2].minimum(
                torch.tensor([frame.photo_width, frame.photo_height], dtype=torch.float64)
            )
            seen[:, edge : edge + 2] = (corner.clamp(min=0) - at) / sides
        boxes[i, : len(own)] = seen.float()
    return Read(photos, images, boxes, truths)


def _check_objects(data: Read) -> None:
    single = (data.boxes[..., CLASS] >= 0) & (data.boxes[..., CROWD] == 0)
    empty = int((single & ~is_object(data.boxes)).sum())
    if empty:
        say(f"skipping {empty} box{'es' if empty > 1 else ''} without an area on the photo")
    of = data.boxes[..., CLASS][is_object(data.boxes)].long()
    counts = torch.bincount(of, minlength=len(data.photos.labels)).tolist()
    for label, n in zip(data.photos.labels, counts, strict=True):
        if n == 0:
            raise PhotosError(f"{label}: no box to train with")


def _split(groups: Sequence[int], fraction: float, seed: int) -> tuple[list[int], list[int]]:
    """Indices for training and for the test, which has a fraction of the photos: near duplicates, which have the
    same number, stay on one side.
    """
    members: dict[int, list[int]] = {}
    for i, group in enumerate(groups):
        members.setdefault(group, []).append(i)
    order = torch.randperm(len(members), generator=torch.Generator().manual_seed(seed)).tolist()
    shuffled = [list(members.values())[i] for i in order]
    wanted = max(1, round(fraction * len(groups)))
    test: list[int] = []
    train: list[int] = []
    for together in sorted(shuffled, key=len):  # large groups rather train
        side = test if len(test) + len(together) <= wanted else train
        side += together
    if not train or not test:
        raise PhotosError(f"{len(groups)} photos cannot be split, as near duplicates stay together")
    return sorted(train), sorted(test)


def apart(args: argparse.Namespace, recipe: DetectorRecipe, size: int) -> tuple[Read, Read]:
    """The photos to train with, and those of the test."""
    labels = annotated.read_labels(args.labels) if args.labels else None
    found = find(args.photos, args.annotations, labels)
    everything = read(found, "reading", recipe.channels, size, args.skip_broken)
    say(annotated.describe(everything.photos))
    if args.test_photos is not None:
        others = find(args.test_photos, args.test_annotations, everything.photos.labels)
        train, test = everything, read(others, "test", recipe.channels, size, args.skip_broken)
        say(f"{len(train.images)} for training, {len(test.images)} for testing")
    else:
        groups = photos_of.near_duplicates(everything.images)
        sides = _split(groups, args.test, args.seed)
        train, test = map(everything.part, sides)
        alike = len(groups) - len(set(groups))
        say(f"{len(train.images)} for training, {len(test.images)} for testing, {alike} near duplicates kept together")
    _check_objects(train)
    if not any(len(t) for t in test.truths):
        raise PhotosError("no boxes on the test photos")
    return train, test


def train(
    args: argparse.Namespace, recipe: DetectorRecipe, size: int, data: Read, epochs: int, folder: Path, log: loop.Log
) -> Detector:
    boxes = data.boxes[is_object(data.boxes)]
    anchors = anchors_of((boxes[:, X1:CROWD] - boxes[:, X0:X1]) * size)
    torch.manual_seed(args.seed)
    net = recipe.build(recipe.channels, len(data.photos.labels), size, anchors)
    settings = loop.Settings(
        network=args.network,
        binary=True,
        labels=data.photos.labels,
        size=size,
        epochs=epochs,
        batch=args.batch or recipe.batch,
        learning_rate=args.learning_rate or recipe.learning_rate,
        mirror=args.mirror,
        seed=args.seed,
        threads=torch.get_num_threads(),
        device=args.device,
        photos=hashlib.sha256(data.images.numpy().tobytes() + data.boxes.numpy().tobytes()).hexdigest(),
    )
    loop.train(net, Detection(net, recipe, settings, data), settings, folder / "network.pt", log)
    return net


def _differ(mine: Found, boxes: Sequence[Box], truth: Any) -> bool:
    """Whether the boxes of PyTorch, on the input, are others than those of the runtime on the photo."""
    if mine.classes.tolist() != [b.index for b in boxes]:
        return True
    x, y, w, h, width, height = truth
    for edges, score, b in zip(mine.boxes.tolist(), mine.scores.tolist(), boxes, strict=True):
        on_photo = (
            (min(max(e * length + at, 0), whole), got, whole)
            for e, (at, length, whole), got in zip(
                edges, ((x, w, width), (y, h, height)) * 2, (b.left, b.top, b.right, b.bottom), strict=True
            )
        )
        if abs(score - b.score) > _APART or any(abs(e - got) > _APART * whole for e, got, whole in on_photo):
            return True
    return False


def compare(net: Detector, model: Model, files: Sequence[Path]) -> list[int]:
    """Which photos the runtime finds other boxes on than PyTorch, in float64, does."""
    exact = copy.deepcopy(net).cpu().double().eval()
    different = []
    for i, file in enumerate(files):
        source = photos_of.source_of(file)
        x, frame = read_input(model._session, source, model.inputs[0], (0, 0, 0))
        with torch.enable_grad():  # else binary layers use the runtime
            maps = [m.detach() for m in exact(torch.from_numpy(x)[None].double().view(1, -1, net.size, net.size))]
        found = select(exact, maps, _COMPARED)
        seen = (frame.x, frame.y, frame.width, frame.height, frame.photo_width, frame.photo_height)
        if _differ(found, model.detect(source, threshold=_COMPARED, top=_MOST), seen):
            different.append(i)
    return different


def finish(
    args: argparse.Namespace, recipe: DetectorRecipe, size: int, net: Detector, test: Read, folder: Path, log: loop.Log
) -> int:
    """Writes the model, and measures it with the runtime on what was kept apart."""
    net = net.cpu()
    labels = test.photos.labels
    convert(net.onnx(recipe.channels, size), args.out, name=args.out.stem, labels=labels, input_dtype="uint8")
    meter = precision.Meter(labels)
    with load(args.out, device="cpu") as model:
        for file, truths in zip(test.photos.files, test.truths, strict=True):
            meter.add(truths.numpy(), model.detect(photos_of.source_of(file), threshold=THRESHOLD, top=_MOST))
        different = compare(net, model, test.photos.files)
    found = meter.precision(args.seed)
    log(f"{found.objects} objects on {found.photos} held-out photos: {found}")
    for label, (objects, mean, half, _) in found.classes.items():
        log(f"  {label}: {objects} objects, AP@0.5 {half:.1f} %, AP@0.5:0.95 {mean:.1f} %")
    precision.draw(meter, f"{args.out.stem}: {found}", folder / "precision.png")
    result = {
        "network": args.network,
        "size": size,
        "labels": labels,
        "anchors": net.anchors.tolist(),
        "test": found.photos,
        "objects": found.objects,
        "ap": found.mean[0],
        "ap50": found.mean[1],
        "ap75": found.mean[2],
        "standard_errors": found.error,
        "classes": {
            label: {"objects": n, "ap": mean, "ap50": half, "ap75": three}
            for label, (n, mean, half, three) in found.classes.items()
        },
        "test_photos": [str(f) for f in test.photos.files],
    }
    (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    same = found.photos - len(different)
    log(f"runtime and PyTorch find the same boxes on {same} of {found.photos} photos")
    for i in different[:5]:
        log(f"  different boxes: {test.photos.files[i]}")
    log(f"{args.out}: {args.out.stat().st_size} bytes; see {folder / 'precision.png'} for precision by recall")
    return 1 if len(different) > _ROUNDED * found.photos else 0
