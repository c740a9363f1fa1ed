"""What engines for many machines call: arrays by column in, arrays by column out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._load import Source, load
from ._model import Model, TensorInfo


class Predictor:
    """Runs a model on batches: a dictionary of arrays by column gets the outputs added.

    ``source`` and ``options`` are those of ``bitcnn.load``; a file must be there on every
    machine, and bytes are sent to each. A model of one input reads ``column``, its own name
    if there is none, others the columns that are called like their inputs. An output is a
    column by its name, or ``output`` if there is only one and it is given.
    """

    def __init__(self, source: Source, *, column: str | None = None, output: str | None = None, **options: Any) -> None:
        self.model: Model = load(source, **options)
        many_in, many_out = len(self.model.inputs) > 1, len(self.model.outputs) > 1
        if (column and many_in) or (output and many_out):
            raise ValueError("column and output are for models with one input and one output")
        self._columns = [column or i.name for i in self.model.inputs]
        self._outputs = [output or o.name for o in self.model.outputs]

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        arrays = {}
        for name, info in zip(self._columns, self.model.inputs, strict=True):
            if name not in batch:
                raise KeyError(f"no column {name!r}; the batch has {', '.join(batch)}")
            arrays[info.name] = as_array(batch[name], info)
        results = self.model.run(arrays)
        return {**batch, **{to: results[o.name] for to, o in zip(self._outputs, self.model.outputs, strict=True)}}


def as_array(values: Any, info: TensorInfo) -> NDArray[Any]:
    """The array of a column: an array of images, or images one by one, perhaps flat."""
    x = np.asarray(values)
    if x.dtype == object:
        x = np.stack([np.asarray(v) for v in x]) if len(x) else np.empty((0, *info.shape), info.dtype)
    if x.ndim == 2 and x.shape[1] == int(np.prod(info.shape)):
        x = x.reshape(-1, *info.shape)
    # Engines have wider types than models where values come from lists.
    if x.dtype != info.dtype and x.size and np.array_equal(x, x.astype(info.dtype)):
        x = x.astype(info.dtype)
    return x
