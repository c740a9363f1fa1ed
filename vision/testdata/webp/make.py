#!/usr/bin/env python3
"""Writes the WebP files of this folder, and what libwebp makes of each; needs Pillow and NumPy."""

import numpy as np
from PIL import Image, ImageOps

rng = np.random.default_rng(1)


def picture(width, height, channels):
    """Slopes, edges and noise, from black to white, with an alpha of all levels."""
    y, x = np.mgrid[:height, :width]
    planes = [128 + 120 * np.sin(x / (5 + c)) * np.cos(y / 7) + 60 * (x > y) + rng.normal(0, 6, x.shape) for c in range(channels)]
    if channels == 4:
        planes[3] = 255 * (x + y) / max(1, width + height - 2)
    return Image.fromarray(np.stack(planes, -1).clip(0, 255).astype(np.uint8))


def save(name, image, **options):
    image.save(f"{name}.webp", **options)
    with Image.open(f"{name}.webp") as read:
        ImageOps.exif_transpose(read).convert("RGBA").save(f"{name}.png")


for width, height in ((1, 1), (2, 3), (16, 16), (37, 29)):
    save(f"lossy-{width}x{height}", picture(width, height, 3), quality=80)
save("lossy-simple", picture(33, 18, 3), quality=5, method=0)
save("lossy-alpha", picture(37, 29, 4), quality=60)
save("lossy-alpha-raw", picture(20, 11, 4), quality=60, alpha_quality=30, method=0)
save("lossless", picture(37, 29, 3), lossless=True)
save("lossless-alpha", picture(21, 40, 4), lossless=True, exact=True)
save("lossless-palette", picture(40, 23, 3).quantize(7).convert("RGB"), lossless=True)
for orientation in (6, 8):
    exif = Image.Exif()
    exif[0x0112] = orientation
    save(f"exif-{orientation}", picture(25, 16, 3), quality=90, exif=exif)
picture(9, 9, 3).save("animation.webp", save_all=True, append_images=[picture(9, 9, 3)], duration=100)
