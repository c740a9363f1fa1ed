"""Writes two small detectors of Darknet into a folder, of red and blue rectangles (spots) and of
light ones in grey images (light), and photo.png, on which there are three rectangles."""

import array
import pathlib
import struct
import sys
import zlib

folder = pathlib.Path(sys.argv[1])
SIDE = 16  # boxes are cells of 16×16 pixels, of an input of 64×64


def detector(name, classes, filters, biases):
    """Filters have a value for each channel; what they see is the mean of a cell."""
    (folder / f"{name}.names").write_text("".join(c + "\n" for c in classes))
    (folder / f"{name}.cfg").write_text(
        f"[net]\nwidth=64\nheight=64\nchannels={len(filters[0])}\n"
        f"[convolutional]\nfilters={len(filters)}\nsize={SIDE}\nstride={SIDE}\nactivation=linear\n"
        f"[yolo]\nclasses={len(classes)}\nanchors={SIDE},{SIDE}\n"
    )
    weights = [w / SIDE**2 for f in filters for w in f for _ in range(SIDE**2)]
    header = struct.pack("<iiiq", 0, 2, 0, 0)
    (folder / f"{name}.weights").write_bytes(header + array.array("f", biases + weights).tobytes())


def png(columns, rows, pixel):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    image = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(columns)) for y in range(rows))
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(image)) + chunk(b"IEND", b"")


none = (0, 0, 0)
detector("spots", ["red", "blue"], [none] * 4 + [(12, 0, 12), (8, 0, -8), (-8, 0, 8)], [0, 0, 0, 0, -6, 0, 0])
detector("light", ["light"], [(0,)] * 4 + [(40,), (0,)], [0, 0, 0, 0, -4, 8])
# The photo has another shape than the input: a cell is 80×60 pixels of it.
cells = {(1, 1): (255, 0, 0), (2, 3): (0, 0, 180), (3, 0): (210, 0, 0)}
(folder / "photo.png").write_bytes(png(320, 240, lambda x, y: cells.get((x // 80, y // 60), (40, 40, 40))))
