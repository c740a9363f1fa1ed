"""Loading and converting, and what is said when it fails."""

import re
from pathlib import Path

import numpy as np
import pytest
from conftest import relu

import bitcnn


def test_sources(tmp_path: Path) -> None:
    assert "digits" in bitcnn.bundled()
    assert bitcnn.version()
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.\w+)?", bitcnn.__version__)
    digits = bitcnn.load("digits", device="cpu")
    file = tmp_path / "digits"
    digits.save(file)
    x = np.random.default_rng(1).integers(0, 256, (28, 28, 1), np.uint8)
    data = file.read_bytes()
    for source in [file, str(file), data, bytearray(data), memoryview(data)]:
        np.testing.assert_array_equal(bitcnn.load(source, device="cpu")(x), digits(x))


def test_convert(tmp_path: Path) -> None:
    source, destination = tmp_path / "relu.onnx", tmp_path / "relu.bcnn"
    source.write_bytes(relu())
    report = bitcnn.convert(
        source,
        destination,
        name="given",
        labels=[f"label {i}" for i in range(24)],
        input_dtype=np.uint8,
        mean=[1, 2],
        scale=0.5,
        resize=5,
    )
    assert report.title.startswith("given: x 3×4×2 uint8; ")
    model = bitcnn.load(destination)
    assert model.name == "given"
    assert model.inputs[0].resize == 5
    assert model.labels[23] == "label 23"
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    want = np.maximum((x.astype(np.float32) - [[[1]], [[2]]]) * 0.5, 0)
    np.testing.assert_array_equal(model(x), want.astype(np.float32))


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"device": "gpu"}, RuntimeError, "gpu: not available: no such device, want auto, cpu, cuda, opencl"),
        ({"device": "cpu:7"}, RuntimeError, "cpu:7"),
        ({"device": 3}, TypeError, "device is 3, want a string"),
        ({"device": "a\0b"}, ValueError, "null character"),
        ({"device": "cpu", "isa": "mmx"}, NotImplementedError, "mmx"),
        ({"max_batch": 0}, ValueError, "max_batch is 0"),
        ({"max_batch": 1 << 31}, ValueError, "max_batch is 2147483648"),
        ({"max_batch": 1.5}, TypeError, "want a whole number"),
        ({"threads": -1}, ValueError, "threads is -1"),
        ({"parallel": 5000, "device": "cpu"}, ValueError, "5000 Runs in parallel"),
        ({"memory": 1, "device": "cpu"}, MemoryError, "the limit is 1"),
        ({"batch_delay": 1, "device": "cpu"}, ValueError, "BatchDelay"),
        ({"sign_of_zero": 1}, ValueError, "sign_of_zero is 1"),
        ({"input_dtype": np.int32}, ValueError, "input_dtype is int32"),
        ({"input_shape": (1, 2)}, ValueError, "input_shape"),
        ({"mean": [[1.0]]}, ValueError, "one value, or one per channel"),
        ({"mean": [1.0, 2.0, 3.0]}, ValueError, "3"),
        ({"labels": [1]}, TypeError, "labels is 1"),
        ({"max_file_bytes": 7}, ValueError, "7"),
        ({"dev": 1}, TypeError, "unexpected option 'dev'; options: device, max_batch,"),
        ({"batch_delay": "1"}, TypeError, "batch_delay is '1', want seconds"),
        ({"batch_delay": float("nan")}, ValueError, "batch_delay is nan, want 0 to"),
        ({"batch_delay": float("inf")}, ValueError, "batch_delay is inf, want 0 to"),
        ({"batch_delay": -1}, ValueError, "batch_delay is -1, want 0 to"),
    ],
)
def test_wrong_options(options: dict[str, object], kind: type[Exception], text: str) -> None:
    model = "digits" if "memory" in options else relu()  # which needs none of its own
    with pytest.raises(kind) as e:
        bitcnn.load(model, **options)  # type: ignore[arg-type]
    assert text in str(e.value)


def test_wrong_sources(tmp_path: Path) -> None:
    missing = tmp_path / "no such file.onnx"
    with pytest.raises(FileNotFoundError) as e:
        bitcnn.load(missing)
    assert str(missing) in str(e.value)
    with pytest.raises(FileNotFoundError, match=r"^digit: .*; the bundled models are vehiclenet, .*streetview$"):
        bitcnn.load("digit")
    with pytest.raises(FileNotFoundError):
        bitcnn.convert(relu(), tmp_path / "none" / "x.bcnn")
    # Of a path through a file Windows says that there is none.
    with pytest.raises(OSError, match=r"not a directory|cannot find the path|Path not found") as e:
        bitcnn.load(__file__ + "/x")
    assert "bundled" not in str(e.value)
    text = tmp_path / "text"
    text.write_text("no model\n")
    for source, why in [
        (b"", "an empty file"),
        (text, re.escape(str(text))),
        (relu()[:-30], "not a valid ONNX file"),
        (tmp_path, "a folder"),
    ]:
        with pytest.raises(ValueError, match=why):
            bitcnn.load(source)
    with pytest.raises(ValueError, match="null byte"):
        bitcnn.load("a\0b")
    with pytest.raises(TypeError):
        bitcnn.load(3)  # type: ignore[arg-type]
    assert not (tmp_path / "none").exists()


def test_devices() -> None:
    devices = bitcnn.devices()
    (cpu,) = [d for d in devices if d.id == "cpu"]
    assert cpu.kind == "CPU"
    assert cpu.max_threads >= 1
    assert cpu.memory > 0
    x = np.random.default_rng(3).integers(0, 256, (28, 28, 1), np.uint8)
    want = bitcnn.load("digits", device="cpu")(x)
    for d in devices:
        np.testing.assert_array_equal(bitcnn.load("digits", device=d.id)(x), want)
