"""Arrays in memory of a CUDA device, as ``__cuda_array_interface__`` describes them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ._model import TensorInfo


class Memory(NamedTuple):
    """Where an array lies, and its dimensions before those of one image: (n,), or ()."""

    name: str
    address: int
    bytes: int
    batch: tuple[int, ...]


def is_on_device(x: Any) -> bool:
    """Whether an object says that it is an array on a CUDA device."""
    return not isinstance(x, np.ndarray) and hasattr(x, "__cuda_array_interface__")


def strides(info: TensorInfo, batch: int) -> list[int]:
    """The strides of an array, with a batch or without, whose memory is NHWC."""
    dims = list(info.shape)
    size = info.dtype.itemsize
    steps = [size * math.prod(dims[i + 1 :]) for i in range(len(dims))]
    if not info._as_is:  # channels come first in the array, and last in memory
        if dims[0] != info._memory[2]:
            raise NotImplementedError(
                f"{info.name}: on a device an array of {info.shape} cannot be one of {info._memory}"
            )
        steps = [size] + [step * dims[0] for step in steps[1:]]
    return [size * math.prod(dims)] * batch + steps


def memory(x: Any, info: TensorInfo, written: bool) -> Memory:
    """Looks at an array, or raises what is wrong with it."""

    def wrong(why: str, kind: type[Exception] = ValueError) -> Exception:
        return kind(f"wrong tensor: {info.name}: {why}")

    if not is_on_device(x):
        raise wrong(f"{type(x).__name__} is not an array on a CUDA device", TypeError)
    given: Mapping[str, Any] = x.__cuda_array_interface__
    try:
        dtype, shape = np.dtype(given["typestr"]), tuple(map(int, given["shape"]))
        address, read_only = int(given["data"][0]), bool(given["data"][1])
        steps = [dtype.itemsize * math.prod(shape[i + 1 :]) for i in range(len(shape))]
        if given.get("strides") is not None:
            steps = [int(step) for step in given["strides"]]
        if len(steps) != len(shape) or not 0 <= address < 1 << 64:
            raise ValueError(f"strides {steps} of {shape}, address {address:#x}")
    except (KeyError, IndexError, TypeError, ValueError) as e:
        raise wrong(f"{type(x).__name__} describes itself wrongly: {e!r}", TypeError) from e
    have = f"{dtype} {'×'.join(map(str, shape)) or 'without dimensions'}"
    want = f"{info.dtype} {'×'.join(map(str, info.shape))}"
    if dtype != info.dtype:
        raise wrong(f"tensor is {have}, want {want}", TypeError)
    if shape != info.shape and shape[1:] != info.shape:
        raise wrong(f"tensor is {have}, want {want}")
    batch = shape[: len(shape) - len(info.shape)]
    if written and read_only:
        raise wrong("the array is read-only")
    ordered = strides(info, len(batch))
    if any(n > 1 and step != right for n, step, right in zip(shape, steps, ordered, strict=True)):
        raise wrong(
            "on a device the memory of an array must be NHWC, without gaps: "
            f"strides are {tuple(steps)}, want {tuple(ordered)}"
        )
    return Memory(info.name, address, dtype.itemsize * math.prod(shape), batch)


def all_of(
    infos: Sequence[TensorInfo], arrays: Mapping[str, Any], written: bool, others: Sequence[Memory]
) -> list[Memory]:
    """Looks at the arrays of a run, which must have the same number of images. Those that are
    written must lie apart from each other and the others.
    """
    found: list[Memory] = []
    for info in infos:
        m = memory(arrays[info.name], info, written)
        first = (*others, *found, m)[0]
        if m.batch != first.batch:
            raise ValueError(
                f"wrong tensor: {info.name}: a batch of {m.batch}, and that of {first.name} is {first.batch}"
            )
        for other in (*others, *found) if written else ():
            if m.address < other.address + other.bytes and other.address < m.address + m.bytes:
                raise ValueError(f"wrong tensor: {info.name}: the array overlaps that of {other.name}")
        found.append(m)
    return found
