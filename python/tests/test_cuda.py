"""Arrays in memory of a CUDA device, on streams of the test's, by the driver alone.

scripts/test-python puts the emulated driver in front. What is put on its streams is done when
somebody waits, so that a call that waits shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from conftest import relu
from cuda import Array, Driver, on_device
from numpy.typing import NDArray

import bitcnn


def images(n: int) -> NDArray[np.uint8]:
    return np.random.default_rng(n).integers(0, 256, (n, 28, 28, 1), np.uint8)


# Batches of several sizes, one of them in pieces, on two streams, between copies.
def test_enqueue(driver: Driver, digits: bitcnn.Model) -> None:
    model = bitcnn.load("digits", device="cuda:0", max_batch=2)
    streams = [driver.stream(), driver.stream(), 0]
    runs = []
    for i, n in enumerate([1, 5, 2, 3]):
        stream = streams[i % 3]
        x, y = driver.pinned(images(n)), driver.pinned(np.zeros((n, 10), np.float32))
        given, made = on_device(driver, x, offset=i), on_device(driver, y, offset=4 * i)
        driver.put(given, x, stream)
        model.enqueue({"input": given}, {model.outputs[0].name: made}, stream)
        driver.get(y, made, stream)
        runs.append((x, y))
    if model.device.kind == "emulated":
        assert not any(y.any() for _, y in runs)  # nothing has waited
    for stream in streams:
        driver.wait(stream)
    for x, y in runs:
        np.testing.assert_array_equal(y, digits(x))
    single, scores = driver.pinned(images(1)[0]), driver.pinned(np.zeros(10, np.float32))
    given, made = on_device(driver, single), on_device(driver, scores)
    driver.put(given, single, 0)
    model.enqueue({"input": given}, {model.outputs[0].name: made})
    driver.get(scores, made, 0)
    driver.wait(0)
    np.testing.assert_array_equal(scores, digits(single))
    np.testing.assert_array_equal(model(single), scores)  # from the processor
    model.close()


# Arrays of a model that has channels first are NHWC in memory all the same.
def test_enqueue_nchw(driver: Driver) -> None:
    model = bitcnn.load(relu((1, 2, 3, 4)), device="cuda:0", max_batch=4)
    stream = driver.stream()
    x = driver.pinned(np.random.default_rng(1).standard_normal((4, 3, 4, 2), np.float32)).transpose(0, 3, 1, 2)
    y = driver.pinned(np.zeros((4, 3, 4, 2), np.float32)).transpose(0, 3, 1, 2)
    given, made = on_device(driver, x), on_device(driver, y)
    driver.put(given, x, stream)
    model.enqueue({"x": given}, {"y": made}, stream)
    driver.get(y, made, stream)
    driver.wait(stream)
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    with pytest.raises(
        ValueError, match="wrong tensor: x: on a device the memory of an array must be NHWC, without gaps"
    ):
        model.enqueue({"x": on_device(driver, np.ascontiguousarray(x))}, {"y": made}, stream)


def test_wrong_arrays(driver: Driver, digits: bitcnn.Model) -> None:
    model = bitcnn.load("digits", device="cuda:0", max_batch=2)
    x, y = images(2), np.zeros((2, 10), np.float32)
    given, made = on_device(driver, x), on_device(driver, y)
    stream, name = driver.stream(), model.outputs[0].name

    def enqueue(i: Any = given, o: Any = made, s: int = stream, m: bitcnn.Model = model) -> None:
        m.enqueue({"input": i}, {name: o}, s)

    class Gone:
        pass

    wrong: Sequence[tuple[dict[str, Any], type[Exception], str]] = [
        ({"i": x}, TypeError, "ndarray is not an array on a CUDA device"),
        ({"i": Gone()}, TypeError, "Gone is not an array on a CUDA device"),
        ({"i": Array(0, x)}, ValueError, "NULL"),
        ({"i": Array(4096, x)}, ValueError, "input 0: 0x1000 is not in memory of a device"),
        ({"i": Array(x.ctypes.data, x)}, ValueError, "is not in memory of a device"),
        ({"i": Array(given.address, x[:, ::2])}, ValueError, "tensor is uint8 2×14×28×1, want uint8 28×28×1"),
        ({"i": Array(given.address, np.zeros((2, 28, 56, 1), np.uint8)[:, :, ::2])}, ValueError, "without gaps"),
        ({"i": Array(given.address, x.astype(np.float32))}, TypeError, "tensor is float32 2×28×28×1"),
        ({"i": Array(given.address, x[:0])}, ValueError, "a batch of (2,), and that of input is (0,)"),
        ({"i": Array(given.address, x[0])}, ValueError, "a batch of"),
        ({"o": Array(made.address, y, data=(made.address, True))}, ValueError, "the array is read-only"),
        ({"o": Array(given.address + 784, y)}, ValueError, "overlaps that of input"),
        ({"i": Array(given.address, x, typestr="zz")}, TypeError, "Array describes itself wrongly: TypeError"),
        ({"i": Array(given.address, x, shape=28)}, TypeError, "Array describes itself wrongly"),
        ({"i": Array(given.address, x, data=None)}, TypeError, "Array describes itself wrongly"),
        ({"i": Array(-8, x)}, TypeError, "Array describes itself wrongly"),
        ({"i": Array(given.address, x, strides=(1,))}, TypeError, "Array describes itself wrongly: ValueError"),
        ({"s": "7"}, TypeError, "stream is '7', want the handle"),
        ({"s": -1}, ValueError, "stream is -1"),
        ({"s": 2}, ValueError, "the default stream of a thread"),
        ({"s": 7}, ValueError, "0x7 is not a stream"),
        ({"m": digits}, NotImplementedError, "does not take tensors in its own memory"),
    ]
    if model.device.kind == "emulated":  # others may give more memory than was asked for
        short = Array(driver.memory(x.nbytes - 8), x)
        wrong = [*wrong, ({"i": short}, ValueError, "is not in memory of a device")]
    for arguments, kind, text in wrong:
        with pytest.raises(kind) as e:
            enqueue(**arguments)
        assert text in str(e.value)
    enqueue(i=Array(given.address, x[:0]), o=Array(made.address, y[:0]))  # nothing to do
    with pytest.raises(KeyError, match="is missing"):
        model.enqueue({"input": given}, {}, stream)
    for call in [lambda: model(given), lambda: model.run({"input": given})]:
        with pytest.raises(TypeError, match=r"Array is not an array of the processor or a tensor; see enqueue\(\)"):
            call()
    enqueue()
    model.close()
    with pytest.raises(ValueError, match="closed"):
        enqueue()
