"""The C library, which is inside the extension module: bitcnn.h describes it."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from typing import Any

from . import _core

_library = c.CDLL(_core.__file__)

CLOSED, NOT_FOUND, FORKED = 3, 4, 10


class LoadOptions(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("bincnn", c.c_char_p),
        ("name", c.c_char_p),
        ("input_dtype", c.c_int32),
        ("input_height", c.c_int32),
        ("input_width", c.c_int32),
        ("input_channels", c.c_int32),
        ("mean", c.POINTER(c.c_float)),
        ("mean_count", c.c_size_t),
        ("scale", c.POINTER(c.c_float)),
        ("scale_count", c.c_size_t),
        ("sign_of_zero", c.c_int32),
        ("override_zeros", c.c_int32),
        ("weight_tolerance", c.c_double),
        ("labels", c.POINTER(c.c_char_p)),
        ("label_count", c.c_size_t),
        ("resize", c.c_int32),
        ("layers", c.c_int32),
        ("file_bytes", c.c_int64),
        ("tensor_bytes", c.c_int64),
    ]


class Conv(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        *[
            (name, c.c_int32)
            for name in (
                "height",
                "width",
                "channels",
                "outputs",
                "kernel_height",
                "kernel_width",
                "stride_height",
                "stride_width",
                "dilation_height",
                "dilation_width",
                "pad_top",
                "pad_left",
                "pad_bottom",
                "pad_right",
                "pad_value",
                "groups",
                "sign_of_zero",
            )
        ],
        ("weights", c.c_void_p),
        ("weight_count", c.c_size_t),
    ]


class DeviceInfo(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("id", c.c_char * 32),
        ("name", c.c_char * 128),
        ("detail", c.c_char * 128),
        ("kind", c.c_int32),
        ("max_threads", c.c_int32),
        ("max_batch", c.c_int64),
        ("memory", c.c_int64),
    ]


class Options(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("device", c.c_char_p),
        ("isa", c.c_char_p),
        ("kernels", c.c_char_p),
        ("max_batch", c.c_int64),
        ("parallel", c.c_int32),
        ("threads", c.c_int32),
        ("batch_delay_ns", c.c_int64),
        ("arena_bytes", c.c_int64),
    ]


class SessionInfo(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("inputs", c.c_size_t),
        ("outputs", c.c_size_t),
        ("labels", c.c_size_t),
        ("steps", c.c_size_t),
        ("max_batch", c.c_int64),
        ("box_classes", c.c_size_t),
    ]


class IOInfo(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("dtype", c.c_int32),
        ("layout", c.c_int32),
        ("height", c.c_int32),
        ("width", c.c_int32),
        ("channels", c.c_int32),
        ("resize", c.c_int32),
        ("bytes", c.c_size_t),
        ("source_layout", c.c_int32),
        ("source_rank", c.c_int32),
        ("source_dims", c.c_int64 * 31),
    ]


class Box(c.Structure):
    _fields_ = [
        ("left", c.c_float),
        ("top", c.c_float),
        ("right", c.c_float),
        ("bottom", c.c_float),
        ("score", c.c_float),
        ("index", c.c_int32),
    ]


class Frame(c.Structure):
    _fields_ = [
        ("x", c.c_double),
        ("y", c.c_double),
        ("width", c.c_double),
        ("height", c.c_double),
        ("photo_width", c.c_int32),
        ("photo_height", c.c_int32),
    ]


class Tensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("bytes", c.c_size_t),
        ("dtype", c.c_int32),
        ("layout", c.c_int32),
    ]


_text = [c.c_char_p, c.c_size_t, c.POINTER(c.c_size_t)]
_number, _size = c.c_uint64, c.c_size_t
_arguments: dict[str, list[Any]] = {
    "load": [c.c_char_p, c.POINTER(LoadOptions), c.POINTER(_number)],
    "read": [c.c_char_p, _size, c.POINTER(LoadOptions), c.POINTER(_number)],
    "bundled": [c.c_char_p, c.POINTER(_number)],
    "conv_model": [c.POINTER(Conv), c.POINTER(_number)],
    "save": [_number, c.c_char_p],
    "close_model": [_number],
    "read_image": [c.c_char_p, _size, c.c_int32, c.c_int32, c.c_int32, c.c_int32, c.c_uint32, c.c_void_p, _size],
    "read_photo": [_number, c.c_char_p, _size, c.c_uint32, c.c_void_p, _size, c.POINTER(Frame)],
    "detect": [
        _number,
        c.c_char_p,
        _size,
        c.c_float,
        c.c_float,
        c.c_uint32,
        c.POINTER(Box),
        _size,
        c.POINTER(_size),
    ],
    "top_k": [c.c_void_p, _size, c.POINTER(_size), c.POINTER(c.c_double), _size],
    "bundled_name": [_size, *_text],
    "report": [_number, *_text],
    "get_device": [_size, c.POINTER(DeviceInfo)],
    "open": [_number, c.POINTER(Options), c.POINTER(_number)],
    "close": [_number],
    "info": [_number, c.POINTER(SessionInfo)],
    "session_device": [_number, c.POINTER(DeviceInfo)],
    "input": [_number, _size, c.POINTER(IOInfo)],
    "output": [_number, _size, c.POINTER(IOInfo)],
    "input_name": [_number, _size, *_text],
    "output_name": [_number, _size, *_text],
    "label": [_number, _size, *_text],
    "step": [_number, _size, c.c_int, *_text],
    "run": [_number, c.c_int64, c.POINTER(Tensor), _size, c.POINTER(Tensor), _size],
    "enqueue": [_number, c.c_void_p, c.c_int64, c.POINTER(Tensor), _size, c.POINTER(Tensor), _size],
    "profile": [
        _number,
        c.c_int64,
        c.POINTER(Tensor),
        _size,
        c.c_int32,
        c.POINTER(c.c_int64),
        c.POINTER(c.c_int64),
        _size,
    ],
}


def _function(name: str) -> Callable[..., int]:
    f = getattr(_library, "bitcnn_" + name)
    f.argtypes = _arguments[name]
    f.restype = c.c_int
    return f  # type: ignore[no-any-return]


_functions = {name: _function(name) for name in _arguments}


def status(function: str, *arguments: Any) -> int:
    """Calls a function and returns what it returns."""
    return _functions[function](*arguments)


def call(function: str, *arguments: Any) -> None:
    """Calls a function, and raises its error."""
    if code := _functions[function](*arguments):
        _core.raise_status(code)


def sized(structure: type[Any]) -> Any:
    """Makes a structure whose first field is its size."""
    return structure(c.sizeof(structure))


def text(function: str, *arguments: Any) -> str:
    """Calls a function that writes text."""
    size = 256
    while True:
        buffer, length = c.create_string_buffer(size), c.c_size_t()
        call(function, *arguments, buffer, size, c.byref(length))
        if length.value < size:
            return buffer.value.decode("utf-8", "replace")
        size = length.value + 1


def listed(function: str) -> list[str]:
    """Calls a function that has a text for each index, until there is none."""
    names: list[str] = []
    buffer = c.create_string_buffer(256)
    while True:
        code = status(function, len(names), buffer, len(buffer), None)
        if code == NOT_FOUND:
            return names
        if code:
            _core.raise_status(code)
        names.append(buffer.value.decode())


_library.bitcnn_version.restype = c.c_char_p


def version() -> str:
    v = _library.bitcnn_version()
    if v is None:
        _core.raise_status(FORKED)
    return str(v.decode())
