#!/usr/bin/env python3
"""Decodes JPEGs by libjpeg, in Pillow, for FuzzLibjpeg: reads lengths and files, and writes width,
height, number of components and their values, without a change of the colours; zeros for what
libjpeg does not read."""

import io
import struct
import sys

from PIL import Image


def decoded(data, mode):
    with Image.open(io.BytesIO(data)) as image:
        if mode:
            image.draft(mode, image.size)
        return struct.pack("<3I", *image.size, len(image.getbands())) + image.tobytes()


while head := sys.stdin.buffer.read(4):
    data = sys.stdin.buffer.read(*struct.unpack("<I", head))
    answer = bytes(12)
    for mode in ("YCbCr", None):  # those of the file, which may be R, G and B
        try:
            answer = decoded(data, mode)
            break
        except OSError:
            pass
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
