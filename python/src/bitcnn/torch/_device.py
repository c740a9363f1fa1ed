"""Tensors on CUDA devices."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .. import _model
from .._model import Model, TensorInfo


@functools.cache
def usable() -> frozenset[str]:
    """The devices that models run on, as both sides call them: "cuda:0"."""
    return frozenset(d.id for d in _model.devices() if d.id.startswith("cuda:"))


def can_infer(device: torch.device) -> bool:
    """Whether layers on a device have kernels of the runtime."""
    return device.type == "cpu" or (device.type == "cuda" and name(device) in usable())


def name(device: torch.device) -> str:
    """A device as ``bitcnn.load`` takes it."""
    return f"cuda:{device.index or 0}"


def is_on(x: Tensor, model: Model) -> bool:
    """Whether a tensor is on the device of a model."""
    return x.device.type == "cuda" and name(x.device) == model.device.id


def stream(device: torch.device) -> int:
    """The handle of the current stream."""
    handle: int = torch.cuda.current_stream(device).cuda_stream
    return handle


def _first_channels(info: TensorInfo, batch: int) -> list[int]:
    """The order of dimensions that has the channels last in memory."""
    dims = list(range(batch + len(info.shape)))
    return dims if info._as_is else [*dims[:batch], *dims[batch + 1 :], dims[batch]]


def ordered(x: Tensor, info: TensorInfo) -> Tensor:
    """The tensor with memory as a run takes it: NHWC, whatever the order of dimensions."""
    order = _first_channels(info, x.dim() - len(info.shape))
    return x.permute(order).contiguous().permute(_inverse(order))


def empty(info: TensorInfo, batch: tuple[int, ...], device: torch.device) -> Tensor:
    """A tensor for an output, with such memory."""
    order = _first_channels(info, len(batch))
    shape = batch + info.shape
    dtype = torch.float32 if info.dtype.kind == "f" else torch.uint8
    return torch.empty([shape[d] for d in order], dtype=dtype, device=device).permute(_inverse(order))


def _inverse(order: list[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)


def run(model: Model, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Tensor]:
    """A run on the current stream. The names have been looked at."""
    infos = {i.name: i for i in (*model.inputs, *model.outputs)}
    for key, x in (*inputs.items(), *outputs.items()):
        if not isinstance(x, Tensor):
            raise TypeError(f"wrong tensor: {key}: {type(x).__name__} is not a tensor, as other ones are")
        if not is_on(x, model):
            raise ValueError(f"wrong tensor: {key}: it is on {x.device}, and the model on {model.device.id}")
    first = inputs[model.inputs[0].name]
    given = {}
    for key, x in inputs.items():
        dims = len(infos[key].shape)
        given[key] = ordered(x.detach(), infos[key]) if x.dim() in (dims, dims + 1) else x.detach()
    batch = tuple(first.shape[: first.dim() - len(model.inputs[0].shape)])
    results = {}
    for info in model.outputs:
        results[info.name] = outputs[info.name] if info.name in outputs else empty(info, batch, first.device)
    model.enqueue(given, results, stream(first.device))
    return results
