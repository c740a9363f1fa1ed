"""How well a detector finds objects: mean average precision as COCO defines it and ``bcnn eval`` measures it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .._boxes import Box
from ._annotations import CLASS, CROWD, X0

# Intersections over union from which on an object is found.
THRESHOLDS = np.array([(50 + 5 * k) / 100 for k in range(10)])
_RECALLS = np.array([r * 0.01 for r in range(101)])
# How many boxes of a class count on a photo.
_MOST = 100
# Samples of the photos, by which the standard error is estimated.
_SAMPLES = 200


@dataclass
class _Class:
    """The boxes of a class: of which photo, with which score, and whether they find an object."""

    photos: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    right: list[NDArray[np.bool_]] = field(default_factory=list)  # by threshold
    unimportant: list[NDArray[np.bool_]] = field(default_factory=list)
    objects: list[int] = field(default_factory=list)  # of each photo

    def sorted(self) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
        """The photos of the boxes, whether each is right and whether it counts, by threshold, in the order of the
        scores, of equal ones in that of photos; and the objects of each photo.
        """
        order = np.argsort(-np.array(self.scores), kind="stable")
        right = np.array(self.right, bool).reshape(-1, len(THRESHOLDS))[order]
        counted = ~np.array(self.unimportant, bool).reshape(-1, len(THRESHOLDS))[order]
        return np.array(self.photos, int)[order], right, counted, np.array(self.objects, int)


@dataclass(frozen=True)
class Precision:
    """Average precision in percent: of intersections over union from 0.5 to 0.95, of 0.5 and of 0.75, and the
    standard errors of all three, by samples of the photos with replacement (Efron, 1979).
    """

    mean: tuple[float, float, float]
    error: tuple[float, float, float]
    classes: dict[str, tuple[int, float, float, float]]  # objects, and the same of a class that occurs
    photos: int
    objects: int

    def __str__(self) -> str:
        (all_, half, _), (of_all, of_half, _) = self.mean, self.error
        return f"mAP@0.5 {half:.1f} ± {of_half:.1f} %, mAP@0.5:0.95 {all_:.1f} ± {of_all:.1f} %"


class Meter:
    """Counts, photo by photo, which objects are found."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels, self.photos = tuple(labels), 0
        self._of = [_Class() for _ in labels]

    def add(self, truths: NDArray[np.float64], boxes: Sequence[Box]) -> None:
        """Compares the boxes that a detector gives for a photo, the best first, with those [n, 6] that are on
        it, as package _annotations has them, in pixels.
        """
        for c, of in enumerate(self._of):
            mine = truths[truths[:, CLASS] == c]
            mine = mine[np.argsort(mine[:, CROWD] != 0, kind="stable")]  # crowds come behind
            crowds = mine[:, CROWD] != 0
            of.objects.append(int((~crowds).sum()))
            taken = np.zeros((len(mine), len(THRESHOLDS)), bool)
            for box in [b for b in boxes if b.index == c][:_MOST]:
                right = np.zeros(len(THRESHOLDS), bool)
                unimportant = right.copy()
                overlaps = _overlaps(box, mine)
                for k, least in enumerate(THRESHOLDS):
                    best = _best(overlaps, least, crowds, taken[:, k])
                    if best is not None:
                        taken[best, k] = True
                        right[k], unimportant[k] = not crowds[best], crowds[best]
                of.photos.append(self.photos)
                of.scores.append(box.score)
                of.right.append(right)
                of.unimportant.append(unimportant)
        self.photos += 1

    def precision(self, seed: int = 0) -> Precision:
        """What has been measured."""
        sorted_ = [of.sorted() for of in self._of]

        def of_sample(times: NDArray[np.int64]) -> list[NDArray[np.float64] | None]:
            """Average precisions by threshold, None where a class does not occur, of photos taken so many times."""
            found: list[NDArray[np.float64] | None] = []
            for photos, right, counted, objects in sorted_:
                total = int(objects @ times)
                found.append(_average(right, counted, times[photos], total) if total else None)
            return found

        def mean(found: Sequence[NDArray[np.float64] | None]) -> NDArray[np.float64]:
            there = [f for f in found if f is not None]
            return _three(np.mean(there, 0)) if there else np.zeros(3)

        whole = of_sample(np.ones(self.photos, int))
        rng = np.random.default_rng(seed)
        samples = []
        for _ in range(_SAMPLES if self.photos else 0):
            drawn = rng.integers(self.photos, size=self.photos)
            samples.append(mean(of_sample(np.bincount(drawn, minlength=self.photos))))
        error = np.std(samples, 0, ddof=1) if samples else np.full(3, math.nan)
        classes = {}
        for label, of, found in zip(self.labels, self._of, whole, strict=True):
            if found is not None:
                classes[label] = (sum(of.objects), *_percents(_three(found)))
        objects = sum(n for n, *_ in classes.values())
        return Precision(_percents(mean(whole)), _percents(error), classes, self.photos, objects)

    def curves(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Recall and precision of each class that occurs, at an intersection over union of 0.5."""
        found = {}
        for label, of in zip(self.labels, self._of, strict=True):
            if sum(of.objects):
                _, right, counted, objects = of.sorted()
                hits = np.cumsum(right[:, 0])
                found[label] = (hits / objects.sum(), hits / np.maximum(np.cumsum(counted[:, 0]), 1))
        return found


def _three(of_thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.array([of_thresholds.mean(), of_thresholds[0], of_thresholds[5]])


def _percents(values: NDArray[np.float64]) -> tuple[float, float, float]:
    a, b, c = (100 * float(v) for v in values)
    return a, b, c


def _overlaps(box: Box, truths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Intersection over union, of a crowd over the box."""
    x0, y0, x1, y1 = truths[:, X0:CROWD].T
    w = np.minimum(x1, box.right) - np.maximum(x0, box.left)
    h = np.minimum(y1, box.bottom) - np.maximum(y0, box.top)
    both = np.where((w > 0) & (h > 0), w * h, 0)
    own = (box.right - box.left) * (box.bottom - box.top)
    of = own + np.where(truths[:, CROWD] != 0, 0, (x1 - x0) * (y1 - y0) - both)
    return np.divide(both, of, out=np.zeros_like(both), where=both > 0)


def _best(
    overlaps: NDArray[np.float64], least: float, crowds: NDArray[np.bool_], taken: NDArray[np.bool_]
) -> int | None:
    """The object that a box overlaps most, and by so much, of those that no better box has; the last of equals. A
    crowd where there is none.
    """
    for kind in (~crowds & ~taken, crowds):
        good = np.flatnonzero(kind & (overlaps >= least))
        if len(good):
            return int(good[::-1][np.argmax(overlaps[good][::-1])])
    return None


def _average(
    right: NDArray[np.bool_], counted: NDArray[np.bool_], times: NDArray[np.int64], objects: int
) -> NDArray[np.float64]:
    """Average precision by threshold of boxes in the order of their scores, each of which counts so many times."""
    if not len(right):
        return np.zeros(len(THRESHOLDS))
    hits = np.cumsum(right * times[:, None], 0)
    all_ = np.cumsum(counted * times[:, None], 0)
    recall = hits / objects
    precision = hits / np.maximum(all_, 1)
    best = np.maximum.accumulate(precision[::-1], 0)[::-1]
    averages = np.zeros(len(THRESHOLDS))
    for k in range(len(THRESHOLDS)):
        at = np.searchsorted(recall[:, k], _RECALLS)
        averages[k] = best[at[at < len(best)], k].sum() / len(_RECALLS)
    return averages


def draw(meter: Meter, title: str, path: Path) -> None:
    """Writes the curves of precision by recall as a picture."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for label, (recall, precision) in list(meter.curves().items())[:20]:
        axes.plot(recall, precision, label=label, linewidth=1)
    axes.set_xlim(0, 1.01)
    axes.set_ylim(0, 1.01)
    axes.set_xlabel("recall")
    axes.set_ylabel("precision at an overlap of 0.5")
    axes.set_title(title)
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=110)
