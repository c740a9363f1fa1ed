"""Models from files, from memory, and of the package."""

from __future__ import annotations

import ctypes
import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from . import _library as lib
from ._model import Model, _path, _report_table, bundled
from ._table import Table

Source = str | os.PathLike[str] | bytes | bytearray | memoryview
_SIGNS = {None: 0, "plus": 1, "minus": -1}


def load(
    source: Source,
    *,
    device: str | None = None,
    max_batch: int = 1,
    threads: int = 0,
    parallel: int = 0,
    batch_delay: float = 0,
    isa: str | None = None,
    kernels: str | None = None,
    memory: int = 0,
    **format_options: Any,
) -> Model:
    """Loads a model and makes it ready to run on a device.

    ``source`` is the name of a bundled model, such as "digits", the path of a file of any
    format or of a folder of weights of BinCNN, or the bytes of a file. A path that is called
    like a bundled model is given as ``pathlib.Path`` or "./digits".

    ``device`` is "auto" for the best there is, "cuda", "opencl" or "cpu" for the first one of
    a backend, "cuda:1" for a certain one; None for what the environment variable BCNN_DEVICE
    says, else "auto". ``max_batch`` is the number of images that run together; larger batches
    are run in pieces. ``threads`` are those of the processor for all calls together and
    ``parallel`` the calls at the same time, 0 for all and as many. With ``batch_delay``, in
    seconds, calls at the same time share batches. ``memory`` limits the bytes of tensors.

    ``format_options`` are those of ``convert()``.
    """
    options = lib.sized(lib.Options)
    options.device = _text("device", device)
    options.isa, options.kernels = _text("isa", isa), _text("kernels", kernels)
    options.max_batch = _whole("max_batch", max_batch, 1)
    options.threads = _whole("threads", threads)
    options.parallel = _whole("parallel", parallel)
    options.batch_delay_ns = _nanoseconds(batch_delay)
    options.arena_bytes = _whole("memory", memory)
    model = _checked_load(source, format_options, load)
    try:
        return Model(model, options)
    except BaseException:
        lib.status("close_model", model)
        raise


def convert(source: Source, destination: str | os.PathLike[str], **format_options: Any) -> Table:
    """Converts a model to a .bcnn file, and returns the report of its layers.

    What a .bcnn file cannot represent exactly is an error that names all such nodes. The
    options are for what the format of the source leaves open:

    bincnn: "thresh", "norm" or "int", what a network of BinCNN does with bytes.
    name, labels, resize: in place of those of the file; not of a .bcnn file and of BinCNN.
    input_dtype, input_shape: what such a model is fed with; the shape is (height, width,
        channels), 0 for what the file says.
    mean, scale: (x - mean) * scale is put before it; one value, or one per channel.
    sign_of_zero: "plus" or "minus", what an ONNX Sign makes of 0; override_zeros applies it
        also where the input often is 0, which changes what the network computes.
    weight_tolerance: weights that differ from ±a by at most this fraction are taken as ±a;
        1e-6 is what rounding to float32 leaves, with 0 they must be equal.
    max_layers, max_file_bytes, max_tensor_bytes: limits for files from strangers.
    """
    model = _checked_load(source, format_options, convert)
    try:
        import json

        report = json.loads(lib.text("report", model))
        lib.call("save", model, _path(destination))
        return _report_table(report)
    finally:
        lib.status("close_model", model)


def _checked_load(source: Source, format_options: dict[str, Any], caller: Callable[..., Any]) -> int:
    known = _options(_load)
    for name in format_options:
        if name not in known:
            raise TypeError(f"unexpected option {name!r}; options: {', '.join(_options(caller) + known)}")
    return _load(source, **format_options)


def _options(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def _load(
    source: Source,
    *,
    bincnn: str | None = None,
    name: str | None = None,
    input_dtype: DTypeLike | None = None,
    input_shape: Sequence[int] = (0, 0, 0),
    mean: float | Sequence[float] | None = None,
    scale: float | Sequence[float] | None = None,
    sign_of_zero: Literal["plus", "minus"] | None = None,
    override_zeros: bool = False,
    weight_tolerance: float = 1e-6,
    labels: Sequence[str] | None = None,
    resize: int = 0,
    max_layers: int = 0,
    max_file_bytes: int = 0,
    max_tensor_bytes: int = 0,
) -> int:
    options = lib.sized(lib.LoadOptions)
    options.bincnn, options.name = _text("bincnn", bincnn), _text("name", name)
    if input_dtype is not None:
        codes = {np.dtype(np.uint8): 1, np.dtype(np.float32): 3}
        dtype = np.dtype(input_dtype)
        if dtype not in codes:
            raise ValueError(f"input_dtype is {dtype}, want uint8 or float32")
        options.input_dtype = codes[dtype]
    if len(input_shape) != 3:
        raise ValueError(f"input_shape is {tuple(input_shape)}, want (height, width, channels)")
    sides = [_whole("input_shape", n) for n in input_shape]
    options.input_height, options.input_width, options.input_channels = sides
    options.mean, options.mean_count = _floats(mean)
    options.scale, options.scale_count = _floats(scale)
    if sign_of_zero not in _SIGNS:
        raise ValueError(f'sign_of_zero is {sign_of_zero!r}, want "plus", "minus" or None')
    options.sign_of_zero = _SIGNS[sign_of_zero]
    options.override_zeros = bool(override_zeros)
    options.weight_tolerance = weight_tolerance or -1  # to the library, 0 is the default
    if labels is not None:
        texts = [_text("labels", label) for label in labels]
        options.labels = (ctypes.c_char_p * len(texts))(*texts)
        options.label_count = len(texts)
    options.resize = _whole("resize", resize)
    options.layers = _whole("max_layers", max_layers)
    options.file_bytes = _whole("max_file_bytes", max_file_bytes)
    options.tensor_bytes = _whole("max_tensor_bytes", max_tensor_bytes)

    number = ctypes.c_uint64()
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        lib.call("read", data, len(data), options, number)
    elif isinstance(source, str) and source in bundled():
        lib.call("bundled", source.encode(), number)
    else:
        try:
            lib.call("load", _path(source), options, number)
        except FileNotFoundError as e:
            if not isinstance(source, str) or not {".", "/", os.sep}.isdisjoint(source):
                raise
            raise FileNotFoundError(f"{e}; the bundled models are {', '.join(bundled())}") from None
    return number.value


def _whole(name: str, value: int, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} is {value!r}, want a whole number")
    if not least <= value < 1 << 31 and not (value < 1 << 62 and name.endswith(("bytes", "memory"))):
        raise ValueError(f"{name} is {value}, want {least} to {(1 << 31) - 1}")
    if value < least:
        raise ValueError(f"{name} is {value}, want at least {least}")
    return int(value)


def _nanoseconds(seconds: float) -> int:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float | np.integer | np.floating):
        raise TypeError(f"batch_delay is {seconds!r}, want seconds")
    if not 0 <= seconds < 1 << 30:
        raise ValueError(f"batch_delay is {seconds}, want 0 to {(1 << 30) - 1} seconds")
    return round(seconds * 1e9)


def _text(name: str, value: str | None) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, want a string")
    encoded = value.encode()
    if b"\0" in encoded:
        raise ValueError(f"{name} has a null character")
    return encoded


def _floats(values: float | Sequence[float] | None) -> tuple[Any, int]:
    if values is None:
        return None, 0
    array = np.atleast_1d(np.asarray(values, np.float32))
    if array.ndim != 1:
        raise ValueError("want one value, or one per channel")
    return (ctypes.c_float * array.size)(*array.tolist()), array.size
