"""Models: what they compute, what they take, what they say."""

import gzip
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, relu
from numpy.typing import NDArray

import bitcnn


def images(n: int) -> NDArray[np.uint8]:
    return np.random.default_rng(n).integers(0, 256, (n, 28, 28, 1), np.uint8)


def test_digits(digits: bitcnn.Model, seven: NDArray[np.uint8]) -> None:
    scores = digits(seven)
    assert scores.dtype == np.float32
    assert scores.shape == (10,)
    assert digits.labels[int(scores.argmax())] == "7"
    assert digits.name == "digits"
    assert digits.inputs == (bitcnn.TensorInfo("input", np.dtype(np.uint8), (28, 28, 1), "NHWC"),)
    assert [(o.dtype, o.shape, o.layout) for o in digits.outputs] == [(np.float32, (10,), "N")]
    assert digits.device.id == "cpu"
    assert "'digits' on cpu" in repr(digits)


# A batch of any size has the outputs of its images, whatever the size of the pieces.
@pytest.mark.parametrize("max_batch", [1, 3, 8])
def test_batches(digits: bitcnn.Model, max_batch: int) -> None:
    model = bitcnn.load("digits", device="cpu", max_batch=max_batch)
    assert model.max_batch == max_batch
    x = images(8)
    want = np.stack([digits(image) for image in x])
    for n in [8, 1, 3, 8, 7]:
        got = model(x[:n])
        assert got.shape == (n, 10)
        np.testing.assert_array_equal(got, want[:n])


# A network of PyTorch gives what PyTorch gives, for arrays in PyTorch's order; cmd/bcnn/testdata/reference.py
# has made the reference.
def test_layout_of_pytorch() -> None:
    packed = (ROOT / "bcnn" / "onnx" / "testdata" / "bireal.old.onnx.gz").read_bytes()
    with np.load(ROOT / "cmd" / "bcnn" / "testdata" / "bireal.old.npz") as reference:
        x, want = reference["input"], reference["output"]
    model = bitcnn.load(gzip.decompress(packed), device="cpu", max_batch=2)
    assert (model.inputs[0].layout, model.inputs[0].shape) == ("NCHW", x.shape[1:])
    np.testing.assert_allclose(model(x), want, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="wrong tensor"):
        model(np.moveaxis(x, 1, -1))


# A model with a float input computes what it is: here max(x, 0), infinities as well, and
# arrays are laid out as in the ONNX file, channels first.
@pytest.mark.parametrize("dims", [(2, 3, 4), (3, 3, 3), (1, 3, 4), (5, 2, 1)])
def test_floats(dims: tuple[int, int, int]) -> None:
    model = bitcnn.load(relu((1, *dims)), name="named", max_batch=2)
    assert model.name == "named"
    (info,), (output,) = model.inputs, model.outputs
    assert (info.name, info.shape) == ("x", dims)
    assert (output.name, output.shape) == ("y", dims)
    if min(dims) > 1:  # else an order of rows, columns and channels may be another one, too
        assert info.layout == output.layout == "NCHW"
    x = np.random.default_rng(1).standard_normal((5, *dims), np.float32)
    x[0, :, 0, 0] = np.inf
    x[1, 0] = -np.inf
    want = np.maximum(x, 0)
    np.testing.assert_array_equal(model(x), want)
    np.testing.assert_array_equal(model(x[3]), want[3])
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))  # channels last in memory
    np.testing.assert_array_equal(model(np.moveaxis(last, -1, 1)), want)
    np.testing.assert_array_equal(model.run({"x": x})["y"], want)
    np.testing.assert_array_equal(model.run({"x": x[3]})["y"], want[3])
    out = np.zeros_like(x)
    assert model.run({"x": x}, {"y": out})["y"] is out
    np.testing.assert_array_equal(out, want)
    assert model.profile(x[:2], runs=1)["step"]
    with pytest.raises(ValueError, match="batch of 5 images exceeds max_batch"):
        model.profile(x)
    with pytest.raises(ValueError, match="wrong tensor: x: tensor is float32"):
        model(np.zeros((*dims, 1), np.float32))
    # NaN is a value like others, of which no other image knows.
    x[4] = np.nan
    np.testing.assert_array_equal(model(x)[:4], want[:4])


# A path through Python does what the one in C does.
def test_slow_path(digits: bitcnn.Model) -> None:
    x = images(3)
    np.testing.assert_array_equal(digits._call(x), digits(x))
    np.testing.assert_array_equal(digits._call(x[0]), digits(x[0]))


def test_run(digits: bitcnn.Model) -> None:
    x = images(4)
    name = digits.outputs[0].name
    want = digits(x)
    got = digits.run({"input": x})
    assert list(got) == [name]
    np.testing.assert_array_equal(got[name], want)
    np.testing.assert_array_equal(digits.run({"input": x[0]})[name], want[0])
    out = np.zeros((6, 10), np.float32)
    given = out[1:5]
    assert digits.run({"input": x}, {name: given})[name] is given
    np.testing.assert_array_equal(out[1:5], want)
    assert not out[[0, 5]].any()


# Arrays that are contiguous are used where they are; others are copied.
def test_memory(digits: bitcnn.Model) -> None:
    x = images(4)
    want = digits(x)
    x.flags.writeable = False
    for same in [
        x,
        memoryview(x),
        np.asfortranarray(x),
        np.repeat(x, 2, axis=3)[..., :1],
        x[::-1][::-1],
        np.flip(np.ascontiguousarray(np.flip(x, 1)), 1),
        np.frombuffer(b"\0" + x.tobytes(), np.uint8, offset=1).reshape(x.shape),
    ]:
        np.testing.assert_array_equal(digits(same), want)
    single = bitcnn.load(relu())
    f = np.random.default_rng(2).standard_normal((2, 3, 4), np.float32)
    unaligned = np.frombuffer(b"\0" + f.tobytes(), np.uint8)[1:].view(np.float32).reshape(f.shape)
    assert not unaligned.flags.aligned
    np.testing.assert_array_equal(single(unaligned), single(f))


class Unreadable:
    def __array__(self, *_: object, **__: object) -> NDArray[np.uint8]:
        raise RuntimeError("the tensor is on another device")


def test_wrong_inputs(digits: bitcnn.Model) -> None:
    for x, kind, text in [
        (None, TypeError, "wrong tensor: input: NoneType is not an array"),
        ([1, 2], TypeError, "wrong tensor: input: list is not an array"),
        (b"abc", TypeError, "wrong tensor: input: bytes is not an array"),
        (Unreadable(), TypeError, "wrong tensor: input: Unreadable is not an array: the tensor is on another device"),
        (object(), TypeError, "tensor is object without dimensions, want uint8 28×28×1"),
        (np.zeros((28, 28, 1)), TypeError, "tensor is float64 28×28×1, want uint8 28×28×1"),
        (np.zeros((1, 28, 28, 1), np.int8), TypeError, "tensor is int8 28×28×1, want uint8 28×28×1"),
        (np.zeros((28, 28, 1), bool), TypeError, "tensor is bool 28×28×1, want uint8 28×28×1"),
        (np.zeros((28, 28, 3), np.uint8), ValueError, "tensor is uint8 28×28×3, want uint8 28×28×1"),
        (np.zeros((2, 28, 28, 3), np.uint8), ValueError, "tensor is uint8 28×28×3, want uint8 28×28×1"),
        (np.zeros((28, 28), np.uint8), ValueError, "tensor is uint8 28×28, want uint8 28×28×1"),
        (np.zeros((1, 1, 28, 28, 1), np.uint8), ValueError, "tensor is uint8 1×1×28×28×1, want uint8 28×28×1"),
        (np.zeros((), np.uint8), ValueError, "tensor is uint8 without dimensions, want uint8 28×28×1"),
        (np.zeros((0, 28, 28), np.uint8), ValueError, "tensor is uint8 0×28×28, want uint8 28×28×1"),
        (np.ma.zeros((28, 28, 1), np.uint8), TypeError, "wrong tensor: input: masked arrays are not supported"),
    ]:
        with pytest.raises(kind) as e:
            digits(x)
        assert text in str(e.value)
        with pytest.raises(kind) as e:
            digits.run({"input": x})
        assert text in str(e.value)
    swapped = np.zeros((2, 3, 4), np.float32).astype(np.dtype(np.float32).newbyteorder())
    with pytest.raises(TypeError, match="want float32"):
        bitcnn.load(relu())(swapped)
    for arguments in [(), (1, 2)]:
        with pytest.raises(TypeError, match="takes one array"):
            digits(*arguments)
    with pytest.raises(TypeError, match="takes one array"):
        digits(x=1)  # type: ignore[call-arg]


def test_wrong_names_and_outputs(digits: bitcnn.Model) -> None:
    x, name = images(2), digits.outputs[0].name
    with pytest.raises(KeyError, match="the input 'input' is missing"):
        digits.run({})
    with pytest.raises(KeyError, match="unknown input 'image'; the model has input"):
        digits.run({"input": x, "image": x})
    with pytest.raises(TypeError, match="want a dictionary of inputs by name: input"):
        digits.run(x)  # type: ignore[arg-type]
    good = np.zeros((2, 10), np.float32)
    read_only = good.copy()
    read_only.flags.writeable = False
    for out, kind, text in [
        (read_only, ValueError, "the array is read-only"),
        (np.zeros((2, 20), np.float32)[:, ::2], ValueError, "an output must be contiguous"),
        (np.zeros((3, 10), np.float32), ValueError, "tensor is float32 3×10, want float32 2×10"),
        (np.zeros((2, 10)), TypeError, "tensor is float64 2×10, want float32 2×10"),
        (memoryview(good), TypeError, "memoryview is neither a NumPy array nor a tensor"),
    ]:
        with pytest.raises(kind, match=text):
            digits.run({"input": x}, {name: out})  # type: ignore[dict-item]
    with pytest.raises(KeyError, match="unknown output 'y'; the model has "):
        digits.run({"input": x}, {"y": good})
    memory = np.zeros(2 * 784 + 80, np.uint8)
    with pytest.raises(ValueError, match="overlaps"):
        digits.run(
            {"input": memory[: 2 * 784].reshape(2, 28, 28, 1)},
            {name: memory[2 * 784 - 80 : 2 * 784].view(np.float32).reshape(2, 10)},
        )
    # What the C part checks by itself.
    for arguments in [((), ()), ((x,), (good[:1],)), ((x,), (read_only,)), ((x, x), (good,)), (x, good)]:
        with pytest.raises((TypeError, ValueError, BufferError)):
            digits._run(*arguments)
    assert not good.any()


def test_closed(digits: bitcnn.Model, tmp_path: Path) -> None:
    with digits as model:
        model(images(1))
    digits.close()
    for call in [lambda: digits(images(1)), lambda: digits.run({"input": images(1)}), digits.profile, digits.steps]:
        with pytest.raises(ValueError, match="the session is closed"):
            call()
    for call in [digits.report, lambda: digits.save(tmp_path / "x.bcnn")]:
        with pytest.raises(ValueError, match="the model is closed"):
            call()


def test_threads() -> None:
    model = bitcnn.load("digits", device="cpu", max_batch=4)
    x = images(64)
    want = model(x)
    failed: list[str] = []

    def run(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(100):
            at = int(random.integers(0, 60))
            n = int(random.integers(1, 5))
            if not np.array_equal(model(x[at : at + n]), want[at : at + n]):
                failed.append(f"{at} {n}")
            if not np.array_equal(model(x[at]), want[at]):
                failed.append(f"{at}")

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


# A model is closed while others run it: they get an error.
def test_close_while_running() -> None:
    model = bitcnn.load("digits", device="cpu")
    ended: list[str] = []

    def run() -> None:
        try:
            while True:
                model(np.zeros((28, 28, 1), np.uint8))
        except ValueError as e:
            ended.append(str(e))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    model.close()
    for t in threads:
        t.join()
    assert ended == ["the session is closed"] * 4


# The interpreter is not locked while a model runs: of a long run, another thread sees time pass.
def test_no_lock() -> None:
    model = bitcnn.load("vehiclenet", device="cpu", threads=1)
    x = np.zeros((2000, *model.inputs[0].shape), np.uint8)
    done = threading.Event()
    passed = 0

    def run() -> None:
        model(x)
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not done.is_set():
        done.wait(0.001)
        passed += 1
    thread.join()
    assert passed > 5


def test_not_twice(digits: bitcnn.Model) -> None:
    import pickle

    with pytest.raises(TypeError, match="load it in each process"):
        pickle.dumps(digits)
    one = (("B", (1,)),), (("f", (1,)),)
    with pytest.raises(TypeError, match="a model is made once"):
        bitcnn._core.Runner.__init__(digits, 1, 1, *one, np.empty, np.dtype("f"), object, True)  # type: ignore[attr-defined]
    bare = bitcnn.Model.__new__(bitcnn.Model)
    with pytest.raises(TypeError):
        bare(images(1))
    assert repr(bare) == "<bitcnn.Model, not loaded>"
    bare.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del bare


def test_no_images(digits: bitcnn.Model) -> None:
    """No images are as good a number of images as any other."""
    for x in (images(3)[:0], np.zeros((0, 28, 28, 2), np.uint8)[..., ::2]):
        assert digits(x).shape == (0, 10)
        assert digits(x).dtype == np.float32
        assert digits.run({"input": x})["output"].shape == (0, 10)
    out = np.empty((0, 10), np.float32)
    assert digits.run({"input": images(3)[:0]}, {"output": out})["output"] is out
    planes = bitcnn.load(relu())  # whose arrays have another order than the memory
    assert planes(np.zeros((0, *planes.inputs[0].shape), np.float32)).shape == (0, *planes.outputs[0].shape)
