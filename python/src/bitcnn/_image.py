"""Photos as networks read them."""

from __future__ import annotations

import errno
import io
import os
import stat
import struct
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _library as lib

# Any: an image of Pillow, which this package does not import.
Photo = str | os.PathLike[str] | bytes | bytearray | memoryview | NDArray[np.uint8] | Any

# The largest file of a photo, as for the command.
MAX_FILE = 256 << 20


def escape(text: str) -> str:
    """A text for a terminal: what is not printable is escaped, as the command does."""

    def one(c: str) -> str:
        if c.isprintable():
            return c
        if "\udc80" <= c <= "\udcff":  # a byte that is not UTF-8
            return f"\\x{ord(c) - 0xDC00:02x}"
        return repr(c)[1:-1]

    return "".join(map(one, text))


def read_file(path: str | os.PathLike[str], most: int = MAX_FILE) -> bytes:
    """The bytes of a regular file, or of what a link to one points to: a device would go on for
    ever, and a pipe wait for somebody. What is none, and more than ``most`` bytes, are an OSError
    that names the file.
    """
    # Opening a device may do something to it: look first, and again at what has been opened.
    _regular(Path(path).stat(), path)
    file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(file, "rb") as f:
        _regular(os.fstat(file), path)
        data = f.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"the file has more than {most} bytes", os.fspath(path))
    return data


def _regular(info: os.stat_result, path: str | os.PathLike[str]) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))


def _png(array: NDArray[Any]) -> bytes:
    """The file of an image of bytes, so that an array is resized as a photo is. It is not
    compressed.
    """
    kinds = {1: 0, 3: 2, 4: 6}  # grey, RGB, RGBA
    if array.ndim == 2:
        array = array[:, :, np.newaxis]
    if array.dtype != np.uint8:
        fix = ""
        if np.issubdtype(array.dtype, np.floating):
            fix = "; for values from 0 to 1 use (255 * x).round().astype(numpy.uint8)"
        raise TypeError(f"an image of {array.dtype}, want an array of uint8{fix}")
    if array.ndim != 3 or array.shape[2] not in kinds or not array.size:
        raise ValueError(f"an image of shape {array.shape}, want height, width and 1, 3 or 4 channels, in this order")
    height, width, channels = array.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with its filter, none
    rows[:, 1:] = array.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, kinds[channels], 0, 0, 0)
    data = zlib.compress(rows.tobytes(), 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def _is_pillow(source: object) -> bool:
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(source, module.Image)


def _of_pillow(image: Any) -> bytes:
    """The file of an image of Pillow, turned upright."""
    from PIL import ImageOps

    if image.mode in ("F", "I"):
        raise TypeError(f"a Pillow image of mode {image.mode}, whose values have no range; scale them to bytes")
    image = ImageOps.exif_transpose(image)
    if image.mode in ("LA", "La", "PA", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
    elif image.mode not in ("1", "L", "P", "RGB", "RGBA") and not image.mode.startswith("I;16"):
        image = image.convert("RGB")
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=0)
    return file.getvalue()


def bytes_of(source: Photo) -> tuple[bytes, str]:
    """The file of a photo, and what errors about it begin with."""
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source), ""
    if isinstance(source, np.ndarray):
        return _png(source), ""
    if _is_pillow(source):
        return _of_pillow(source), ""
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"{type(source).__name__} is not a photo, want a path, bytes, an array or a Pillow image")
    return read_file(source), f"{escape(os.fspath(source))}: "


def ground_of(background: Sequence[int]) -> int:
    """A background as the library takes it, 0xRRGGBB."""
    ground = 0
    for value in background:
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 256:
            raise ValueError(f"a background of {background!r}, want three whole numbers from 0 to 255")
        ground = ground << 8 | int(value)
    if len(background) != 3:
        raise ValueError(f"a background of {background!r}, want three whole numbers from 0 to 255")
    return ground


def read_image(
    source: Photo,
    height: int,
    width: int,
    channels: int = 3,
    *,
    resize: int = 0,
    background: Sequence[int] = (0, 0, 0),
) -> NDArray[np.uint8]:
    """The pixels of a photo, [height, width, channels]: R, G and B, or the luma.

    ``source`` is the path or the bytes of a JPEG, PNG, GIF, BMP or WebP file, an image of Pillow, or
    an array of bytes [height, width] or [height, width, channels] with 1 (grey), 3 (RGB) or 4
    (RGBA) channels; a path is that of a regular file of at most 256 MiB. A photo is turned upright
    and resized so that its shorter side has ``resize`` pixels, or just fits if that is 0, and its
    centre is cropped; one that has the size is taken as it is. Transparent pixels are laid over
    ``background``, R, G and B from 0 to 255. These are the bytes that the command sees.
    What is no image is an OSError that names the file, with escapes for what is not printable.
    """
    sides = (height, width, channels, resize)
    if any(isinstance(n, bool) or not isinstance(n, int | np.integer) or not 0 <= n < 1 << 31 for n in sides):
        raise ValueError(f"an image of {height!r}×{width!r}×{channels!r} resized to {resize!r}, want whole numbers")
    ground = ground_of(background)
    data, name = bytes_of(source)
    if height * width * channels > 1 << 31:
        raise ValueError(f"an image of {height}×{width}×{channels} is too large")
    pixels = np.empty((height, width, channels), np.uint8)
    try:
        lib.call(
            "read_image", data, len(data), height, width, channels, resize, ground, pixels.ctypes.data, pixels.nbytes
        )
    except OSError as e:
        raise OSError(f"{name}{e}") from None
    return pixels


def read_input(session: int, source: Photo, info: Any, background: Sequence[int]) -> tuple[NDArray[Any], Any]:
    """What the input of a session is for a photo, and the frame, which says what it shows of it."""
    ground = ground_of(background)
    data, name = bytes_of(source)
    values, frame = np.empty(info._memory, info.dtype), lib.Frame()
    try:
        lib.call("read_photo", session, data, len(data), ground, values.ctypes.data, values.nbytes, frame)
    except OSError as e:
        raise OSError(f"{name}{e}") from None
    return info._from_memory(values), frame
