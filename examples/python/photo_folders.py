#!/usr/bin/env python3
"""Makes folders of images, one for each class, to try python -m bitcnn.train with.

    photo_folders.py shapes OUT --photos 200        six drawn shapes
    photo_folders.py idx IMAGES LABELS OUT --photos 200    digits of MNIST's files

It needs NumPy and Pillow. Images are PNG files, OUT/CLASS/NUMBER.png. The same arguments make
the same images; another --seed makes other ones.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
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


def shapes(args: argparse.Namespace) -> Iterator[tuple[str, int, Image.Image]]:
    rng = np.random.default_rng(args.seed)
    for shape in SHAPES:
        for i in range(args.photos):
            yield shape, i, draw(rng, shape)


def read_idx(path: str) -> NDArray[np.uint8]:
    """The array of an IDX file of unsigned bytes."""
    data = np.fromfile(path, np.uint8)
    if len(data) < 4 or data[0] or data[1] or data[2] != 8:
        sys.exit(f"{path}: not an IDX file of unsigned bytes")
    end = 4 + 4 * int(data[3])
    return data[end:].reshape(data[4:end].view(">u4").astype(int))


def digits(args: argparse.Namespace) -> Iterator[tuple[str, int, Image.Image]]:
    images, labels = read_idx(args.images), read_idx(args.labels)
    if len(images) != len(labels):
        sys.exit(f"{len(images)} images, but {len(labels)} labels")
    made: dict[Any, int] = {}
    for i in np.random.default_rng(args.seed).permutation(len(images)):
        n = made.get(labels[i], 0)
        if n < args.photos:
            made[labels[i]] = n + 1
            yield str(labels[i]), n, Image.fromarray(images[i])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_subparsers(required=True, metavar="shapes|idx")
    drawn, idx = what.add_parser("shapes"), what.add_parser("idx")
    idx.add_argument("images", help="IDX file, such as train-images-idx3-ubyte")
    idx.add_argument("labels", help="IDX file, such as train-labels-idx1-ubyte")
    for command, make in ((drawn, shapes), (idx, digits)):
        command.add_argument("out", type=Path, help="the folder to make")
        command.add_argument("--photos", type=int, default=200, help="of each class (default %(default)s)")
        command.add_argument("--seed", type=int, default=1, help="(default %(default)s)")
        command.set_defaults(make=make)
    args = parser.parse_args()
    if args.out.exists():
        sys.exit(f"{args.out} is there already")
    args.out.mkdir(parents=True)
    for label, i, image in args.make(args):
        (args.out / label).mkdir(exist_ok=True)
        image.save(args.out / label / f"{i:05}.png")


if __name__ == "__main__":
    main()
