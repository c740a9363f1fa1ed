"""Tensors on CUDA devices. No PyTorch with a GPU is at hand: its tensors on the processor stand for
them, in memory of the emulated device, which is the program's.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from conftest import relu
from cuda import Array, Driver

import bitcnn

torch = pytest.importorskip("torch")
bt = pytest.importorskip("bitcnn.torch")
from bitcnn.torch import _device, _layer, _operators  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)


@pytest.mark.parametrize("shape", [(1, 1), (3, 64), (2, 65, 3), (4, 130, 3, 5), (2, 63, 2, 3, 2)])
def test_operators_of_every_device_pack(shape: tuple[int, ...]) -> None:
    x = torch.randn(*shape)
    words = _operators._pack_bits((x >= 0).movedim(1, -1))
    assert torch.equal(words, bt.pack(x))
    assert torch.equal(_operators._unpack_bits(words, shape[1]).movedim(-1, 1) * 2.0 - 1, bt.unpack(words, shape[1]))


class Tensor:
    """What a layer asks of a tensor on a GPU, of one on the processor in its memory."""

    def __init__(self, driver: Driver, x: Any) -> None:
        self.address = driver.memory(x.numel() * x.element_size())
        memory = (ctypes.c_char * (x.numel() * x.element_size())).from_address(self.address)
        order = [0, 2, 3, 1] if x.is_floating_point() else [0, 1, 2, 3]  # floats are NHWC in memory
        values = torch.from_numpy(np.frombuffer(memory, x.numpy().dtype)).view([x.shape[d] for d in order])
        self.x = values.permute([order.index(d) for d in range(4)])
        self.x.copy_(x)
        self.device, self.shape, self._version = torch.device("cuda", 0), x.shape, 0

    def data_ptr(self) -> int:
        return self.address

    def cpu(self) -> Any:
        return self.x

    def numel(self) -> int:
        return int(self.x.numel())

    def is_inference(self) -> bool:
        return False


# The session of a layer on a device takes the current stream, and its weights by version.
def test_layers(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    current = driver.stream()
    monkeypatch.setattr(_layer, "stream", lambda _: current)
    x, w = torch.randn(3, 70, 6, 5), torch.randn(9, 70, 3, 3)
    weight, given = Tensor(driver, bt.pack(w)), Tensor(driver, x)
    made = Tensor(driver, torch.zeros(3, 9, 6, 5))
    geometry = _layer.Geometry(6, 5, 70, 9, (3, 3), padding=(1, 1, 1, 1), padding_value=-1)

    def find() -> Any:
        return _layer.layer("key", geometry, (9, 6, 5), weight, 2)  # type: ignore[arg-type]

    layer = find()
    layer.run(given, made, 3, _layer.NHWC)
    if bitcnn.devices()[1].kind == "emulated":
        assert not made.x.any()  # nothing has waited
    driver.wait(current)
    assert torch.equal(made.x, bt.binary_conv2d(x, bt.pack(w), padding=1))
    assert find() is layer
    weight._version += 1
    weight.x.copy_(bt.pack(-w))
    changed = find()
    assert changed is not layer
    changed.run(given, made, 3, _layer.NHWC)
    driver.wait(current)
    assert torch.equal(made.x, bt.binary_conv2d(x, bt.pack(-w), padding=1))
    _layer._layers.clear()


# A model takes tensors of any order, and gives them in that of the module.
@pytest.mark.parametrize("dims", [(2, 3, 4), (1, 3, 4), (5, 2, 1)])
def test_models(monkeypatch: pytest.MonkeyPatch, dims: tuple[int, ...]) -> None:
    model = bitcnn.load(relu((1, *dims)), max_batch=2)

    def enqueue(self: bitcnn.Model, inputs: dict[str, Any], outputs: dict[str, Any], stream: int) -> None:
        from bitcnn import _cuda

        assert stream == 42
        arrays = [{k: Array(t.data_ptr(), t.numpy()) for k, t in of.items()} for of in (inputs, outputs)]
        _cuda.all_of(self.outputs, arrays[1], True, _cuda.all_of(self.inputs, arrays[0], False, ()))
        outputs["y"].copy_(torch.from_numpy(np.asarray(bitcnn.Model.run(self, {"x": inputs["x"].numpy()})["y"])))

    monkeypatch.setattr(bitcnn.Model, "enqueue", enqueue)
    monkeypatch.setattr(_device, "stream", lambda _: 42)
    assert not _device.is_on(torch.zeros(1), model)
    with pytest.raises(ValueError, match="wrong tensor: x: it is on cpu, and the model on cpu"):
        _device.run(model, {"x": torch.zeros(1, *dims)}, {})
    monkeypatch.setattr(_device, "is_on", lambda *_: True)
    for x in (torch.randn(5, *dims), torch.randn(*dims), torch.randn(*dims, 3).permute(3, 0, 1, 2)):
        want = x.clamp(min=0)
        assert torch.equal(_device.run(model, {"x": x}, {})["y"], want)
        made = _device.empty(model.outputs[0], want.shape[: want.dim() - 3], torch.device("cpu"))
        assert _device.run(model, {"x": x}, {"y": made})["y"] is made
        assert torch.equal(made, want)
    with pytest.raises(TypeError, match="wrong tensor: x: tensor is float64"):
        _device.run(model, {"x": torch.zeros(1, *dims, dtype=torch.float64)}, {})
    with pytest.raises(TypeError, match="ndarray is not a tensor"):
        _device.run(model, {"x": torch.zeros(1, *dims)}, {"y": np.zeros((1, *dims))})
    with pytest.raises(ValueError, match="wrong tensor: x: tensor is float32 7"):
        _device.run(model, {"x": torch.zeros(7)}, {})


# Layers without kernels for their device compute in floats.
def test_modules_elsewhere() -> None:
    layer = bt.BinaryLinear(70, 5, sign=bt.Sign()).eval()
    assert layer.packed.numel()
    x = torch.randn(2, 70)
    with torch.no_grad():
        want = layer(x)
    assert _device.can_infer(torch.device("cpu"))
    assert not _device.can_infer(torch.device("meta"))
    assert not _device.can_infer(torch.device("cuda", 99))
    moved = layer.to("meta")
    moved._pack()
    assert not moved.packed.numel()
    with torch.no_grad():
        assert moved(x.to("meta")).shape == want.shape
    assert moved._packed_of is None
