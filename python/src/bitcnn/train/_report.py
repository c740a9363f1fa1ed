"""How good a network is, and whether the runtime computes what PyTorch does."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from .._model import Model
from ._loop import answers


@dataclass(frozen=True)
class Accuracy:
    """The share of images whose class is right, of so many."""

    right: int
    of: int

    @property
    def percent(self) -> float:
        return 100 * self.right / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """Of the percentage, Wilson's of one standard error (1927). It stays within 0 and 100,
        and is not empty if all are right.
        """
        p, n = self.right / self.of, self.of
        centre = (p + 1 / (2 * n)) / (1 + 1 / n)
        half = math.sqrt(p * (1 - p) / n + 1 / (4 * n * n)) / (1 + 1 / n)
        return 100 * max(0.0, centre - half), 100 * min(1.0, centre + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.percent:.1f} % ({low:.1f} to {high:.1f})"


def confusion(got: Tensor, want: Tensor, classes: int) -> Tensor:
    """How many images of a class (row) were taken for a class (column)."""
    return torch.bincount(want * classes + got, minlength=classes * classes).reshape(classes, classes)


def draw(matrix: Tensor, labels: tuple[str, ...], title: str, path: Path) -> None:
    """Writes a confusion matrix as a picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    n = len(labels)
    side = max(4.0, 0.45 * n + 2)
    figure = Figure(figsize=(side + 1, side), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shares = matrix / matrix.sum(1, keepdim=True).clamp_(min=1)
    axes.imshow(shares.numpy(), cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(range(n), labels, rotation=45, ha="right")
    axes.set_yticks(range(n), labels)
    axes.set_xlabel("answer")
    axes.set_ylabel("class")
    axes.set_title(title)
    if n <= 30:
        for i in range(n):
            for j in range(n):
                if matrix[i, j]:
                    colour = "white" if shares[i, j] > 0.5 else "black"
                    axes.text(j, i, str(int(matrix[i, j])), ha="center", va="center", color=colour)
    figure.savefig(path, dpi=110)


@dataclass(frozen=True)
class Comparison:
    """The runtime beside PyTorch on the same images."""

    images: int
    different: list[int]  # images with other answers
    difference: float  # the largest of logits, relative to the largest

    @property
    def ok(self) -> bool:
        return not self.different


def compare(net: nn.Module, model: Model, images: Tensor, size: int) -> tuple[Comparison, Tensor]:
    """Compares every answer for bytes [n, channels, size, size], and returns those of the
    runtime. PyTorch computes in float64, where every sum of a binary layer is exact and rounding
    moves no value across a threshold.
    """
    exact = answers(copy.deepcopy(net).cpu().double(), images, size, "cpu", torch.float64).numpy()
    arrays = images.numpy()
    if model.inputs[0].shape != arrays.shape[1:]:
        arrays = np.ascontiguousarray(arrays.transpose(0, 2, 3, 1))
    got = np.concatenate([model(part) for part in np.array_split(arrays, max(1, len(arrays) // 64))])
    got = got.reshape(exact.shape)
    different = np.flatnonzero(got.argmax(1) != exact.argmax(1)).tolist()
    largest = float(np.abs(exact).max(initial=0.0))
    difference = float(np.abs(got - exact).max(initial=0.0)) / largest if largest else 0.0
    return Comparison(len(images), different, difference), torch.from_numpy(got)
