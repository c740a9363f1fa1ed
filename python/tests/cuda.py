"""A CUDA device, by its driver alone, for tests without PyTorch or CuPy."""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Driver:
    """The calls of libcuda, on the primary context of device 0."""

    def __init__(self) -> None:
        self.library = c.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        self.cleanup: list[Callable[[], object]] = []
        context = c.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", c.byref(context), 0)
        self("cuCtxSetCurrent", context)
        self.cleanup.append(lambda: self("cuDevicePrimaryCtxRelease_v2", 0))

    def __call__(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        assert code == 0, f"{name}: error {code}"

    def stream(self) -> int:
        s = c.c_void_p()
        self("cuStreamCreate", c.byref(s), 1)  # independent of the default stream
        assert s.value is not None
        self.cleanup.append(lambda: self("cuStreamDestroy_v2", s))
        return s.value

    def memory(self, size: int) -> int:
        p = c.c_uint64()
        self("cuMemAlloc_v2", c.byref(p), c.c_size_t(size))
        self.cleanup.append(lambda: self("cuMemFree_v2", p))
        return p.value

    def pinned(self, a: NDArray[Any]) -> NDArray[Any]:
        """A copy in page-locked memory."""
        p = c.c_void_p()
        self("cuMemHostAlloc", c.byref(p), c.c_size_t(a.nbytes), 0)
        self.cleanup.append(lambda: self("cuMemFreeHost", p))
        assert p.value is not None
        copy = np.frombuffer((c.c_char * a.nbytes).from_address(p.value), a.dtype).reshape(a.shape)
        copy[...] = a
        return copy

    def put(self, to: Array, a: NDArray[Any], stream: int) -> None:
        self(
            "cuMemcpyHtoDAsync_v2",
            c.c_uint64(to.address),
            c.c_void_p(a.ctypes.data),
            c.c_size_t(a.nbytes),
            c.c_void_p(stream),
        )

    def get(self, a: NDArray[Any], of: Array, stream: int) -> None:
        self(
            "cuMemcpyDtoHAsync_v2",
            c.c_void_p(a.ctypes.data),
            c.c_uint64(of.address),
            c.c_size_t(a.nbytes),
            c.c_void_p(stream),
        )

    def wait(self, stream: int) -> None:
        self("cuStreamSynchronize", c.c_void_p(stream))


class Array:
    """An array on the device, as CuPy and others have it."""

    def __init__(self, address: int, like: NDArray[Any], **other: Any) -> None:
        self.address = address
        strides = None if like.flags.c_contiguous else like.strides
        shape, typestr, data = like.shape, like.dtype.str, (address, False)
        self.__cuda_array_interface__ = {
            "shape": shape, "typestr": typestr, "data": data, "strides": strides, "version": 3, **other,
        }  # fmt: skip


def on_device(driver: Driver, like: NDArray[Any], offset: int = 0, **other: Any) -> Array:
    return Array(driver.memory(like.nbytes + offset) + offset, like, **other)
