#!/usr/bin/env python3
"""Makes folders of images to try python -m bitcnn.train with.

    photo_folders.py shapes OUT --photos 200               six drawn shapes
    photo_folders.py idx IMAGES LABELS OUT --photos 200    digits of MNIST's files
    photo_folders.py canvases IMAGES LABELS OUT --photos 1000    several of them on a canvas, with boxes
    photo_folders.py scenes PHOTOS OUT --photos 1000       photos of PHOTOS/CLASS on a road, with boxes

It needs NumPy and Pillow. Images are PNG files, OUT/CLASS/NUMBER.png; canvases and scenes are
OUT/images/NUMBER.png, and their boxes OUT/labels/NUMBER.txt, as YOLO has them. The same arguments
make the same images; another --seed makes other ones.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

SIDE = 120
Outline = list[tuple[float, float]]


def polygon(corners: int, radius: float, ratio: float = 1) -> Outline:
    """The corners around 0, every second one at ratio of the radius."""
    radii = [radius * (ratio if i % 2 else 1) for i in range(corners)]
    turns = [2 * math.pi * i / corners for i in range(corners)]
    return [(r * math.sin(t), -r * math.cos(t)) for r, t in zip(radii, turns, strict=True)]


def bar(x: float, y: float) -> Outline:
    return [(-x, -y), (x, -y), (x, y), (-x, y)]


SHAPES: dict[str, Callable[[float], list[Outline]]] = {
    "circle": lambda r: [polygon(60, r)],
    "square": lambda r: [bar(0.8 * r, 0.8 * r)],
    "triangle": lambda r: [polygon(3, r)],
    "star": lambda r: [polygon(10, r, 0.4)],
    "hexagon": lambda r: [polygon(6, r)],
    "cross": lambda r: [bar(r, r / 4), bar(r / 4, r)],
}


def tint(rng: np.random.Generator, least: int, most: int) -> tuple[int, int, int]:
    """A grey between two levels with a little colour."""
    grey = rng.integers(least, most)
    red, green, blue = (int(v) for v in np.clip(grey + rng.integers(-25, 26, 3), 0, 255))
    return red, green, blue


def draw(rng: np.random.Generator, shape: str) -> Image.Image:
    """A dark shape on light paper, turned and moved a little, with stray lines, blur and noise."""
    image = Image.new("RGB", (SIDE, SIDE), tint(rng, 170, 245))
    pen = ImageDraw.Draw(image)
    for _ in range(rng.integers(0, 3)):
        pen.line([int(v) for v in rng.integers(0, SIDE, 4)], tint(rng, 90, 160), int(rng.integers(1, 3)))
    ink = tint(rng, 10, 110)
    radius = rng.uniform(28, 46)
    x, y = SIDE / 2 + rng.uniform(-12, 12, 2)
    turn = rng.uniform(-0.35, 0.35)
    cos, sin = math.cos(turn), math.sin(turn)
    for outline in SHAPES[shape](radius):
        corners = [(x + cos * u - sin * v, y + sin * u + cos * v) for u, v in outline]
        pen.polygon(corners, ink)
    image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.2)))
    noise = rng.normal(0, rng.uniform(0, 12), (SIDE, SIDE, 3))
    return Image.fromarray((np.asarray(image) + noise).clip(0, 255).astype(np.uint8))


@dataclass
class Made:
    """An image, its place, and the lines of the file of its boxes."""

    folder: str
    number: int
    image: Image.Image
    boxes: list[str] | None = None


def shapes(args: argparse.Namespace) -> Iterator[Made]:
    rng = np.random.default_rng(args.seed)
    for shape in SHAPES:
        for i in range(args.photos):
            yield Made(shape, i, draw(rng, shape))


def read_idx(path: str) -> NDArray[np.uint8]:
    """The array of an IDX file of unsigned bytes."""
    data = np.fromfile(path, np.uint8)
    if len(data) < 4 or data[0] or data[1] or data[2] != 8:
        sys.exit(f"{path}: not an IDX file of unsigned bytes")
    end = 4 + 4 * int(data[3])
    return data[end:].reshape(data[4:end].view(">u4").astype(int))


def read_digits(args: argparse.Namespace) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    images, labels = read_idx(args.images), read_idx(args.labels)
    if len(images) != len(labels):
        sys.exit(f"{len(images)} images, but {len(labels)} labels")
    return images, labels


def digits(args: argparse.Namespace) -> Iterator[Made]:
    images, labels = read_digits(args)
    made: dict[Any, int] = {}
    for i in np.random.default_rng(args.seed).permutation(len(images)):
        n = made.get(labels[i], 0)
        if n < args.photos:
            made[labels[i]] = n + 1
            yield Made(str(labels[i]), n, Image.fromarray(images[i]))


CANVAS = 96
SMALLEST, LARGEST = 14, 60  # heights of digits in pixels


def ink(rng: np.random.Generator, digit: NDArray[np.uint8]) -> NDArray[np.float64]:
    """How much ink pixels have, from 0 to 1, of a digit that is turned, resized, and drawn with a thinner or
    thicker, softer or sharper pen; cut at its edges.
    """
    height = math.exp(rng.uniform(math.log(SMALLEST), math.log(LARGEST)))
    scale = height / 20  # the digits of MNIST have at most 20 pixels
    size = (max(1, round(28 * scale * rng.uniform(0.85, 1.2))), max(1, round(28 * scale)))
    turned = Image.fromarray(digit).rotate(rng.uniform(-12, 12), Image.Resampling.BICUBIC)
    drawn = np.asarray(turned.resize(size, Image.Resampling.BICUBIC)) / 255.0
    drawn = ((drawn - 0.5) * rng.uniform(1, 3) + 0.5 + rng.uniform(-0.2, 0.2)).clip(0, 1)
    rows, columns = np.nonzero((drawn > 0.3).any(1))[0], np.nonzero((drawn > 0.3).any(0))[0]
    return drawn[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def line(label: int, x: float, y: float, w: float, h: float, side: int) -> str:
    """A box of a square image as YOLO has it."""
    return f"{label} " + " ".join(f"{v / side:.6f}" for v in (x + w / 2, y + h / 2, w, h))


def canvas(
    rng: np.random.Generator, images: NDArray[np.uint8], labels: NDArray[np.uint8]
) -> tuple[Image.Image, list[str]]:
    """One to six digits that do not overlap, light on dark or dark on light, with noise."""
    cover = np.zeros((CANVAS, CANVAS))
    taken = np.zeros((CANVAS, CANVAS), bool)
    boxes = []
    for _ in range(rng.integers(1, 7)):
        i = rng.integers(len(images))
        drawn = ink(rng, images[i])
        h, w = drawn.shape
        for _ in range(20):
            y, x = (int(rng.integers(0, max(1, CANVAS - side + 1))) for side in (h, w))
            around = taken[max(0, y - 2) : y + h + 2, max(0, x - 2) : x + w + 2]
            if h <= CANVAS and w <= CANVAS and not around.any():
                taken[y : y + h, x : x + w] = True
                cover[y : y + h, x : x + w] = drawn
                boxes.append(line(labels[i], x, y, w, h, CANVAS))
                break
    dark, light = rng.uniform(0, 70), rng.uniform(170, 255)
    paper, pen = (dark, light) if rng.random() < 0.5 else (light, dark)
    grey = paper + (pen - paper) * cover + rng.normal(0, rng.uniform(0, 8), cover.shape)
    return Image.fromarray(grey.round().clip(0, 255).astype(np.uint8)), boxes


def canvases(args: argparse.Namespace) -> Iterator[Made]:
    images, labels = read_digits(args)
    rng = np.random.default_rng(args.seed)
    for i in range(args.photos):
        yield Made("images", i, *canvas(rng, images, labels))


SCENE = 256
NEAR, FAR = 144, 48  # sides of photos in pixels
CORNER = 0.28  # the part of a photo's side that shows the road, beside an object that stands diagonally
Photo = NDArray[np.uint8]


def read_photos(folder: Path) -> list[list[Photo]]:
    """The photos of each class, in the order of their names; those of a class are one after another."""
    classes = sorted(c for c in folder.iterdir() if c.is_dir())
    found = [[np.asarray(Image.open(f).convert("RGB")) for f in sorted(c.iterdir())] for c in classes]
    if not found or not all(found):
        sys.exit(f"{folder}: want a folder of photos for each class")
    return found


def paste(scene: NDArray[np.float64], photo: NDArray[np.float64], x: int, y: int, fade: float) -> None:
    """Draws a photo that fades into the scene at its edges, over a part of its side."""
    h, w, _ = photo.shape
    rows, columns = (np.minimum(np.arange(n) + 0.5, n - np.arange(n) - 0.5) / (fade * n) for n in (h, w))
    cover = (rows.clip(0, 1)[:, None] * columns.clip(0, 1))[..., None]
    top, left, bottom, right = max(0, -y), max(0, -x), min(h, SCENE - y), min(w, SCENE - x)
    part = scene[y + top : y + bottom, x + left : x + right]
    part += (photo[top:bottom, left:right] - part) * cover[top:bottom, left:right]


def resized(photo: Photo, side: int) -> NDArray[np.float64]:
    return np.asarray(Image.fromarray(photo).resize((side, side), Image.Resampling.BILINEAR)).astype(np.float64)


def road(rng: np.random.Generator, photos: list[list[Photo]]) -> NDArray[np.float64]:
    """A road of the corners of photos, so that edges of pieces are everywhere, not only around objects."""
    scene = np.full((SCENE, SCENE, 3), 130.0)
    tone = rng.uniform(115, 155)
    for at in rng.permutation(144):
        of = photos[rng.integers(len(photos))]
        photo = of[rng.integers(len(of))]
        n = round(CORNER * min(photo.shape[:2]))
        piece = photo[:n, -n:] if rng.random() < 0.5 else photo[-n:, :n]
        drawn = resized(piece, int(rng.integers(40, 100)))
        drawn += 0.7 * (tone - drawn.mean()) + rng.normal(0, 6)
        y, x = (int(24 * k - 28 + rng.integers(-12, 13)) for k in divmod(int(at), 12))
        paste(scene, drawn, x, y, 0.4)
    return scene


def scene(rng: np.random.Generator, photos: list[list[Photo]]) -> tuple[Image.Image, list[str]]:
    """One to five photos of objects that do not overlap. A box is that of a photo."""
    drawn = road(rng, photos)
    taken = np.zeros((SCENE, SCENE), bool)
    boxes = []
    for _ in range(rng.integers(1, 6)):
        label = int(rng.integers(len(photos)))
        photo = photos[label][rng.integers(len(photos[label]))]
        side = round(math.exp(rng.uniform(math.log(FAR), math.log(NEAR))))
        for _ in range(20):
            y, x = (int(v) for v in rng.integers(0, SCENE - side + 1, 2))
            if not taken[y : y + side, x : x + side].any():
                taken[y : y + side, x : x + side] = True
                paste(drawn, resized(photo, side), x, y, 0.08)
                boxes.append(line(label, x, y, side, side, SCENE))
                break
    return Image.fromarray(drawn.round().clip(0, 255).astype(np.uint8)), boxes


def scenes(args: argparse.Namespace) -> Iterator[Made]:
    photos = read_photos(args.source)
    rng = np.random.default_rng(args.seed)
    for i in range(args.photos):
        yield Made("images", i, *scene(rng, photos))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(required=True, metavar="shapes|idx|canvases|scenes")
    drawn, idx, several, placed = (what.add_parser(name) for name in ("shapes", "idx", "canvases", "scenes"))
    placed.add_argument(
        "source", type=Path, metavar="photos", help="folder of photos of objects, PHOTOS/CLASS/ANY NAME"
    )
    for command in (idx, several):
        command.add_argument("images", help="IDX file, such as train-images-idx3-ubyte")
        command.add_argument("labels", help="IDX file, such as train-labels-idx1-ubyte")
    for command, make, of in (
        (drawn, shapes, "of each class"),
        (idx, digits, "of each class"),
        (several, canvases, "canvases"),
        (placed, scenes, "scenes"),
    ):
        command.add_argument("out", type=Path, help="the folder to make")
        command.add_argument("--photos", type=int, default=200, help=f"{of} (default %(default)s)")
        command.add_argument("--seed", type=int, default=1, help="(default %(default)s)")
        command.set_defaults(make=make)
    args = parser.parse_args()
    if args.out.exists():
        sys.exit(f"{args.out} is there already")
    args.out.mkdir(parents=True)
    for made in args.make(args):
        (args.out / made.folder).mkdir(exist_ok=True)
        made.image.save(args.out / made.folder / f"{made.number:05}.png")
        if made.boxes is not None:
            (args.out / "labels").mkdir(exist_ok=True)
            (args.out / "labels" / f"{made.number:05}.txt").write_text("".join(b + "\n" for b in made.boxes))


if __name__ == "__main__":
    main()
