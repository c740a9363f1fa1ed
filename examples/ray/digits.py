"""Classifies all images of a folder, on the machines of a Ray cluster.

pip install 'ray[data]' pillow
python examples/ray/digits.py FOLDER RESULTS

FOLDER is one that all machines see, or an address such as s3://bucket/images, and so is RESULTS,
where files of JSON come to lie, with a line for each image. Without a cluster Ray makes one of
this machine; ``RAY_ADDRESS`` names another.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import bitcnn.ray
import numpy as np
import ray


class Digits(bitcnn.ray.Predictor):
    """Each worker has one, with the model loaded once."""

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        images = batch["image"][..., np.newaxis]  # Ray leaves out the axis of one channel
        scores = super().__call__({"image": images})["scores"]
        labels = np.array(self.model.labels)
        return {"path": batch["path"], "label": labels[scores.argmax(axis=1)], "score": scores.max(axis=1)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the results."""
    parser = argparse.ArgumentParser(description="classifies images of digits")
    parser.add_argument("--workers", type=int, default=1, help="one processor more than that has to be there")
    parser.add_argument("folder")
    parser.add_argument("results")
    given = parser.parse_args(arguments)
    # Grey, and of the size that the network takes.
    images = ray.data.read_images(given.folder, size=(28, 28), mode="L", include_paths=True)
    images.map_batches(
        Digits,
        fn_constructor_args=("digits",),
        fn_constructor_kwargs={"column": "image", "output": "scores", "max_batch": 64, "threads": 1},
        concurrency=given.workers,
        batch_size=256,
    ).write_json(given.results)


if __name__ == "__main__":
    main()
