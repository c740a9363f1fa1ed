"""Photos with boxes: text files as YOLO has them, or a file in COCO's format, by the rules of ``bcnn eval``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any, NoReturn

import torch
from torch import Tensor

from .._image import escape, read_file
from ._photos import BY_HEIF, BY_PILLOW, OWN, PhotosError

# The largest file of boxes that is read. That of COCO's 118,000 photos for training has 450 million bytes.
_MOST = 1 << 30

# What a box has: its class, its left, upper, right and lower edge, and whether it is around a crowd.
CLASS, X0, Y0, X1, Y1, CROWD = range(6)


@dataclass(frozen=True)
class Annotated:
    """Photos and the boxes on each, [n, 6]."""

    labels: tuple[str, ...]
    files: tuple[Path, ...]
    boxes: tuple[Tensor, ...]
    parts: bool  # boxes are in parts of the photo, else in pixels

    def part(self, indices: Sequence[int]) -> Annotated:
        """The photos of some indices."""
        return replace(self, files=tuple(self.files[i] for i in indices), boxes=tuple(self.boxes[i] for i in indices))

    def counts(self) -> dict[str, int]:
        """How many objects there are of each class."""
        counted = dict.fromkeys(self.labels, 0)
        for boxes in self.boxes:
            for row in boxes[boxes[:, CROWD] == 0].tolist():
                counted[self.labels[int(row[CLASS])]] += 1
        return counted


def read_labels(file: Path) -> tuple[str, ...]:
    """The names of classes, one a line."""
    try:
        lines = read_file(file, _MOST).decode().splitlines()
    except UnicodeDecodeError as e:
        raise PhotosError(f"{file}: {e}") from None
    while lines and not lines[-1].strip():
        lines.pop()
    return _checked_labels([line.strip() for line in lines], file)


def _checked_labels(labels: Sequence[str], where: Path) -> tuple[str, ...]:
    if not labels:
        raise PhotosError(f"{where}: no classes")
    for i, label in enumerate(labels):
        if not label or not label.isprintable():
            raise PhotosError(f"{where}: class {i} is called {label!r}, want a printable name")
        if label in labels[:i]:
            raise PhotosError(f"{where}: two classes are called {label!r}")
    return tuple(labels)


def _row(index: int, x0: float, y0: float, x1: float, y1: float, crowd: bool = False) -> list[float]:
    for v in (x0, y0, x1, y1):
        if not math.isfinite(v):
            raise ValueError(f"a box with an edge at {v}")
    if x1 < x0 or y1 < y0:
        raise ValueError(f"a box of {x1 - x0:g}×{y1 - y0:g}")
    return [float(index), x0, y0, x1, y1, float(crowd)]


def _stacked(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64).reshape(-1, 6)


def find_photos(folder: Path) -> list[Path]:
    """The photos of a folder and those below it, in the order of their names. Hidden ones are passed over.
    Links to folders are followed directly in the folder, and are errors below, where they may lead in circles.
    """
    if not folder.is_dir():
        raise PhotosError(f"{folder}: there is no such folder")
    found: list[Path] = []

    def below(parent: Path, links: bool) -> None:
        for path in sorted(parent.iterdir()):
            if path.name.startswith("."):
                continue
            if path.is_dir():
                if path.is_symlink() and not links:
                    raise PhotosError(f"{path}: a link to a folder, followed only directly in {folder}")
                below(path, False)
            elif path.suffix.lower() in OWN + BY_PILLOW + BY_HEIF:
                found.append(path)

    below(folder, True)
    return found


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)
_INDEX = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_WANT = "want a class and four numbers: centre x and y, width, height"


def _lines_of(photo: Path) -> tuple[Path, str] | None:
    """The file of the boxes of a photo: beside it, or in a folder labels beside the folder images."""
    places = [photo.with_suffix(".txt")]
    parts = list(places[0].parts)
    if "images" in parts[:-1]:
        last = len(parts) - 2 - parts[:-1][::-1].index("images")
        places.append(Path(*parts[:last], "labels", *parts[last + 1 :]))
    for place in places:
        try:
            return place, read_file(place, _MOST).decode(errors="surrogateescape")
        except FileNotFoundError:
            continue
    return None


def _parse(file: Path, lines: str, labels: Sequence[str] | None) -> list[list[float]]:
    rows = []
    for number, line in enumerate(lines.split("\n"), 1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 5 or not _INDEX.fullmatch(fields[0]) or not all(map(_NUMBER.fullmatch, fields[1:])):
            raise PhotosError(f"{file}: line {number}: {_WANT}")
        index = int(fields[0])
        most = 9999 if labels is None else len(labels) - 1
        if not 0 <= index <= most:
            raise PhotosError(f"{file}: line {number}: class {index}, want 0 to {most}")
        x, y, w, h = map(float, fields[1:])
        try:
            rows.append(_row(index, x - w / 2, y - h / 2, x + w / 2, y + h / 2))
        except ValueError as e:
            raise PhotosError(f"{file}: line {number}: {e}") from None
    return rows


def find_yolo(folder: Path, labels: Sequence[str] | None) -> Annotated:
    """The photos of a folder with boxes in text files: NAME.txt beside NAME.jpg, or in a folder labels beside
    the folder images, with a line for each box: class, centre x and y, width, height, in parts of the photo.
    A photo without such a file has no boxes. Without labels, classes are called by their numbers.
    """
    files = find_photos(folder)
    if not files:
        raise PhotosError(f"{folder}: no photos in this folder or below")
    boxes, found = [], 0
    for file in files:
        lines = _lines_of(file)
        found += lines is not None
        boxes.append(_stacked(_parse(*lines, labels) if lines else []))
    if not found:
        raise PhotosError(
            f"{folder}: no photo has a file of boxes (NAME.txt beside it, or in labels beside images);"
            " for COCO's format use --annotations"
        )
    if labels is None:
        most = max((int(b[:, CLASS].max()) for b in boxes if len(b)), default=0)
        labels = [str(i) for i in range(most + 1)]
    return Annotated(tuple(labels), tuple(files), tuple(boxes), parts=True)


def _fail(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


class _Entries:
    """The objects of a list in a file of JSON, with fields of certain types."""

    def __init__(self, file: Path, whole: Any, name: str) -> None:
        entries = whole.get(name, []) if isinstance(whole, dict) else None
        if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
            raise PhotosError(f"{file}: not in COCO's format: {name} is not a list of objects")
        self.file, self.name, self.entries = file, name, entries

    def field(self, i: int, key: str, kind: type, default: Any = None) -> Any:
        value = self.entries[i].get(key, default)
        if not isinstance(value, kind) or isinstance(value, bool):
            what = {int: "whole number", str: "text", list: "list"}[kind]
            raise PhotosError(f"{self.file}: {self.name}, entry {i}: {key} is not a {what}")
        return value


def find_coco(file: Path, folder: Path, labels: Sequence[str] | None) -> Annotated:
    """The photos of a folder that a file in COCO's format lists, and their boxes. Its categories are the classes
    in the order of their ids, or those of ``labels`` that are called like them.
    """
    try:
        whole = json.loads(read_file(file, _MOST), parse_constant=_fail)
    except (ValueError, RecursionError) as e:
        raise PhotosError(f"{file}: not in COCO's format: {e}") from None
    images, categories, objects = (_Entries(file, whole, name) for name in ("images", "categories", "annotations"))
    if not images.entries or not categories.entries:
        raise PhotosError(f"{file}: not in COCO's format: no images or no categories")

    names: dict[int, str] = {}
    for i in range(len(categories.entries)):
        number = categories.field(i, "id", int)
        if number in names:
            raise PhotosError(f"{file}: two categories have the id {number}")
        names[number] = categories.field(i, "name", str)
    own = _checked_labels([names[number] for number in sorted(names)], file)
    if labels is None:
        labels = own
    for name in own:
        if name not in labels:
            raise PhotosError(f"{file}: the category {name!r} is not one of the classes: {', '.join(labels)}")
    class_of = {number: list(labels).index(name) for number, name in names.items()}

    files: list[Path] = []
    rows: dict[int, list[list[float]]] = {}
    for i in range(len(images.entries)):
        number, name = images.field(i, "id", int), images.field(i, "file_name", str)
        if number in rows:
            raise PhotosError(f"{file}: two images have the id {number}")
        path = PurePath(name)
        if not name or "\0" in name or path.is_absolute() or ".." in path.parts or path == PurePath():
            raise PhotosError(f"{file}: the image {number} is called {name!r}, which is not a file in the folder")
        rows[number] = []
        files.append(folder / path)

    for i in range(len(objects.entries)):
        image, category = objects.field(i, "image_id", int), objects.field(i, "category_id", int)
        if image not in rows:
            raise PhotosError(f"{file}: annotation {i} is of image {image}, which is not listed")
        if category not in class_of:
            raise PhotosError(f"{file}: annotation {i} is of category {category}, which is not listed")
        box = objects.field(i, "bbox", list)
        if len(box) != 4 or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in box):
            raise PhotosError(f"{file}: annotation {i} has a bbox of {len(box)} values, want 4 numbers")
        crowd = objects.field(i, "iscrowd", int, 0) != 0
        try:
            x, y, w, h = map(float, box)
            rows[image].append(_row(class_of[category], x, y, x + w, y + h, crowd))
        except (ValueError, OverflowError) as e:
            raise PhotosError(f"{file}: annotation {i}: {e}") from None
    boxes = tuple(_stacked(r) for r in rows.values())
    return Annotated(tuple(labels), tuple(files), boxes, parts=False)


def describe(photos: Annotated) -> str:
    """How many photos and objects there are."""
    return escape(f"{len(photos.files)} photos: " + ", ".join(f"{name} {n}" for name, n in photos.counts().items()))
