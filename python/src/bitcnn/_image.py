"""Photos as networks read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _library as lib

Photo = str | os.PathLike[str] | bytes | bytearray | memoryview


def read_image(source: Photo, height: int, width: int, channels: int = 3, *, resize: int = 0) -> NDArray[np.uint8]:
    """The pixels of a photo, [height, width, channels]: R, G and B, or the luma.

    ``source`` is the path or the bytes of a JPEG, PNG, GIF, BMP or WebP file. A photo is turned
    upright and resized so that its shorter side has ``resize`` pixels, or just fits if that is
    0, and its centre is cropped; one that has the size is taken as it is. These are the bytes
    that the command sees. What is no image is an OSError that names the file.
    """
    sides = (height, width, channels, resize)
    if any(isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n < 1 << 31 for n in sides):
        raise ValueError(f"an image of {height!r}×{width!r}×{channels!r} resized to {resize!r}, want whole numbers")
    if isinstance(source, bytes | bytearray | memoryview):
        data, name = bytes(source), ""
    else:
        data, name = Path(source).read_bytes(), f"{os.fspath(source)}: "
    if height * width * channels > 1 << 31:
        raise ValueError(f"an image of {height}×{width}×{channels} is too large")
    pixels = np.empty((height, width, channels), np.uint8)
    try:
        lib.call("read_image", data, len(data), height, width, channels, resize, pixels.ctypes.data, pixels.nbytes)
    except OSError as e:
        raise OSError(f"{name}{e}") from None
    return pixels


def read_input(source: Photo, info: Any) -> NDArray[Any]:
    """The pixels of a photo in the type, the order and the size of an input."""
    height, width, channels = info._memory
    pixels = read_image(source, height, width, channels, resize=info.resize).astype(info.dtype, copy=False)
    return info._from_memory(pixels)  # type: ignore[no-any-return]
