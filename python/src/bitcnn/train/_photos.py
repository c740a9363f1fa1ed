"""Photos in folders, one folder for each class: found, read, and split for a test."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d
from tqdm import tqdm

from .._image import Photo as Source
from .._image import escape, read_file, read_image

# What the runtime reads, and what Pillow turns into it.
OWN = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp")
BY_PILLOW = (".tif", ".tiff", ".avif")
BY_HEIF = (".heic", ".heif")


Result = TypeVar("Result")


class PhotosError(Exception):
    """What is wrong with the photos, in words for whoever has taken them."""


@dataclass(frozen=True)
class Photos:
    """Files and their classes, as indices of ``labels``."""

    labels: tuple[str, ...]
    files: tuple[Path, ...]
    classes: tuple[int, ...]

    def part(self, indices: Sequence[int]) -> Photos:
        """The photos of some indices."""
        return Photos(self.labels, tuple(self.files[i] for i in indices), tuple(self.classes[i] for i in indices))

    def counts(self) -> dict[str, int]:
        """How many there are of each class."""
        counted = Counter(self.classes)
        return {label: counted[i] for i, label in enumerate(self.labels)}


def find(folder: Path, labels: Sequence[str] | None = None) -> Photos:
    """The photos of PHOTOS/CLASS/…, in the order of their names. Hidden files and folders are
    passed over. ``labels`` are those that the folders must be called.
    """
    if not folder.is_dir():
        raise PhotosError(f"{folder}: there is no such folder")
    names = sorted(d.name for d in folder.iterdir() if d.is_dir() and not d.name.startswith("."))
    for name in names:
        if labels is not None and name not in labels:
            raise PhotosError(f"{folder / name}: not a class; classes: {', '.join(labels)}")
        if not name.isprintable():
            raise PhotosError(f"{folder / name!r}: this folder name cannot be the label of a class")
    if labels is None and len(names) < 2:
        loose = sum(f.suffix.lower() in OWN + BY_PILLOW + BY_HEIF for f in folder.iterdir())
        why = f"; its {loose} photos are not in a folder of a class" if loose else ""
        have = f"one class, {names[0]!r}" if names else "no classes"
        raise PhotosError(f"{folder}: {have}, want a folder of photos for each of two classes or more{why}")
    found = Photos(tuple(labels or names), (), ())
    files: list[Path] = []
    classes: list[int] = []
    for name in names:
        photos = sorted(_below(folder / name))
        if not photos:
            raise PhotosError(f"{folder / name}: no photos ({', '.join('*' + e for e in OWN + BY_PILLOW + BY_HEIF)})")
        files += photos
        classes += [found.labels.index(name)] * len(photos)
    return Photos(found.labels, tuple(files), tuple(classes))


def _below(folder: Path) -> list[Path]:
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [f for f in folders if not f.startswith(".")]
        for name in names:
            if not name.startswith(".") and Path(name).suffix.lower() in OWN + BY_PILLOW + BY_HEIF:
                found.append(Path(parent) / name)
    return found


def say(text: str) -> None:
    """Writes a line above the bar of progress; names of files may have anything in them."""
    tqdm.write(escape(text))


def source_of(file: Path) -> Source:
    """A file that the runtime reads: others become PNGs in memory, by Pillow, and stay as
    transparent as they are.
    """
    ending = file.suffix.lower()
    if ending in OWN:
        return file
    package = "pillow-heif" if ending in BY_HEIF else "pillow"
    try:
        from PIL import Image, ImageOps

        if ending in BY_HEIF:
            from pillow_heif import register_heif_opener

            register_heif_opener()
    except ImportError:
        raise PhotosError(f"{file}: to read it, pip install {package}") from None
    png = io.BytesIO()
    data = read_file(file)
    try:
        with Image.open(io.BytesIO(data)) as image:
            clear = "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "RGBa", "La")
            ImageOps.exif_transpose(image).convert("RGBA" if clear else "RGB").save(png, "PNG", compress_level=1)
    except Exception as e:  # Pillow's plugins raise what they like
        raise OSError(f"{escape(str(file))}: {e}") from None
    return png.getvalue()


def read_each(files: Sequence[Path], what: str, one: Callable[[Path], Result]) -> tuple[list[Result], list[int]]:
    """What is made of the files that can be read, and their indices. Whoever wants all of them looks at
    their number.
    """

    def outcome(file: Path) -> Result | str:
        try:
            return one(file)
        except OSError as e:
            text, name = str(e), escape(str(file))
            return text if text.startswith(name) else f"{name}: {text}"

    made: list[Result] = []
    good, broken = [], []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        bar = tqdm(pool.map(outcome, files), what, len(files), leave=False, unit=" photos", disable=None)
        for i, result in enumerate(bar):
            if isinstance(result, str):
                broken.append(result)
            else:
                made.append(result)
                good.append(i)
    for text in broken[:20]:
        say(text)
    if len(broken) > 20:
        say(f"… and {len(broken) - 20} more")
    return made, good


def read(photos: Photos, what: str, size: int, channels: int, resize: int) -> tuple[Tensor, list[int]]:
    """The pixels of the photos that can be read, bytes [n, channels, size, size], and their
    indices.
    """

    def pixels(file: Path) -> NDArray[np.uint8]:
        return read_image(source_of(file), size, size, channels, resize=resize)

    all_, good = read_each(photos.files, what, pixels)
    stacked = np.stack(all_) if all_ else np.empty((0, size, size, channels), np.uint8)
    return torch.from_numpy(np.ascontiguousarray(stacked.transpose(0, 3, 1, 2))), good


def check_all_read(good: int, of: int, skip: bool) -> None:
    """Unreadable photos are an error, unless they are skipped."""
    if good < of:
        broken = of - good
        if not skip:
            raise PhotosError(f"{broken} of {of} photos cannot be read; --skip-broken skips them")
        say(f"skipping {broken} unreadable photo{'s' if broken > 1 else ''}")


# Two photos are near duplicates if the edges of their thumbnails differ by less than this
# share of the edges that either has.
_NEAR = 0.2
_EDGE = 3.0  # grey levels between neighbours


def near_duplicates(images: Tensor) -> list[int]:
    """A number for each photo of [n, channels, size, size], the same for near duplicates: the
    same photo in another size or quality, a burst, neighbouring frames of a film. They are told
    by the rising and falling edges of thumbnails of 17 x 17 pixels, a perceptual hash like
    dHash, compared by their Jaccard distance.
    """
    edges = torch.cat([_edges(part) for part in torch.split(images, 256)]) if len(images) else torch.empty(0, 1)
    totals = edges.sum(1)
    parent = list(range(len(images)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    step = 1024
    for first in range(0, len(images), step):
        part = edges[first : first + step]
        both = part @ edges[first:].T
        either = totals[first : first + step, None] + totals[None, first:] - both
        near = (either - both <= _NEAR * either).nonzero()
        for i, j in near[near[:, 0] < near[:, 1]].tolist():
            parent[root(first + j)] = root(first + i)
    return [root(i) for i in range(len(images))]


def _edges(images: Tensor) -> Tensor:
    grey = adaptive_avg_pool2d(images.float().mean(1, keepdim=True), 17)
    across, down = grey.diff(dim=3).flatten(1), grey.diff(dim=2).flatten(1)
    steps = torch.cat([across, down], 1)
    return torch.cat([steps > _EDGE, steps < -_EDGE], 1).float()


def split(photos: Photos, groups: Sequence[int], fraction: float, seed: int) -> tuple[list[int], list[int]]:
    """Indices for training and for the test, of which each class has its fraction: near
    duplicates, which have the same number in ``groups``, stay on one side.
    """
    members: dict[int, list[int]] = {}
    for i, group in enumerate(groups):
        members.setdefault(group, []).append(i)
    have = Counter(photos.classes)
    left = {c: max(1, round(fraction * n)) for c, n in have.items()}
    order = torch.randperm(len(members), generator=torch.Generator().manual_seed(seed)).tolist()
    train: list[int] = []
    test: list[int] = []
    shuffled = [list(members.values())[i] for i in order]
    for together in sorted(shuffled, key=len):  # large groups rather train
        wanted = Counter(photos.classes[i] for i in together)
        if all(left[c] >= n for c, n in wanted.items()):
            for c, n in wanted.items():
                left[c] -= n
            test += together
        else:
            train += together
    for side, name in ((train, "for training"), (test, "for testing")):
        missing = set(have) - {photos.classes[i] for i in side}
        for c in sorted(missing):
            raise PhotosError(
                f"{photos.labels[c]}: {have[c]} photos, and none is left {name}, as near duplicates stay together"
            )
    return sorted(train), sorted(test)
