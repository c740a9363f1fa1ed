"""Sessions of one layer each, kept as long as they are in use."""

from __future__ import annotations

import ctypes
import math
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor

from .. import _core
from .. import _library as lib
from ._device import name, stream

NHWC, NCHW = 1, 2
_FLOAT32 = 3

# What is kept at the most. A session of a network's layer takes about its weights twice.
_MOST = 512


@dataclass(frozen=True)
class Geometry:
    """A layer as it is compiled."""

    height: int
    width: int
    channels: int
    outputs: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)  # above, left, below, right
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1
    padding_value: int = 0
    zero_is_positive: bool = True


class Layer:
    """A session of the C library for one convolution."""

    def __init__(self, geometry: Geometry, output: tuple[int, ...], weight: Tensor, batch: int, threads: int) -> None:
        self._session = 0
        self.weight, self.batch, self.output = weight, batch, output  # packed; the shape of one output
        self.version = None if weight.is_inference() else weight._version
        on_cpu = weight.device.type == "cpu"
        self._kept = weight.data_ptr() if on_cpu else 0
        self._weight_bytes = weight.numel() * 8
        self._bytes = 4 * geometry.height * geometry.width * geometry.channels
        self._output_bytes = 4 * math.prod(output)
        weight = weight.cpu()
        g = geometry
        conv = lib.sized(lib.Conv)
        conv.height, conv.width, conv.channels, conv.outputs = g.height, g.width, g.channels, g.outputs
        conv.kernel_height, conv.kernel_width = g.kernel
        conv.stride_height, conv.stride_width = g.stride
        conv.dilation_height, conv.dilation_width = g.dilation
        conv.pad_top, conv.pad_left, conv.pad_bottom, conv.pad_right = g.padding
        conv.pad_value, conv.groups = g.padding_value, g.groups
        conv.sign_of_zero = 1 if g.zero_is_positive else -1
        conv.weights, conv.weight_count = weight.data_ptr(), weight.numel()
        model, session = ctypes.c_uint64(), ctypes.c_uint64()
        lib.call("conv_model", conv, model)
        try:
            options = lib.sized(lib.Options)
            options.device, options.max_batch = b"cpu" if on_cpu else name(self.weight.device).encode(), batch
            options.threads = threads if on_cpu else 0
            lib.call("open", model, options, session)
        finally:
            lib.status("close_model", model)
        self._session = session.value
        # Not at exit, where calls may be in progress; the process frees everything.
        weakref.finalize(self, lib.status, "close", self._session).atexit = False

    def run(self, x: Tensor, out: Tensor, images: int, layout: int) -> None:
        """Computes the output of a batch; both are dense, of float32, and in this layout, which
        is NHWC on a GPU. There it puts the run on the current stream.
        """
        if x.device.type == "cpu":
            self.run_if(self._kept, x, out, images, layout)
            return
        size, out_size = self._bytes, self._output_bytes
        at, out_at = x.data_ptr(), out.data_ptr()
        for first in range(0, images, self.batch):
            n = min(self.batch, images - first)
            lib.call(
                "enqueue",
                self._session,
                stream(x.device),
                n,
                lib.Tensor(at + first * size, n * size, _FLOAT32, layout),
                1,
                lib.Tensor(out_at + first * out_size, n * out_size, _FLOAT32, layout),
                1,
            )

    def run_if(self, weight: int, x: Tensor, out: Tensor, images: int, layout: int) -> bool:
        """Runs on the processor, if the packed weights at an address are those of the layer."""
        return _core.run_layer(
            self._session, self.batch, images, layout, x.data_ptr(), self._bytes, out.data_ptr(), self._output_bytes,
            weight, self._kept, self._weight_bytes,
        )  # fmt: skip


_layers: OrderedDict[object, Layer] = OrderedDict()
_lock = threading.Lock()


def known(key: object) -> Layer | None:
    """The session that was made under this key last. Its weights may have changed."""
    with _lock:
        found = _layers.get(key)
        if found is not None:
            _layers.move_to_end(key)
        return found


def layer(key: object, geometry: Geometry, output: tuple[int, ...], weight: Tensor, batch: int) -> Layer:
    """The session of a layer with these packed weights.

    ``key`` holds all that tells layers apart but the weights, the shape of these, packed, and
    where they come from. That is not trusted, as memory is used again and written to: the
    weights are compared, or on a GPU their version.
    """
    found = known(key)
    if found is not None and _equal(found, weight):
        return found
    is_versioned = weight.device.type != "cpu" and not weight.is_inference()
    made = Layer(geometry, output, weight if is_versioned else weight.clone(), batch, torch.get_num_threads())
    with _lock:
        _layers[key] = made
        _layers.move_to_end(key)
        # They are closed when the last call in progress lets go of them.
        dropped = [_layers.popitem(last=False)[1] for _ in range(len(_layers) - _MOST)]
    del dropped
    return made


def _equal(found: Layer, weight: Tensor) -> bool:
    a = found.weight  # of the same geometry
    if weight.device.type == "cpu" or found.version is None or weight.is_inference():  # which has no version
        return torch.equal(a, weight)
    # To compare them would be to wait for the device. The layer has kept the tensor, so there
    # can be no other at its address, and its version tells whether it has been written to.
    return found.version == weight._version
