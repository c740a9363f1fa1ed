"""Batch inference over a dataset of Ray, on all its workers.

>>> dataset.map_batches(  # doctest: +SKIP
...     bitcnn.ray.Predictor,
...     fn_constructor_args=("model.onnx",),
...     fn_constructor_kwargs={"column": "image", "max_batch": 32, "threads": 1},
...     concurrency=4,
...     batch_size=256,
... )

Ray starts what it is given anew where a worker dies, and hands its batches to others.
"""

from ._batches import Predictor

__all__ = ["Predictor"]
