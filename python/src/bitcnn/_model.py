"""Models on a device."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from . import _library as lib
from ._boxes import Box, detect
from ._classes import Class, likeliest
from ._cuda import Memory, all_of, is_on_device
from ._image import Photo, read_input
from ._table import Table, Value
from ._tensors import detached, is_tensor, like

_DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 3: np.dtype(np.float32)}
_KINDS = ("discrete GPU", "integrated GPU", "CPU", "emulated")


@dataclass(frozen=True)
class Device:
    """A device, as ``devices()`` lists it."""

    id: str  # as load(device=...) takes it: "cpu", "cuda:0"
    name: str
    kind: str
    detail: str
    memory: int  # bytes, 0 if unknown
    max_threads: int  # 0 where threads are no choice
    max_batch: int


@dataclass(frozen=True)
class TensorInfo:
    """An input or an output of a model.

    ``shape`` is that of an array of one image, as the model has it that this one was imported
    from; arrays of a batch have the number of images before it. ``layout`` is "NHWC" (height,
    width, channels) or "NCHW" for images and "N" for vectors.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    layout: str
    resize: int = 0
    # The memory of a run is NHWC, and has this shape.
    _memory: tuple[int, ...] = field(default=(), repr=False, compare=False)

    @property
    def _as_is(self) -> bool:
        """Whether the memory has the order of arrays."""
        height, width, channels = self._memory
        return self.layout != "NCHW" or height * width == 1 or channels == 1

    def _to_memory(self, x: NDArray[Any]) -> NDArray[Any]:
        if self._as_is:
            return np.require(x, requirements=["C", "A"])  # a copy, if it is not so
        height, width, channels = self._memory
        batch = x.shape[: x.ndim - len(self.shape)]
        planes = x.reshape(*batch, channels, height, width)
        return np.require(np.moveaxis(planes, -3, -1), requirements=["C", "A"])

    def _from_memory(self, x: NDArray[Any]) -> NDArray[Any]:
        batch = x.shape[: x.ndim - 3]
        if not self._as_is:
            x = np.moveaxis(x, -1, -3)
        return x.reshape(batch + self.shape)


def _device(info: Any) -> Device:
    def text(field: bytes) -> str:
        return field.decode("utf-8", "replace")

    return Device(
        id=text(info.id),
        name=text(info.name),
        kind=_KINDS[info.kind],
        detail=text(info.detail),
        memory=info.memory,
        max_threads=info.max_threads,
        max_batch=info.max_batch,
    )


def devices() -> list[Device]:
    """The devices of this machine."""
    found: list[Device] = []
    while True:
        info = lib.sized(lib.DeviceInfo)
        code = lib.status("get_device", len(found), info)
        if code == lib.NOT_FOUND:
            return found
        if code:
            _core.raise_status(code)
        found.append(_device(info))


def bundled() -> list[str]:
    """The names of the trained models that are part of the package."""
    return lib.listed("bundled_name")


def _tensor_info(function: str, session: int, index: int) -> TensorInfo:
    info = lib.sized(lib.IOInfo)
    lib.call(function, session, index, info)
    shape = tuple(info.source_dims[: info.source_rank])
    name = lib.text(function + "_name", session, index)
    memory = (info.height, info.width, info.channels)
    # Of one channel, or one pixel, both orders are the same.
    first = info.source_layout == 2 or (shape == (memory[2], *memory[:2]) and shape != memory)
    layout = "N" if len(shape) == 1 else "NCHW" if first else "NHWC"
    return TensorInfo(name, _DTYPES[info.dtype], shape, layout, info.resize, memory)


def _spec(info: TensorInfo) -> tuple[str, tuple[int, ...]]:
    return info.dtype.char, info.shape if info._as_is else info._memory


def _wrong(name: str, why: str, kind: type[Exception] = ValueError) -> Exception:
    return kind(f"wrong tensor: {name}: {why}")


def _described(dtype: object, shape: Sequence[int]) -> str:
    return f"{dtype} {'×'.join(map(str, shape)) or 'without dimensions'}"


def _array(x: Any, info: TensorInfo) -> NDArray[Any]:
    """Returns x as an array of the right type and shape, or says what is wrong."""
    if not isinstance(x, np.ndarray):
        if isinstance(x, str | bytes | int | float | list | tuple | dict | set) or x is None:
            raise _wrong(info.name, f"{type(x).__name__} is not an array", TypeError)
        try:
            x = np.asarray(detached(x))
        except (TypeError, ValueError, RuntimeError, BufferError) as e:
            raise _wrong(info.name, f"{type(x).__name__} is not an array: {e}", TypeError) from e
    elif isinstance(x, np.ma.MaskedArray):
        raise _wrong(info.name, "masked arrays are not supported; use filled()", TypeError)
    typed = x.dtype == info.dtype and x.dtype.isnative
    if not typed or (x.shape != info.shape and x.shape[1:] != info.shape):
        have = x.shape[1:] if x.ndim == len(info.shape) + 1 else x.shape
        fix = ""
        if not typed and np.can_cast(x.dtype, info.dtype, "same_kind"):
            fix = f"; convert it with .astype(numpy.{info.dtype})"
        elif typed and have != info.shape and x.size == np.prod(info.shape):
            fix = f"; convert it with .reshape({', '.join(map(str, info.shape))})"
        raise _wrong(
            info.name,
            f"tensor is {_described(x.dtype, have)}, want {_described(info.dtype, info.shape)}{fix}",
            ValueError if typed else TypeError,
        )
    array: NDArray[Any] = x
    return array


class Model(_core.Runner):
    """A model on a device, ready to run, made by ``load()``.

    ``model(x)`` computes the output of an array: of a batch, or of one image, for which the
    output has no batch either. Of a tensor of PyTorch it is a tensor, without a gradient. Memory
    is neither copied in nor out, but for arrays that are not contiguous. It is safe for any
    number of threads, and runs without the lock of the interpreter.
    """

    name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    labels: tuple[str, ...]
    device: Device
    max_batch: int

    _model = _session = 0  # until they are there

    def __init__(self, model: int, options: Any) -> None:
        self._model = model
        session = ctypes.c_uint64()
        try:
            lib.call("open", model, options, session)
        finally:  # also what has failed
            self._session = session.value
            # Not at exit, where calls may be in progress; the process frees everything.
            weakref.finalize(self, _free, self._session, model).atexit = False
        info = lib.sized(lib.SessionInfo)
        lib.call("info", self._session, info)
        self.inputs = tuple(_tensor_info("input", self._session, i) for i in range(info.inputs))
        self.outputs = tuple(_tensor_info("output", self._session, i) for i in range(info.outputs))
        self.labels = tuple(lib.text("label", self._session, i) for i in range(info.labels))
        self._steps: int = info.steps
        self._detects: bool = info.box_classes > 0
        self.max_batch = info.max_batch
        device = lib.sized(lib.DeviceInfo)
        lib.call("session_device", self._session, device)
        self.device = _device(device)
        self.name = str(self._report()["name"])
        super().__init__(
            self._session,
            self.max_batch,
            tuple(map(_spec, self.inputs)),
            tuple(map(_spec, self.outputs)),
            np.empty,
            self.outputs[0].dtype,
            np.ma.MaskedArray,
            all(i._as_is for i in self.inputs + self.outputs),
        )

    def _adapt(self, x: Any) -> NDArray[Any]:
        return self.inputs[0]._to_memory(_array(x, self.inputs[0]))

    def _call(self, x: Any) -> Any:
        (info,), (output,) = self.inputs, self.outputs
        if is_on_device(x):
            return self._run_on_device({info.name: x}, None)[output.name]
        given = _array(x, info)
        batch = given.shape[: given.ndim - len(info.shape)]
        made = np.empty(batch + _spec(output)[1], output.dtype)
        self._run((info._to_memory(given),), (made,))
        return like([x], made if output._as_is else output._from_memory(made))

    def run(
        self,
        inputs: Mapping[str, ArrayLike],
        outputs: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Computes outputs by name from inputs by name.

        Arrays and tensors in ``outputs`` are written and returned; they must be contiguous,
        writable and apart from all others. Outputs that are not given are new arrays, or
        tensors where an input is one. Where an input is a tensor on a CUDA device, all are.
        """
        _names("input", inputs, self.inputs, complete=True)
        _names("output", outputs or {}, self.outputs, complete=False)
        if any(map(is_on_device, inputs.values())):
            return self._run_on_device(inputs, outputs)
        given = [_array(inputs[i.name], i) for i in self.inputs]
        batches = [a.shape[:1] if a.ndim > len(i.shape) else () for a, i in zip(given, self.inputs, strict=True)]
        for batch, info in zip(batches, self.inputs, strict=True):
            if batch != batches[0]:
                raise _wrong(info.name, f"{_images(batch)}, want {_images(batches[0])}")
        results: list[NDArray[Any]] = []  # as arrays
        made: list[NDArray[Any]] = []  # the memory of the run
        for info in self.outputs:
            shape = batches[0] + info.shape
            if outputs is not None and info.name in outputs:
                results.append(_output(outputs[info.name], info, shape, [*given, *results]))
            else:
                results.append(np.empty(shape, info.dtype))
            made.append(results[-1] if info._as_is else np.empty(batches[0] + info._memory, info.dtype))
        self._run(tuple(i._to_memory(a) for i, a in zip(self.inputs, given, strict=True)), tuple(made))
        for info, result, memory in zip(self.outputs, results, made, strict=True):
            if memory is not result:
                result[...] = info._from_memory(memory)
        given_back = {i.name: like(inputs.values(), a) for i, a in zip(self.outputs, results, strict=True)}
        return given_back | dict(outputs or {})

    def _run_on_device(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any] | None) -> dict[str, Any]:
        torch = sys.modules.get("torch")
        for name, x in inputs.items():
            if torch is None or not isinstance(x, torch.Tensor):
                raise _wrong(
                    name, f"{type(x).__name__} is not an array of the processor or a tensor; see enqueue()", TypeError
                )
        results: dict[str, Any] = importlib.import_module("bitcnn.torch._device").run(self, inputs, outputs or {})
        return results

    def enqueue(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any], stream: int = 0) -> None:
        """Puts a run on a stream of a CUDA device, and returns without waiting for it.

        Arrays are in memory of the device of the model, and all are given. They have
        ``__cuda_array_interface__``, as those of CuPy, Numba and PyTorch, and their memory is
        NHWC, also where their shape is NCHW. ``stream`` is a ``CUstream`` or ``cudaStream_t`` of
        the device's primary context, 0 for its default stream. The run waits for what is on
        the stream before, and for earlier runs of the model on other streams. Arrays and stream
        must be there until it has been done. Batches of more than ``max_batch`` images are
        several runs.
        """
        _names("input", inputs, self.inputs, complete=True)
        _names("output", outputs, self.outputs, complete=True)
        if not isinstance(stream, int):
            raise TypeError(f"stream is {stream!r}, want the handle of a stream as a number")
        if not 0 <= stream < 1 << 64:
            raise ValueError(f"stream is {stream}, which is not the handle of a stream")
        given = all_of(self.inputs, inputs, False, ())
        made = all_of(self.outputs, outputs, True, given)
        images = given[0].batch[0] if given[0].batch else 1
        for first in range(0, images, self.max_batch):
            n = min(self.max_batch, images - first)

            def part(infos: Sequence[TensorInfo], memory: Sequence[Memory], first: int = first, n: int = n) -> Any:
                tensors = (lib.Tensor * len(infos))()
                for t, info, m in zip(tensors, infos, memory, strict=True):
                    size = m.bytes // images
                    t.data, t.bytes, t.dtype = m.address + first * size, n * size, 3 if info.dtype == np.float32 else 1
                return tensors

            ins, outs = part(self.inputs, given), part(self.outputs, made)
            lib.call("enqueue", self._session, stream, n, ins, len(ins), outs, len(outs))

    def _report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(lib.text("report", self._model))
        return report

    def report(self) -> Table:
        """The layers that multiply: which are binary, and why others are not.

        The precision of a layer is that of the wider factor of its products: "binary" for one
        bit by one bit, "2-bit" to "16-bit" for integers, of which the bytes of an image have
        8, or "float32".
        """
        return _report_table(self._report())

    def profile(self, *inputs: ArrayLike, runs: int = 100) -> Table:
        """Measures the time of each step, and tells what the device has chosen for it.

        The median and the shortest time of ``runs`` are in µs, for a batch of up to
        ``max_batch`` images; without inputs it is one image of zeros. Steps are waited for one
        by one, so that their sum may exceed the time of a call.
        """
        if not inputs:
            inputs = tuple(np.zeros(i.shape, i.dtype) for i in self.inputs)
        if len(inputs) != len(self.inputs):
            raise ValueError(f"got {len(inputs)} inputs, want {len(self.inputs)}")
        if not isinstance(runs, int) or not 1 <= runs <= 1_000_000:
            raise ValueError(f"{runs} runs, want 1 to 1000000")
        given = [_array(x, i) for x, i in zip(inputs, self.inputs, strict=True)]
        images = 1 if given[0].ndim == len(self.inputs[0].shape) else given[0].shape[0]
        if images > self.max_batch:
            raise ValueError(f"batch of {images} images exceeds max_batch ({self.max_batch})")
        arrays = [i._to_memory(a) for i, a in zip(self.inputs, given, strict=True)]
        tensors = (lib.Tensor * len(arrays))(
            *[lib.Tensor(a.ctypes.data, a.nbytes, 3 if a.dtype == np.float32 else 1, 0) for a in arrays]
        )
        median, shortest = (ctypes.c_int64 * self._steps)(), (ctypes.c_int64 * self._steps)()
        lib.call("profile", self._session, images, tensors, len(arrays), runs, median, shortest, self._steps)
        total = sum(median)
        rows: list[list[Value]] = []
        for i, step in enumerate(self.steps()):
            share = 100 * median[i] / total if total else 0.0
            rows.append([str(step["step"]), median[i] / 1e3, shortest[i] / 1e3, share, *list(step.values())[1:]])
        return Table(
            f"{self.name} on {self.device.id}: {images} image{'s' if images > 1 else ''}, {runs} runs",
            ["step", "median_us", "min_us", "percent", "kind", "kernel", "tile", "why"],
            rows,
            {"step": "all", "median_us": total / 1e3, "min_us": sum(shortest) / 1e3, "percent": 100.0},
        )

    def steps(self) -> Table:
        """The steps of the network, and what the device has chosen for each, and why."""
        return Table(
            f"{self.name} on {self.device.id}",
            ["step", "kind", "kernel", "tile", "why"],
            [[lib.text("step", self._session, i, what) for what in range(5)] for i in range(self._steps)],
        )

    def read_image(self, source: Photo, *, background: Sequence[int] = (0, 0, 0)) -> NDArray[Any]:
        """The input of a model for images that is made of a photo: fitted and scaled as the model
        says, of its size and order, in floats where the model reads floats.

        ``source`` is what ``bitcnn.read_image`` takes.
        """
        if len(self.inputs) != 1:
            raise ValueError(f"the model has {len(self.inputs)} inputs and does not read photos")
        return read_input(self._session, source, self.inputs[0], background)[0]

    def classify(self, source: Photo, *, top: int = 5, background: Sequence[int] = (0, 0, 0)) -> list[Class]:
        """The likeliest classes of a photo, at most ``top``, the likeliest first.

        ``source`` is what ``bitcnn.read_image`` takes: a path, bytes, an array or an image of
        Pillow. The answer is that of the command.
        """
        if self._detects:
            raise ValueError("the model is a detector: use detect")
        if len(self.outputs) != 1:
            raise ValueError(f"the model has {len(self.outputs)} outputs and does not classify")
        return likeliest(self(self.read_image(source, background=background)), self.labels, top)

    def detect(
        self,
        source: Photo,
        *,
        threshold: float = 0.0,
        overlap: float = 0.0,
        top: int = 100,
        background: Sequence[int] = (0, 0, 0),
    ) -> list[Box]:
        """The objects on a photo, at most ``top``, those with the highest scores first, by a model that
        is a detector and says how photos become its input.

        ``source`` is what ``bitcnn.read_image`` takes. Scores exceed ``threshold``; 0 means 0.5, or that
        of the model where it is higher. Of two boxes of a class whose intersection over union is more
        than ``overlap``, the one with the lower score is dropped; 0 means as the model says. The answer
        is that of the command.
        """
        return detect(self._session, self.labels, source, threshold, overlap, top, background)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model to a .bcnn file, completely or not at all."""
        lib.call("save", self._model, _path(path))

    def close(self) -> None:
        """Waits for the calls in progress and frees everything. A second close does nothing."""
        code = _free(self._session, self._model)
        if code:
            _core.raise_status(code)

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        self.close()
        return False

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a model cannot be pickled: load it in each process")

    def __repr__(self) -> str:
        if not self._session:
            return "<bitcnn.Model, not loaded>"

        def describe(infos: Sequence[TensorInfo]) -> str:
            return ", ".join(f"{i.name}: {i.dtype} {i.shape}" for i in infos)

        return f"<bitcnn.Model {self.name!r} on {self.device.id}, {describe(self.inputs)} -> {describe(self.outputs)}>"


def _free(session: int, model: int) -> int:
    """Closes what is open, and returns the first error."""
    for function, number in (("close", session), ("close_model", model)):
        if number:
            code = lib.status(function, number)
            if code not in (0, lib.CLOSED):
                return code
    return 0


def _images(batch: Sequence[int]) -> str:
    return f"{batch[0]} images" if batch else "one image without a batch"


def _names(what: str, given: Mapping[str, Any], infos: Sequence[TensorInfo], *, complete: bool) -> None:
    known = [i.name for i in infos]
    if not isinstance(given, Mapping):
        raise TypeError(f"want a dictionary of {what}s by name: {', '.join(known)}")
    for name in given:
        if name not in known:
            raise KeyError(f"unknown {what} {name!r}; the model has {', '.join(known)}")
    for name in known:
        if complete and name not in given:
            raise KeyError(f"the {what} {name!r} is missing")


def _output(a: Any, info: TensorInfo, shape: tuple[int, ...], others: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if is_tensor(a) and a.device.type == "cpu":
        a = detached(a).numpy()
    if not isinstance(a, np.ndarray):
        raise _wrong(info.name, f"{type(a).__name__} is neither a NumPy array nor a tensor of the processor", TypeError)
    typed = a.dtype == info.dtype and a.dtype.isnative
    if not typed or a.shape != shape:
        raise _wrong(
            info.name,
            f"tensor is {_described(a.dtype, a.shape)}, want {_described(info.dtype, shape)}",
            ValueError if typed else TypeError,
        )
    if not a.flags.writeable:
        raise _wrong(info.name, "the array is read-only")
    if not a.flags.c_contiguous or not a.flags.aligned:
        raise _wrong(info.name, "an output must be contiguous")
    if any(np.may_share_memory(a, other) for other in others):
        raise _wrong(info.name, "the array overlaps another one")
    return a


def _report_table(report: Mapping[str, Any]) -> Table:
    columns = ["kind", "precision", "params", "float_bytes", "stored_bytes", "macs", "why_float"]
    totals: dict[str, Value] = {"layer": "all"}
    totals.update({name: report[name] for name in ("float_bytes", "stored_bytes", "macs")})
    inputs = ", ".join(f"{i['name']} {i['height']}×{i['width']}×{i['channels']} {i['dtype']}" for i in report["inputs"])
    return Table(
        f"{report['name']}: {inputs}; multiplications: {report['multiplications']}",
        ["layer", *columns],
        [[layer["name"], *(layer.get(c, "") for c in columns)] for layer in report["layers"]],
        totals,
        plotted="stored_bytes",
        coloured="precision",
    )


def _path(path: str | os.PathLike[str]) -> bytes:
    encoded = os.fsencode(path)
    if b"\0" in encoded:
        raise ValueError("embedded null byte in a path")
    return encoded
