"""IDX files, centre crops and random distortions."""

import math

import numpy as np
import torch
import torch.nn.functional as F


def read_idx(path):
    """The array of an IDX file of unsigned bytes."""
    data = np.fromfile(path, dtype=np.uint8)
    if len(data) < 4 or data[0] or data[1] or data[2] != 8:
        raise ValueError(f"{path} is no IDX file of unsigned bytes")
    dimensions = int(data[3])
    header = 4 + 4 * dimensions
    shape = data[4:header].view(">u4").astype(int)
    return data[header:].reshape(shape)


def read_images(images_path, labels_path):
    """Images as uint8 [N, C, H, W] and labels as int64 [N]."""
    images = read_idx(images_path)
    if images.ndim == 3:
        images = images[..., None]
    labels = read_idx(labels_path)
    if len(images) != len(labels):
        raise ValueError(f"{len(images)} images but {len(labels)} labels")
    images = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
    return images, torch.from_numpy(labels.astype(np.int64))


def centre_crop(images, size):
    """The middle size x size pixels, as real numbers 0..255."""
    top = (images.shape[2] - size) // 2
    left = (images.shape[3] - size) // 2
    return images[:, :, top : top + size, left : left + size].float()


def uniform(n, low, high):
    """n random numbers, shaped to scale one image each."""
    return torch.empty(n, 1, 1, 1).uniform_(low, high)


def random_affine(images, size, rotation, zoom, shift):
    """Crops of size x size, each rotated by up to +-rotation radians,
    enlarged by zoom[0]..zoom[1] and moved by up to +-shift pixels."""
    n, channels, height, width = images.shape
    angle = torch.empty(n).uniform_(-rotation, rotation)
    scale = torch.exp(-torch.empty(n).uniform_(math.log(zoom[0]), math.log(zoom[1])))
    matrix = torch.zeros(n, 2, 3)
    matrix[:, 0, 0] = scale * torch.cos(angle) * (size / width)
    matrix[:, 0, 1] = -scale * torch.sin(angle) * (size / width)
    matrix[:, 1, 0] = scale * torch.sin(angle) * (size / height)
    matrix[:, 1, 1] = scale * torch.cos(angle) * (size / height)
    matrix[:, :, 2] = torch.empty(n, 2).uniform_(-shift, shift) * 2 / torch.tensor([width, height])
    grid = F.affine_grid(matrix, (n, channels, size, size), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)


def random_sharpness(images, low, high):
    """Adds low..high times the fine detail of each image: negative blurs,
    positive sharpens."""
    channels = images.shape[1]
    row = torch.tensor([0.25, 0.5, 0.25])
    kernel = (row[:, None] * row[None]).expand(channels, 1, 3, 3)
    smooth = F.conv2d(F.pad(images, (1, 1, 1, 1), mode="replicate"), kernel, groups=channels)
    return images + uniform(len(images), low, high) * (images - smooth)


def random_light(images, contrast, brightness):
    """Changes the contrast by up to a factor of contrast either way, and
    the brightness by up to +-brightness grey levels."""
    n = len(images)
    factor = torch.exp(uniform(n, -math.log(contrast), math.log(contrast)))
    mean = images.mean((1, 2, 3), keepdim=True)
    return (images - mean) * factor + mean + uniform(n, -brightness, brightness)


def to_bytes(images):
    """Rounds to the levels a camera delivers, 0..255."""
    return images.round().clamp_(0, 255)
