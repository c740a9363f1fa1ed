"""Operators and layers for PyTorch against their definitions in floats."""

from __future__ import annotations

import copy
import pickle
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

torch = pytest.importorskip("torch")
bt = pytest.importorskip("bitcnn.torch")
nn, F, Tensor = torch.nn, torch.nn.functional, torch.Tensor

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
SPECIAL = torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-40, -1e-40])


def values(*shape: int, dtype: Any = torch.float32) -> Any:
    """Random values, among them those whose sign is a matter of rules."""
    x = torch.randn(*shape)
    chosen = torch.rand(*shape) < 0.1
    return torch.where(chosen, SPECIAL[torch.randint(0, len(SPECIAL), shape)], x).to(dtype)


def signs(x: Any, zero_is_positive: bool = True) -> Any:
    return torch.where(x >= 0 if zero_is_positive else x > 0, 1.0, -1.0)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(1)


# x, weights, stride, padding, dilation, groups, padding value, whether 0 is positive
CONVOLUTIONS = [
    ((2, 3, 7, 9), (5, 3, 3, 3), 1, 1, 1, 1, -1, True),
    ((1, 64, 8, 8), (32, 64, 3, 3), 1, 0, 1, 1, 1, False),
    ((3, 65, 5, 6), (7, 65, 2, 3), (2, 1), (1, 2), (1, 2), 1, 0, True),
    ((2, 130, 6, 6), (10, 65, 3, 3), 1, 1, 1, 2, 0, False),
    ((4, 1, 9, 9), (1, 1, 1, 1), 2, 0, 1, 1, -1, True),
    ((33, 128, 4, 4), (64, 128, 3, 3), 1, 1, 1, 1, 1, True),
    ((2, 16, 1, 1), (4, 16, 1, 1), 1, 0, 1, 1, -1, True),
    ((2, 9, 5, 6), (3, 9, 2, 4), 1, (0, 1, 1, 2), 1, 1, 1, False),
    ((2, 70, 6, 5), (3, 70, 3, 3), 2, (2, 0, 1, 3), 1, 1, 0, True),
    ((1, 8, 7, 7), (2, 8, 3, 2), 1, "valid", 2, 1, -1, True),
    ((2, 8, 7, 6), (4, 4, 2, 4), 1, "same", (3, 1), 2, -1, True),
]


def sides(padding: Any, w: Any, dilation: Any) -> list[int]:
    """The padding as F.pad takes it."""
    if padding == "same":  # as torch.nn.Conv2d has it: one more below and right where it is odd
        both = [d * (k - 1) for d, k in zip(bt._operators.pair(dilation), w.shape[2:], strict=True)]
        return [both[1] // 2, -(-both[1] // 2), both[0] // 2, -(-both[0] // 2)]
    if padding == "valid":
        padding = 0
    top, left, *rest = bt._operators.pair(padding)
    bottom, right = rest or (top, left)
    return [left, right, top, bottom]


def reference(x: Any, w: Any, *geometry: Any) -> Any:
    stride, padding, dilation, groups, padding_value, zero = geometry
    padded = F.pad(signs(x, zero).double(), sides(padding, w, dilation), value=padding_value)
    return F.conv2d(padded, signs(w).double(), None, stride, 0, dilation, groups)


@pytest.mark.parametrize("case", CONVOLUTIONS)
@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_conv2d_is_that_of_signs(case: Any, order: Any) -> None:
    x, w = values(*case[0]).contiguous(memory_format=order), values(*case[1])
    want = reference(x, w, *case[2:])
    for weight in (bt.pack(w), w):
        got = bt.binary_conv2d(x, weight, *case[2:])
        assert torch.equal(got.double(), want)
        assert got.is_contiguous(memory_format=order)


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("dilation", [1, (2, 1)])
def test_named_padding_is_that_of_torch(padding: str, dilation: Any) -> None:
    x = values(2, 8, 7, 8)
    for kernel in np.ndindex(4, 4):
        layer = bt.BinaryConv2d(8, 3, [k + 1 for k in kernel], 1, padding, dilation, 1, 0, bt.Sign())
        want = F.conv2d(signs(x), signs(layer.weight), None, 1, padding, dilation)
        assert torch.equal(layer(x), want)
        with torch.no_grad():
            assert torch.equal(layer.eval()(x), want)
            for weight in (layer.weight, layer.packed):
                assert torch.equal(bt.binary_conv2d(x, weight, 1, padding, dilation, 1, 0), want)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_types_keep_their_signs(dtype: Any) -> None:
    x, w = values(2, 20, 5, 5, dtype=dtype), values(3, 20, 3, 3)
    x[0, 0, 0, 0] = 1e-300 if dtype == torch.float64 else 1.0  # 0 as float32
    got = bt.binary_conv2d(x, w, zero_is_positive=False)
    assert got.dtype == dtype
    assert torch.equal(got.double(), reference(x, w, 1, 0, 1, 1, -1, False))
    assert torch.equal(
        bt.binary_linear(x.flatten(1)[:, :20], w[..., 0, 0]).double(),
        signs(x.flatten(1)[:, :20]).double() @ signs(w[..., 0, 0]).double().T,
    )


def test_strided_and_empty() -> None:
    x, w = values(2, 8, 9, 9), values(4, 8, 3, 3)
    assert torch.equal(bt.binary_conv2d(x[:, :, ::2, 1:], w), bt.binary_conv2d(x[:, :, ::2, 1:].contiguous(), w))
    assert torch.equal(
        bt.binary_conv2d(x.transpose(2, 3), w).double(), reference(x.transpose(2, 3), w, 1, 0, 1, 1, -1, True)
    )
    assert bt.binary_conv2d(x[:0], w).shape == (0, 4, 7, 7)
    assert bt.binary_linear(x[:0, :, 0, 0], w[..., 0, 0]).shape == (0, 4)


@pytest.mark.parametrize("shape", [(8,), (1, 65), (3, 5, 1000), (300, 64)])
def test_linear_is_that_of_signs(shape: tuple[int, ...]) -> None:
    x, w = values(*shape), values(70, shape[-1])
    for zero in (True, False):
        want = signs(x, zero) @ signs(w).T
        assert torch.equal(bt.binary_linear(x, w, zero), want)
        assert torch.equal(bt.binary_linear(x, bt.pack(w), zero), want)


@pytest.mark.parametrize("shape", [(1, 1), (3, 64), (2, 65, 3), (4, 130, 3, 5), (2, 63, 2, 3, 2)])
def test_pack_is_the_layout_of_the_runtime(shape: tuple[int, ...]) -> None:
    x = values(*shape)
    words = bt.pack(x)
    last = signs(x).movedim(1, -1)
    for index in np.ndindex(*words.shape):
        bits = last[index[:-1]][64 * index[-1] : 64 * index[-1] + 64].tolist()
        want = sum(1 << i for i, v in enumerate(bits) if v > 0)
        assert words[index].item() & (1 << 64) - 1 == want
    assert torch.equal(bt.unpack(words, shape[1]), signs(x))
    assert torch.equal(bt.unpack(bt.pack(x, False), shape[1]), signs(x, False))


def test_weights_that_change_are_seen() -> None:
    x, w = values(1, 64, 6, 6), values(8, 64, 3, 3)
    words = bt.pack(w)
    for _ in range(3):
        w.data.neg_()  # which no version tells
        words.data.copy_(bt.pack(w))
        assert torch.equal(bt.binary_conv2d(x, w).double(), reference(x, w, 1, 0, 1, 1, -1, True))
        assert torch.equal(bt.binary_conv2d(x, words).double(), reference(x, w, 1, 0, 1, 1, -1, True))


def test_weights_of_one_address() -> None:
    """Real and packed weights that share memory and have the same shape are told apart."""
    memory = torch.zeros(4 * 4, dtype=torch.int64)
    real, packed = memory.view(torch.float32)[: 4 * 3].view(4, 1, 3, 1), memory[: 4 * 3].view(4, 1, 3, 1)
    x = values(1, 1, 5, 5)
    for _ in range(2):
        assert torch.equal(
            bt.binary_conv2d(x, real).double(), reference(x, torch.ones(4, 1, 3, 1), 1, 0, 1, 1, -1, True)
        )
        want = reference(x, -torch.ones(4, 1, 1, 3), 1, 0, 1, 1, -1, True)
        assert torch.equal(bt.binary_conv2d(x, packed).double(), want)


def test_many_layers_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    from bitcnn.torch import _layer

    monkeypatch.setattr(_layer, "_MOST", 3)
    x = values(1, 8, 6, 6)
    weights = [values(2, 8, 3, 3) for _ in range(8)]
    for w in weights * 2:
        assert torch.equal(bt.binary_conv2d(x, w).double(), reference(x, w, 1, 0, 1, 1, -1, True))
    assert len(_layer._layers) == 3


def test_threads() -> None:
    x, w = values(4, 64, 8, 8), bt.pack(values(16, 64, 3, 3))
    want = bt.binary_conv2d(x, w)
    wrong: list[int] = []

    def call(number: int) -> None:
        for _ in range(50):
            if not torch.equal(bt.binary_conv2d(x, w), want):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: bt.binary_conv2d(torch.zeros(1, 3, 4, 4), torch.zeros(2, 4, 3, 3)), ValueError, "do not fit 3 channels"),
    (
        lambda: bt.binary_conv2d(torch.zeros(1, 3, 4, 4), torch.zeros(2, 3, 3, 2, dtype=torch.int64)),
        ValueError,
        "packed weights",
    ),
    (lambda: bt.binary_conv2d(torch.zeros(3, 4, 4), torch.zeros(2, 3, 3, 3)), ValueError, "four dimensions"),
    (lambda: bt.binary_conv2d(torch.zeros(1, 3, 2, 4), torch.zeros(2, 3, 3, 3)), ValueError, "does not fit"),
    (lambda: bt.binary_conv2d(torch.zeros(1, 3, 4, 4), torch.zeros(2, 3, 3, 3), stride=0), ValueError, "stride"),
    (
        lambda: bt.binary_conv2d(torch.zeros(1, 3, 4, 4), torch.zeros(2, 3, 3, 3), padding=(1, -1)),
        ValueError,
        "padding",
    ),
    (
        lambda: bt.binary_conv2d(torch.zeros(1, 3, 4, 4), torch.zeros(2, 3, 3, 3), padding_value=2),
        ValueError,
        "padding_value",
    ),
    (lambda: bt.binary_conv2d(torch.zeros(1, 3, 4, 4), torch.zeros(2, 1, 3, 3), groups=3), ValueError, "3 groups"),
    (lambda: bt.binary_conv2d(torch.zeros(1, 3, 4, 4, dtype=torch.uint8), torch.zeros(2, 3, 3, 3)), TypeError, "uint8"),
    (lambda: bt.binary_linear(torch.zeros(1, 3), torch.zeros(2, 3, dtype=torch.int32)), TypeError, "int32"),
    (lambda: bt.binary_linear(torch.zeros(1, 3), torch.zeros(2, 4)), ValueError, "do not fit 3 features"),
    (lambda: bt.binary_conv2d(np.zeros((1, 3, 4, 4)), torch.zeros(2, 3, 3, 3)), TypeError, "ndarray is not a tensor"),
    (lambda: bt.binary_linear(torch.zeros(1, 3), None), TypeError, "NoneType is not a tensor"),
    (lambda: bt.to_onnx("net", torch.zeros(1, 3)), TypeError, "str is not a module"),
    (lambda: bt.pack(torch.zeros(4)), ValueError, "pack"),
    (lambda: bt.pack(torch.zeros(4, 0)), ValueError, "pack"),
    (lambda: bt.unpack(torch.zeros(4, 1), 3), TypeError, "int64"),
    (lambda: bt.unpack(torch.zeros(4, 1, dtype=torch.int64), 65), ValueError, "2"),
    (lambda: bt.BinaryConv2d(2, 2, 3, padding_value=3), ValueError, "padding_value"),
    (lambda: bt.BinaryConv2d(2, 2, 3, padding="full"), ValueError, "padding is 'full', want \"same\""),
    (lambda: bt.BinaryConv2d(2, 2, 3, stride=(1, 2), padding="same"), ValueError, r"a stride of 1, not of \[1, 2\]"),
    (lambda: bt.BinaryConv2d(2, 2, 3, padding=(1, 2, 3)), ValueError, r"padding is \[1, 2, 3\], want 2 or 4 numbers"),
    (lambda: bt.BinaryConv2d(2, 2, 3, dilation=0), ValueError, "dilation"),
    (
        lambda: bt.binary_conv2d(torch.zeros(1, 3, 4, 4), torch.zeros(2, 3, 3, 3), 2, "same"),
        ValueError,
        "a stride of 1",
    ),
    (lambda: bt.binary_conv2d(torch.zeros(1, 3, 4, 4), None, 1, "same"), TypeError, "NoneType is not a tensor"),
    (lambda: bt.BinaryConv2d(2, 2, 3, sign=bt.RSign(2)), TypeError, "RSign"),
    (lambda: bt.Sign("tanh"), ValueError, "tanh"),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case[2])
def test_errors(case: tuple[Callable[[], Any], type[Exception], str]) -> None:
    with pytest.raises(case[1], match=case[2]):
        case[0]()


def test_bits_that_are_no_channels() -> None:
    weight = torch.full((2, 3, 3, 1), 1 << 62)
    with pytest.raises(ValueError, match="conv"):
        bt.binary_conv2d(torch.zeros(1, 3, 4, 4), weight)


def test_another_device_is_told() -> None:
    # There is no other device here; the meta device stands for one, behind the fake kernels.
    from bitcnn.torch import _operators

    other = torch.zeros(2, 2, device="meta")
    with pytest.raises(NotImplementedError, match="on the processor and on CUDA devices, and a tensor is on meta"):
        _operators._check_devices("pack", other)
    with pytest.raises(ValueError, match="a tensor is on meta, and another on cpu"):
        _operators._check_devices("pack", torch.zeros(2, 2), other)
    with pytest.raises(NotImplementedError, match="on meta weights must be packed"):
        _operators._check_packed("binary_linear", other)


class Onlooker(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Functions(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Subclass(Tensor):
    pass


def under(context: Any) -> Callable[[Callable[..., Any], Any], Any]:
    def call(f: Callable[..., Any], x: Any) -> Any:
        with context():
            return f(x)

    return call


# How an operator is called on x, and whether PyTorch has to know of it.
SEEN: dict[str, tuple[bool, Callable[[Callable[..., Any], Any], Any]]] = {
    "plain": (False, lambda f, x: f(x)),
    "parameter": (False, lambda f, x: f(nn.Parameter(x, requires_grad=False))),
    "no gradient": (False, lambda f, x: under(torch.no_grad)(f, x.clone().requires_grad_())),
    "inference": (False, lambda f, x: under(torch.inference_mode)(lambda x: f(x.clone()), x)),
    "gradient": (True, lambda f, x: f(x.clone().requires_grad_())),
    "dispatch mode": (True, under(Onlooker)),
    "function mode": (True, under(Functions)),
    "subclass": (True, lambda f, x: f(x.as_subclass(Subclass))),
    "profiler": (True, under(torch.autograd.profiler.profile)),
    "negative view": (True, lambda f, x: f(torch._neg_view(-x))),
    "trace": (True, lambda f, x: torch.jit.trace(f, x, check_trace=False)(x)),
    "vmap": (True, lambda f, x: torch.vmap(f)(x[None])[0]),
}


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("linear", [False, True])
def test_the_dispatcher_is_asked_where_it_matters(monkeypatch: pytest.MonkeyPatch, name: str, linear: bool) -> None:
    from bitcnn.torch import _operators

    operator = "_binary_linear" if linear else "_binary_conv2d"
    original, asked = getattr(_operators, operator), []
    monkeypatch.setattr(_operators, operator, lambda *arguments: asked.append(1) or original(*arguments))
    x, w = torch.randn(2, 70, 5, 5), torch.randn(3, 70, 3, 3)
    f, want = (lambda x: bt.binary_conv2d(x, words, padding=1)), reference(x, w, 1, 1, 1, 1, -1, True)
    if linear:
        x, w = torch.randn(4, 70), torch.randn(3, 70)
        f, want = (lambda x: bt.binary_linear(x, words)), (signs(x) @ signs(w).T).double()
    words = bt.pack(w)
    seen, call = SEEN[name]
    for _ in range(2):  # the second finds the layer
        asked.clear()
        assert torch.equal(call(f, x).double(), want)
        assert bool(asked) == seen


def test_numbers_are_whole() -> None:
    x, words = torch.randn(1, 8, 4, 4), bt.pack(torch.randn(2, 8, 3, 3))
    for _ in range(2):  # equal numbers of another type do not find the layer
        for wrong in ({"stride": (1.0, 1.0)}, {"groups": 1.0}, {"padding_value": -1.0}):
            with pytest.raises(TypeError):
                bt.binary_conv2d(x, words, **wrong)
        bt.binary_conv2d(x, words)


OPCHECKS: list[tuple[str, Callable[[], tuple[Any, ...]]]] = [
    ("pack", lambda: (torch.randn(3, 70, 4), True)),
    ("unpack", lambda: (bt.pack(torch.randn(3, 70, 4)), 70)),
    ("binary_conv2d", lambda: (torch.randn(2, 8, 5, 6, requires_grad=True), torch.randn(4, 8, 3, 3, requires_grad=True), [1, 2], [1, 0], [1, 1], 1, -1, True)),
    ("binary_conv2d", lambda: (torch.randn(2, 8, 5, 6).to(memory_format=torch.channels_last).requires_grad_(), bt.pack(torch.randn(4, 4, 3, 3)), [1, 1], [1, 1], [1, 1], 2, 0, False)),
    ("binary_conv2d", lambda: (torch.randn(2, 8, 5, 6, requires_grad=True), torch.randn(4, 8, 2, 4, requires_grad=True), [1, 1], [0, 1, 1, 2], [1, 1], 1, 1, True)),
    ("binary_linear", lambda: (torch.randn(2, 3, 70, requires_grad=True), torch.randn(5, 70, requires_grad=True), True)),
    ("binary_linear", lambda: (torch.randn(2, 70, requires_grad=True), bt.pack(torch.randn(5, 70)), False)),
]  # fmt: skip


@pytest.mark.parametrize("case", OPCHECKS, ids=lambda case: case[0])
def test_opcheck(case: tuple[str, Callable[[], tuple[Any, ...]]]) -> None:
    torch.library.opcheck(getattr(torch.ops.bitcnn, case[0]).default, case[1]())


@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_gradient_goes_straight_through(case: Any) -> None:
    """The gradient is that of the convolution of the signs as independent variables."""
    x, w = torch.randn(*case[0]), torch.randn(*case[1])
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    out = bt.binary_conv2d(a, b, *case[2:])
    gradient = torch.randint(-3, 4, out.shape).float()  # sums of whole numbers are exact
    out.backward(gradient)
    s, t = signs(x, case[7]).requires_grad_(), signs(w).requires_grad_()
    padded = F.pad(s, sides(case[3], w, case[4]), value=case[6])
    F.conv2d(padded, t, None, case[2], 0, case[4], case[5]).backward(gradient)
    assert torch.equal(a.grad, s.grad * (x.abs() <= 1))
    assert torch.equal(b.grad, t.grad)
    c = x.clone().requires_grad_()
    bt.binary_conv2d(c, bt.pack(w), *case[2:]).backward(gradient)
    assert torch.equal(c.grad, a.grad)


def test_gradient_of_linear() -> None:
    x, w = torch.randn(4, 3, 20), torch.randn(5, 20)
    a, b = x.clone().requires_grad_(), w.clone().requires_grad_()
    gradient = torch.randint(-3, 4, (4, 3, 5)).float()
    bt.binary_linear(a, b).backward(gradient)
    s, t = signs(x).requires_grad_(), signs(w).requires_grad_()
    F.linear(s, t).backward(gradient)
    assert torch.equal(a.grad, s.grad * (x.abs() <= 1))
    assert torch.equal(b.grad, t.grad)


@pytest.mark.parametrize(("estimator", "want"), [
    ("ste", [1, 1, 1, 1, 1, 1]),
    ("clipped", [0, 1, 1, 1, 1, 0]),
    ("polynomial", [0, 0, 1, 2, 1.5, 0]),
])  # fmt: skip
def test_estimators(estimator: Any, want: list[float]) -> None:
    x = torch.tensor([-1.5, -1.0, -0.5, 0.0, 0.25, 1.1], requires_grad=True)
    y = bt.Sign(estimator, zero_is_positive=False)(x)
    assert y.tolist() == [-1, -1, -1, -1, 1, 1]
    y.sum().backward()
    assert x.grad.tolist() == want


def test_react_net() -> None:
    x = torch.randn(2, 3, 4, 5)
    sign, act = bt.RSign(3), bt.RPReLU(3)
    with torch.no_grad():
        for p in (*sign.parameters(), *act.parameters()):
            p.uniform_(-1, 1)
    assert torch.equal(sign(x), signs(x + sign.bias))
    shifted = x + act.before
    slope = act.prelu.weight[None, :, None, None]
    assert torch.equal(act(x), torch.where(shifted >= 0, shifted, slope * shifted) + act.after)
    (sign(x) * act(x)).sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in (*sign.parameters(), *act.parameters()))


class Net(nn.Module):
    """One of each layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = bt.BinaryConv2d(1, 16, 5)
        self.conv4 = bt.BinaryConv2d(32, 32, 2, padding="same", padding_value=1, sign=bt.Sign())
        self.conv2 = bt.BinaryConv2d(16, 32, 3, padding=1, padding_value=1, sign=bt.Sign("polynomial"))
        self.sign3, self.conv3 = bt.RSign(32), bt.BinaryConv2d(32, 32, 3, padding=1, padding_value=0, groups=2)
        self.act3 = bt.RPReLU(32)
        self.dense = bt.BinaryLinear(32 * 36, 10, sign=bt.Sign(zero_is_positive=False))
        self.norms = nn.ModuleList([nn.BatchNorm2d(16), nn.BatchNorm2d(32), nn.BatchNorm1d(10)])

    def forward(self, x: Any) -> Any:
        x = self.norms[0](F.max_pool2d(self.conv1(x / 255), 2))
        x = self.norms[1](F.max_pool2d(self.conv2(x), 2))
        x = self.act3(self.conv3(self.sign3(x))) + self.conv4(x) / 32
        return self.norms[2](self.dense(x.flatten(1)))


def trained() -> tuple[Any, Any]:
    """A network after some steps, and images."""
    net, x = Net(), torch.randint(0, 256, (16, 1, 28, 28)).float()
    optimiser = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(3):
        optimiser.zero_grad()
        F.cross_entropy(net(x), torch.arange(16) % 10).backward()
        optimiser.step()
        for layer in net.modules():
            if isinstance(layer, bt.BinaryLayer):
                layer.clip()
    return net, x


def test_float_and_packed_are_equal() -> None:
    net, x = trained()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters())
    net.eval()
    floats = net(x)  # a gradient is wanted
    assert floats.requires_grad
    for order in (torch.contiguous_format, torch.channels_last):
        with torch.no_grad():
            assert torch.equal(net(x.contiguous(memory_format=order)), floats)
    again = pickle.loads(pickle.dumps(net))
    for other in (copy.deepcopy(net), again):
        with torch.inference_mode():
            assert torch.equal(other(x), floats)


@pytest.mark.parametrize("channels", [7, 9])
def test_other_channels_in_as_many_words(channels: int) -> None:
    conv, dense = bt.BinaryConv2d(8, 4, 3, sign=bt.Sign()).eval(), bt.BinaryLinear(8, 4, sign=bt.Sign()).eval()
    with torch.no_grad():
        with pytest.raises(ValueError, match=f"^BinaryConv2d: an input of {channels} channels, want 8$"):
            conv(torch.zeros(1, channels, 5, 5))
        with pytest.raises(ValueError, match=f"^BinaryLinear: an input of {channels} features, want 8$"):
            dense(torch.zeros(1, channels))


def test_packed_weights_follow() -> None:
    layer = bt.BinaryConv2d(8, 4, 3, sign=bt.Sign()).eval()
    x = torch.randn(1, 8, 5, 5)
    with torch.no_grad():
        for _ in range(2):
            layer.load_state_dict({"weight": torch.randn(4, 8, 3, 3)})
            assert torch.equal(layer(x).double(), reference(x, layer.weight, 1, 0, 1, 1, -1, True))
            layer.weight.neg_()
            assert torch.equal(layer(x).double(), reference(x, layer.weight, 1, 0, 1, 1, -1, True))
            layer.weight = nn.Parameter(torch.randn(4, 8, 3, 3))
            assert torch.equal(layer(x).double(), reference(x, layer.weight, 1, 0, 1, 1, -1, True))
    assert list(layer.state_dict()) == ["weight"]


class Sums(nn.Module):
    """Sums of whole numbers only, so that every order of arithmetic gives the same."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = bt.BinaryConv2d(3, 16, 3, padding=1, sign=bt.Sign())
        self.dense = bt.BinaryLinear(16 * 16, 10, sign=bt.Sign("polynomial"))

    def forward(self, x: Any) -> Any:
        return self.dense(F.max_pool2d(self.conv(x), 2).flatten(1) / 32)


@pytest.mark.long
def test_torch_compile() -> None:
    net, x = Sums(), torch.randint(-8, 9, (6, 3, 8, 8)) / 8
    eager, compiled = copy.deepcopy(net), torch.compile(copy.deepcopy(net), fullgraph=True)
    outputs = [model(x) for model in (eager, compiled)]
    assert torch.equal(*outputs)
    for out in outputs:
        out.sum().backward()
    for a, b in zip(eager.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)
    net.eval()
    torch._dynamo.reset()
    with torch.no_grad():
        fast = torch.compile(net, fullgraph=True)
        for images in (x, x[:5], x.contiguous(memory_format=torch.channels_last)):
            assert torch.equal(fast(images), net(images))


def test_torch_export() -> None:
    net, x = trained()
    net.eval()
    with torch.no_grad():
        program = torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
        names = [str(n.target) for n in program.graph.nodes]
        assert "bitcnn.binary_conv2d.default" in names
        assert "bitcnn.binary_linear.default" in names
        assert torch.equal(program.module()(x[:7]), net(x[:7]))


def test_compile_to_the_runtime() -> None:
    pytest.importorskip("onnxscript")
    net, x = trained()
    net.eval()
    before = copy.deepcopy(net.state_dict())
    with torch.no_grad():
        want = net(x)
    with bt.compile(net, x, device="cpu", max_batch=4) as model:
        assert model.name == "Net"
        report = model.report()
        # conv3 has groups of 16 channels, which are summed in float32.
        assert [row["precision"] for row in report] == ["float32", "binary", "float32", "binary", "binary"]
        np.testing.assert_allclose(model(x.numpy()), want.numpy(), rtol=1e-5, atol=1e-5)
    assert all(torch.equal(a, b) for a, b in zip(before.values(), net.state_dict().values(), strict=True))
    with pytest.raises(ValueError, match="example"):
        bt.compile(net, x[:0])


def test_tensors_in_tensors_out() -> None:
    pytest.importorskip("onnxscript")
    net = Sums().eval()
    x = torch.randint(-8, 9, (6, 3, 8, 8)) / 8
    with torch.no_grad():
        want = net(x)
    for batch in (4, 8):
        model = bt.compile(net, x, device="cpu", max_batch=batch)
        (name,), (output,) = [i.name for i in model.inputs], [o.name for o in model.outputs]
        with_gradient = x.clone().requires_grad_()
        last = x.contiguous(memory_format=torch.channels_last)
        for given in (x, with_gradient, last, nn.Parameter(x), x.double().float()):
            got = model(given)
            assert isinstance(got, Tensor)
            assert not got.requires_grad
            assert torch.equal(got, want)
        assert torch.equal(model(x[2]), want[2])
        assert torch.equal(model(x[::2]), want[::2])
        assert torch.equal(model.run({name: with_gradient})[output], want)
        assert isinstance(model(x.numpy()), np.ndarray)
        assert isinstance(model.run({name: x.numpy()})[output], np.ndarray)
        out, array = torch.zeros_like(want), np.zeros(want.shape, np.float32)
        assert model.run({name: x}, {output: out})[output] is out
        assert torch.equal(out, want)
        assert model.run({name: x}, {output: array})[output] is array
        assert np.array_equal(array, want.numpy())
        with pytest.raises(TypeError, match="tensor is float64"):
            model(x.double())
        with pytest.raises(TypeError, match="Tensor is not an array"):
            model(x.to("meta"))
        with pytest.raises(TypeError, match="Tensor is neither a NumPy array nor a tensor of the processor"):
            model.run({name: x}, {output: out.to("meta")})
        with pytest.raises(ValueError, match="overlaps"):
            model.run(
                {name: x.flatten()[: x.numel()].view(x.shape)}, {output: x.flatten()[: want.numel()].view(want.shape)}
            )


def test_readme() -> None:
    pytest.importorskip("onnxscript")
    text = (ROOT / "python" / "README.md").read_text()
    section = text[text.index("## PyTorch") : text.index("## Many machines")]
    names: dict[str, Any] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL)), names)
    assert names["scores"].shape == (8, 10)


def test_compile_several_inputs_and_outputs() -> None:
    pytest.importorskip("onnxscript")

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = bt.BinaryConv2d(4, 4, 3, sign=bt.Sign())

        def forward(self, a: Any, b: Any) -> Any:
            return self.conv(a) + b, self.conv(a)

    net = Two().eval()
    a, b = torch.randn(2, 4, 6, 6), torch.randn(2, 4, 4, 4)
    model = bt.compile(net, [a, b], device="cpu")
    out = model.run({"a": a.numpy(), "b": b.numpy()})
    with torch.no_grad():
        for got, want in zip(out.values(), net(a, b), strict=True):
            assert np.array_equal(got, want.numpy())


class Checked(nn.Module):
    """Modules that are called twice, write in place, do nothing, or have several results."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.act, self.drop, self.split = nn.ReLU(), nn.Dropout(), Split()
        self.dense = nn.Linear(4 * 36, 5)

    def forward(self, x: Any) -> Any:
        a, b = self.split(self.act(self.act(self.block(x)) - 0.1))
        return self.dense(self.drop(a + b).flatten(1))


class Split(nn.Module):
    def forward(self, x: Any) -> Any:
        return x[:, :4], x[:, 4:]


def test_check() -> None:
    pytest.importorskip("onnxscript")
    net, x = trained()
    check = bt.check(net, x, device="cpu")
    assert check.ok
    assert check.first is None
    assert not check.not_compared
    modules = check["module"]
    for name in ("conv1", "conv2.sign", "conv2", "conv4", "sign3.sign", "act3", "norms.2", "output"):
        assert name in modules
    exact = {row["module"]: row["difference"] for row in check}
    assert all(exact[name] == 0 for name in ("conv2.sign", "conv2", "conv3", "conv4", "dense"))
    assert net.training  # as it was

    check = bt.check(Checked(), torch.randn(3, 3, 8, 8), device="cpu", tolerance=1e-5)
    assert check.ok
    names = ["block.0", "block.1", "block.2", "act", "act (call 2)", "split[0]", "split[1]", "drop", "dense", "output"]
    assert check["module"] == names


def test_check_finds_what_differs() -> None:
    """A module that computes otherwise in an exported file stands for a wrong import."""
    pytest.importorskip("onnxscript")

    class Two(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 3 if torch.onnx.is_in_onnx_export() else x * 2

    class Summed(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.cumsum(1)  # which the importer does not take

    net = nn.Sequential(nn.Conv2d(3, 4, 3), Two(), nn.ReLU())
    x = torch.randn(2, 3, 6, 6)
    check = bt.check(net, x, device="cpu")
    assert not check.ok
    assert check.first == "1"
    assert [row["ok"] for row in check] == [True, False, False, False]
    assert check["relative"][1] == pytest.approx(0.5)
    assert "3 differ by more than 0.0001" in repr(check)
    pytest.importorskip("matplotlib")
    check.plot()

    class Aside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.other = nn.Conv2d(3, 4, 3), Summed()

        def forward(self, x: Any) -> Any:
            y = self.conv(x)
            self.other(y)
            return y

    check = bt.check(Aside(), x, device="cpu")
    assert check.ok
    assert list(check.not_compared) == ["other"]
    assert "not compared: other: " in repr(check)
    with pytest.raises(ValueError, match="CumSum"):
        bt.check(Summed(), x, device="cpu")
    with pytest.raises(TypeError, match="int is not a module"):
        bt.check(3, x)
