"""Objects on photos."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from . import _library as lib
from ._image import Photo, bytes_of, ground_of


@dataclass(frozen=True)
class Box:
    """An object on a photo: its edges in pixels, how sure the model is, and what it is."""

    label: str  # its index, if the model names no classes
    index: int
    score: float
    left: float
    top: float
    right: float
    bottom: float


def detect(
    session: int,
    labels: Sequence[str],
    source: Photo,
    threshold: float,
    overlap: float,
    top: int,
    background: Sequence[int],
) -> list[Box]:
    """The boxes that a session finds on a photo."""
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or not 1 <= top <= 1 << 20:
        raise ValueError(f"top is {top!r}, want a whole number from 1 to {1 << 20}")
    ground = ground_of(background)
    data, name = bytes_of(source)
    boxes, count = (lib.Box * int(top))(), ctypes.c_size_t()
    try:
        lib.call("detect", session, data, len(data), threshold, overlap, ground, boxes, top, count)
    except OSError as e:
        raise OSError(f"{name}{e}") from None
    return [_box(b, labels) for b in boxes[: count.value]]


def _box(b: lib.Box, labels: Sequence[str]) -> Box:
    label = labels[b.index] if b.index < len(labels) else str(b.index)
    return Box(label, b.index, b.score, b.left, b.top, b.right, b.bottom)
