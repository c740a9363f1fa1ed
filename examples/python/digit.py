"""Tells which digits are on grey images of 28 by 28 pixels, all of them at once.

python examples/python/digit.py photo.pgm ...

The images are binary PGM files. Any classifier of bytes serves as well: ``--model FILE``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import bitcnn
import numpy as np
from numpy.typing import NDArray


def read(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The pixels of a binary PGM or PPM file, in the shape that a model takes."""
    height, width, channels = shape
    head = re.match(rb"(P[56])\s+(\d+)\s+(\d+)\s+255\s", data := path.read_bytes())
    want = (b"P5" if channels == 1 else b"P6", width, height)
    if not head or (head[1], int(head[2]), int(head[3])) != want or len(data) - head.end() != width * height * channels:
        name = "PGM" if channels == 1 else "PPM"
        raise ValueError(f"{path}: want a binary {name} file of {width} by {height} pixels")
    return np.frombuffer(data, np.uint8, offset=head.end()).reshape(shape)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line for each image."""
    parser = argparse.ArgumentParser(description="tells which digits are on images")
    parser.add_argument("--model", default="digits", help="a model that is inside, or a file")
    parser.add_argument("--device", help="such as cpu or cuda:0; the best one if there is none")
    parser.add_argument("photos", nargs="+", type=Path)
    given = parser.parse_args(arguments)
    try:
        with bitcnn.load(given.model, device=given.device, max_batch=16) as model:
            info = model.inputs[0]
            if info.dtype != np.uint8 or len(info.shape) != 3:
                raise ValueError(f"{given.model}: it takes {info.dtype} of {info.shape}, not the bytes of an image")
            scores = model(np.stack([read(path, info.shape) for path in given.photos]))
            for path, best in zip(given.photos, scores.argmax(axis=1), strict=True):
                print(path, model.labels[best] if model.labels else best)
    except (OSError, ValueError) as e:
        print(e, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
