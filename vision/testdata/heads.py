"""Writes heads.npz: random maps of YOLOX and YOLOv8 for an input of 64x96, and the boxes that their own
programs make of them, in float64: demo_postprocess of YOLOX, and dist2bbox behind the DFL of Ultralytics.

usage: heads.py heads.npz
"""

import sys

import numpy as np

HEIGHT, WIDTH, STRIDES, CLASSES, BINS, THRESHOLD = 64, 96, (8, 16, 32), 3, 16, 0.05
r = np.random.default_rng(59)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rows(centre, size, scores):
    """class, score, left, top, right, bottom of each box and class above the threshold, cut at the edges."""
    low, high = centre - size / 2, centre + size / 2
    edges = np.concatenate([low, high], 1)
    edges = np.clip(edges, 0, [WIDTH, HEIGHT, WIDTH, HEIGHT])
    list = [
        [c, s, *e]
        for e, of in zip(edges, scores, strict=True)
        for c, s in enumerate(of)
        if s > THRESHOLD and e[2] > e[0] and e[3] > e[1]
    ]
    return np.array(sorted(list, key=lambda row: -row[1]), np.float32)


def grid(stride):
    """The columns and rows of cells."""
    y, x = np.meshgrid(np.arange(HEIGHT // stride), np.arange(WIDTH // stride), indexing="ij")
    return np.stack([x.ravel(), y.ravel()], 1)


def cells(channels, stride):
    return r.standard_normal((HEIGHT // stride, WIDTH // stride, channels)).astype(np.float32)


out, centres, sizes, scores = {}, [], [], []
for stride in STRIDES:
    m = cells(5 + CLASSES, stride)
    m[..., 4:] = sigmoid(m[..., 4:] - 1)
    out[f"yolox_{stride}"] = m
    v = m.astype(np.float64).reshape(-1, 5 + CLASSES)
    centres.append((v[:, :2] + grid(stride)) * stride)
    sizes.append(np.exp(v[:, 2:4]) * stride)
    scores.append(v[:, 4:5] * v[:, 5:])
out["yolox_boxes"] = rows(*(np.concatenate(a) for a in (centres, sizes, scores)))

centres, sizes, scores = [], [], []
for stride in STRIDES:
    m = cells(4 * BINS + CLASSES, stride)
    m[..., : 4 * BINS] *= 3
    m[..., 4 * BINS :] -= 2
    out[f"yolov8_{stride}"] = m
    v = m.astype(np.float64).reshape(-1, 4 * BINS + CLASSES)
    e = np.exp(v[:, : 4 * BINS].reshape(-1, 4, BINS))
    far = (e / e.sum(2, keepdims=True)) @ np.arange(BINS)
    low, high = grid(stride) + 0.5 - far[:, :2], grid(stride) + 0.5 + far[:, 2:]
    centres.append((low + high) / 2 * stride)
    sizes.append((high - low) * stride)
    scores.append(sigmoid(v[:, 4 * BINS :]))
out["yolov8_boxes"] = rows(*(np.concatenate(a) for a in (centres, sizes, scores)))
np.savez_compressed(sys.argv[1], **out)
