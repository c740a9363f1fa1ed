"""What the tests share."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cuda import Driver
from numpy.typing import NDArray

import bitcnn

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "capi" / "testdata"


@pytest.fixture
def digits() -> bitcnn.Model:
    """The network for digits, on one thread."""
    return bitcnn.load("digits", device="cpu", threads=1)


@pytest.fixture
def seven() -> NDArray[np.uint8]:
    """An image of a seven."""
    data = (SAMPLES / "digit-7.pgm").read_bytes()
    return np.frombuffer(data[-28 * 28 :], np.uint8).reshape(28, 28, 1)


@pytest.fixture
def driver() -> Iterator[Driver]:
    """The driver of a CUDA device."""
    if not any(d.id == "cuda:0" for d in bitcnn.devices()):
        if "cuda" in os.environ.get("BCNN_TEST_REQUIRE", "").split(","):
            pytest.fail("there is no CUDA device")
        pytest.skip("there is no CUDA device, nor the emulated one (scripts/cuda-emulator)")
    d = Driver()
    yield d
    for f in reversed(d.cleanup):
        f()


def field(number: int, *content: bytes) -> bytes:
    """A field of protocol buffers with bytes in it."""
    data = b"".join(content)
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def relu(dims: tuple[int, ...] = (1, 2, 3, 4)) -> bytes:
    """An ONNX file with one node, Relu, of a float input."""

    def value(number: int, name: bytes) -> bytes:
        shape = b"".join(field(1, bytes([1 << 3, d])) for d in dims)
        return field(number, field(1, name), field(2, field(1, bytes([1 << 3, 1]), field(2, shape))))

    node = field(1, field(1, b"x"), field(2, b"y"), field(4, b"Relu"))
    graph = field(7, node, field(2, b"graph"), value(11, b"x"), value(12, b"y"))
    return bytes([1 << 3, 8]) + field(2, b"hand") + graph + field(8, bytes([2 << 3, 13]))


def run_python(code: str) -> str:
    """Runs code in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
