#!/usr/bin/env python3
"""Times how photos become the input of a network of 96 x 96, beside bcnn classify.

    decoders.py FOLDER [--side 96]

Each decodes the JPEG files of FOLDER from memory, resizes the shorter side to 25/24 of the
network's and cuts the centre out: Pillow (or Pillow-SIMD) in full and by its draft mode, which
decodes at 1/2, 1/4 or 1/8, and TurboJPEG, if PyTurboJPEG is there, at 1/4. On one thread and on
two, frames per second of the best of three passes.
"""

import argparse
import glob
import io
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import PIL
from PIL import Image


def centre(image, side):
    """The centre of an image whose shorter side has become 25/24 of side."""
    scale = round(side * 25 / 24) / min(image.size)
    w, h = (round(n * scale) for n in image.size)
    image = image.resize((w, h), Image.BILINEAR)
    left, top = (w - side) // 2, (h - side) // 2
    return np.asarray(image.crop((left, top, left + side, top + side)))


def pillow(side, draft):
    def decode(data):
        image = Image.open(io.BytesIO(data))
        if draft:
            image.draft("RGB", (2 * side, 2 * side))
        return centre(image.convert("RGB"), side)

    return decode


def turbojpeg(side):
    from turbojpeg import TJPF_RGB, TurboJPEG

    turbo = TurboJPEG()
    return lambda data: centre(Image.fromarray(turbo.decode(data, pixel_format=TJPF_RGB, scaling_factor=(1, 4))), side)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--side", type=int, default=96, help="of the network's input (default %(default)s)")
    args = parser.parse_args()
    photos = []
    for name in sorted(glob.glob(os.path.join(args.folder, "*.jpg"))):
        with open(name, "rb") as file:
            photos.append(file.read())
    if not photos:
        parser.error(f"{args.folder}: no *.jpg")

    decoders = {f"Pillow {PIL.__version__}": pillow(args.side, False)}
    decoders[f"Pillow {PIL.__version__}, draft"] = pillow(args.side, True)
    try:
        decoders["TurboJPEG, 1/4"] = turbojpeg(args.side)
    except ImportError:
        print("PyTurboJPEG is not installed, and left out")
    for name, decode in decoders.items():
        for threads in (1, 2):
            best = float("inf")
            for _ in range(3):
                start = time.perf_counter()
                with ThreadPoolExecutor(threads) as pool:
                    for _ in pool.map(decode, photos):
                        pass
                best = min(best, time.perf_counter() - start)
            print(f"{name}: {len(photos) / best:.0f} frames/s on {threads} threads")


if __name__ == "__main__":
    main()
