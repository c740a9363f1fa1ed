#!/usr/bin/env python3
"""Writes the JPEG files of this folder; needs Pillow and NumPy."""

import numpy as np
from PIL import Image

rng = np.random.default_rng(1)


def picture(width, height, channels):
    """Slopes, an edge, and noise, away from black and white."""
    y, x = np.mgrid[:height, :width]
    planes = [100 + 40 * np.sin(x / (7 + c)) * np.cos(y / 9) + 25 * (x > y) + rng.normal(0, 4, x.shape) for c in range(channels)]
    return Image.fromarray(np.stack(planes, -1).clip(30, 220).astype(np.uint8).squeeze())


grey = picture(75, 50, 1)
colour = {name: picture(61, 83, 3) for name in ("444", "422", "420")}
for progressive in (False, True):
    kind = "progressive" if progressive else "sequential"
    grey.save(f"{kind}-grey.jpg", quality=85, progressive=progressive)
    for subsampling, (name, image) in enumerate(colour.items()):
        image.save(f"{kind}-{name}.jpg", quality=90, subsampling=subsampling, progressive=progressive)
        image.save(f"{kind}-{name}-restarts.jpg", quality=70, subsampling=subsampling, progressive=progressive, restart_marker_blocks=3)
picture(40, 30, 3).save("optimised.jpg", quality=97, optimize=True)
picture(200, 150, 3).save("coarse.jpg", quality=5)
