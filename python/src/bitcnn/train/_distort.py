"""Random views of photos, for training."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, conv2d, grid_sample, pad

from ._annotations import CROWD, X0, X1
from ._networks import Recipe


def distort(images: Tensor, size: int, recipe: Recipe, mirror: bool) -> Tensor:
    """Views of size x size of bytes [n, channels, h, w]: turned, enlarged, moved, and for photos
    sharper or blurred, lighter or darker, with more contrast or less; half of them mirrored if
    that is wanted.
    """
    x = random_affine(images.float(), size, recipe.rotation, recipe.zoom, recipe.shift * size, mirror)
    if recipe.light:
        x = random_sharpness(x, -0.6, 1.0)
        x = random_light(x, contrast=1.35, brightness=30)
    return x.round().clamp_(0, 255)  # the levels that a camera delivers


def centre(images: Tensor, size: int) -> Tensor:
    """The middle size x size pixels, as real numbers."""
    top, left = (images.shape[2] - size) // 2, (images.shape[3] - size) // 2
    return images[:, :, top : top + size, left : left + size].float()


def _uniform(like: Tensor, low: float, high: float) -> Tensor:
    # Drawn on the processor, so that a seed draws the same for every device.
    return torch.empty(len(like), 1, 1, 1).uniform_(low, high).to(like.device)


def random_affine(
    images: Tensor, size: int, rotation: float, zoom: tuple[float, float], shift: float, mirror: bool = False
) -> Tensor:
    """Crops of size x size, each turned by up to ±rotation radians, enlarged by zoom[0] to zoom[1]
    and moved by up to ±shift pixels.
    """
    return _warp(images, _matrices(images, size, rotation, zoom, shift, mirror), size, "border")


def _matrices(
    images: Tensor, size: int, rotation: float, zoom: tuple[float, float], shift: float, mirror: bool
) -> Tensor:
    """Where in an image the places of its view are, both from -1 to 1: [n, 2, 3]."""
    n, _, height, width = images.shape
    angle = torch.empty(n).uniform_(-rotation, rotation)
    scale = torch.exp(-torch.empty(n).uniform_(math.log(zoom[0]), math.log(zoom[1])))
    flip = torch.randint(0, 2, (n,)) * 2.0 - 1 if mirror else torch.ones(n)
    matrix = torch.zeros(n, 2, 3)
    matrix[:, 0, 0] = flip * scale * torch.cos(angle) * (size / width)
    matrix[:, 0, 1] = -scale * torch.sin(angle) * (size / width)
    matrix[:, 1, 0] = flip * scale * torch.sin(angle) * (size / height)
    matrix[:, 1, 1] = scale * torch.cos(angle) * (size / height)
    matrix[:, :, 2] = torch.empty(n, 2).uniform_(-shift, shift) * 2 / torch.tensor([width, height])
    return matrix.to(images.device)


def _warp(images: Tensor, matrix: Tensor, size: int, beyond: str) -> Tensor:
    grid = affine_grid(matrix, [*images.shape[:2], size, size], align_corners=False)
    return grid_sample(images, grid, mode="bilinear", padding_mode=beyond, align_corners=False)


# What of an object must be left on a view: less is not asked for, and not wrong.
_LEAST = 0.25
_GREY = 128  # of the borders of letterboxed photos


def distort_with_boxes(images: Tensor, boxes: Tensor, recipe: Recipe, mirror: bool) -> tuple[Tensor, Tensor]:
    """Views as ``distort`` makes them, not turned, and with grey beyond the image, of bytes [n, channels, size, size]
    with boxes [n, most, 6] as package _annotations has them, in parts of the image. Of a box that is cut
    so that little is left the rest becomes a crowd.
    """
    size = images.shape[-1]
    matrix = _matrices(images, size, 0, recipe.zoom, recipe.shift * size, mirror)
    x = _warp(images.float() - _GREY, matrix, size, "zeros") + _GREY
    if recipe.light:
        x = random_sharpness(x, -0.6, 1.0)
        x = random_light(x, contrast=1.35, brightness=30)

    scale = matrix[:, [0, 1], [0, 1]][:, None]  # of x and y
    move = matrix[:, None, :, 2]
    first, second = ((2 * boxes[:, :, at : at + 2] - 1 - move) / scale for at in (X0, X1))
    low = (torch.minimum(first, second) + 1) / 2
    high = (torch.maximum(first, second) + 1) / 2
    seen = boxes.clone()
    seen[:, :, X0:X1], seen[:, :, X1:CROWD] = low.clamp(0, 1), high.clamp(0, 1)
    left = area(seen[:, :, X0:CROWD]) / area(torch.cat([low, high], 2)).clamp(min=1e-12)
    seen[:, :, CROWD] = torch.where(left < _LEAST, 1, seen[:, :, CROWD])
    return x.round().clamp_(0, 255), seen


def area(boxes: Tensor) -> Tensor:
    """The area of boxes [..., 4]."""
    result: Tensor = (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return result


def random_sharpness(images: Tensor, low: float, high: float) -> Tensor:
    """Adds low to high times the fine detail of each image: less than 0 blurs."""
    channels = images.shape[1]
    row = torch.tensor([0.25, 0.5, 0.25], device=images.device)
    kernel = (row[:, None] * row[None]).expand(channels, 1, 3, 3)
    smooth = conv2d(pad(images, (1, 1, 1, 1), mode="replicate"), kernel, groups=channels)
    return images + _uniform(images, low, high) * (images - smooth)


def random_light(images: Tensor, contrast: float, brightness: float) -> Tensor:
    """Changes the contrast by up to a factor either way, and the brightness by up to ±brightness
    grey levels.
    """
    factor = torch.exp(_uniform(images, -math.log(contrast), math.log(contrast)))
    mean = images.mean((1, 2, 3), keepdim=True)
    return (images - mean) * factor + mean + _uniform(images, -brightness, brightness)
