"""What the outputs of a classifier mean."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _library as lib


@dataclass(frozen=True)
class Class:
    """A class that a photo may be of, and how likely it is."""

    label: str  # its index, if the model names no classes
    index: int
    probability: float  # softmax of the outputs


def likeliest(outputs: NDArray[Any], labels: Sequence[str], top: int) -> list[Class]:
    """The classes of the outputs for one photo, the likeliest first, at most ``top``."""
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
        raise ValueError(f"top is {top!r}, want a whole number from 1 on")
    scores = np.ascontiguousarray(outputs.ravel(), np.float32)
    top = min(int(top), scores.size)
    indices, probabilities = (ctypes.c_size_t * top)(), (ctypes.c_double * top)()
    lib.call("top_k", scores.ctypes.data, scores.size, indices, probabilities, top)
    return [Class(labels[i] if i < len(labels) else str(i), i, p) for i, p in zip(indices, probabilities, strict=True)]
