"""The operators bitcnn::pack, unpack, binary_conv2d and binary_linear."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ._direct import is_direct
from ._layer import NCHW, NHWC, Geometry, known, layer

_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)

# Values of a tensor that a run takes at a time: a batch that stays in the cache, and one
# of vectors, whose weights are read once for all of it.
_IMAGES, _VECTORS = 1 << 16, 1 << 19


def _words(channels: int) -> int:
    return (channels + 63) // 64


def _check_tensors(name: str, *tensors: object) -> None:
    for t in tensors:
        if not isinstance(t, Tensor) and not hasattr(t, "__torch_function__"):
            raise TypeError(f"{name}: {type(t).__name__} is not a tensor")


def _check_devices(name: str, *tensors: Tensor) -> None:
    for t in tensors:
        if t.device != tensors[0].device:
            raise ValueError(f"bitcnn::{name}: a tensor is on {t.device}, and another on {tensors[0].device}")
        if t.device.type not in ("cpu", "cuda"):
            raise NotImplementedError(
                f"bitcnn::{name} computes on the processor and on CUDA devices, and a tensor is on {t.device}"
            )


def _check_packed(name: str, weight: Tensor) -> None:
    # Elsewhere they would be packed and compiled at each call.
    if weight.device.type != "cpu" and not _is_packed(weight):
        raise NotImplementedError(f"bitcnn::{name}: on {weight.device} weights must be packed: see bitcnn.torch.pack")


def _signs(x: Tensor, zero_is_positive: bool = True) -> Tensor:
    positive = x >= 0 if zero_is_positive else x > 0
    return torch.where(positive, 1.0, -1.0).to(x.dtype if x.dtype in _FLOATS else torch.float32)


@torch.library.custom_op("bitcnn::pack", mutates_args=())
def pack(x: Tensor, zero_is_positive: bool = True) -> Tensor:
    """Packs the signs of [N, C, ...] into words of 64 bits [N, ..., ceil(C / 64)] of int64.

    Channel c is bit c % 64 of word c / 64, 1 where x >= 0, or x > 0 if zero is not positive;
    the bits behind the last channel are 0. It has no gradient.
    """
    _check_devices("pack", x)
    _check_pack(x)
    positive = x.detach() >= 0 if zero_is_positive else x.detach() > 0
    if x.device.type != "cpu":
        return _pack_bits(positive.movedim(1, -1))
    bits = positive.movedim(1, -1).contiguous().numpy()
    packed = np.packbits(bits, axis=-1, bitorder="little")
    words = np.zeros((*bits.shape[:-1], 8 * _words(bits.shape[-1])), np.uint8)
    words[..., : packed.shape[-1]] = packed
    return torch.from_numpy(words.view(np.int64))


def _pack_bits(bits: Tensor) -> Tensor:
    """pack() by operators that every device has."""
    channels = bits.shape[-1]
    padded = torch.nn.functional.pad(bits.to(torch.int64), [0, 64 * _words(channels) - channels])
    places = torch.arange(64, device=bits.device)
    return (padded.view(*bits.shape[:-1], _words(channels), 64) << places).sum(-1)


def _unpack_bits(words: Tensor, channels: int) -> Tensor:
    """unpack() by operators that every device has, with the channels last."""
    places = torch.arange(64, device=words.device)
    return (words.unsqueeze(-1) >> places & 1).flatten(-2)[..., :channels]


def _check_pack(x: Tensor) -> None:
    if x.dim() < 2 or x.shape[1] == 0:
        raise ValueError(f"pack: a tensor of {list(x.shape)}, want [N, C, ...] with channels")
    if x.is_complex():
        raise TypeError(f"pack: a tensor of {x.dtype}, whose values have no sign")


@pack.register_fake
def _(x: Tensor, zero_is_positive: bool = True) -> Tensor:
    _check_pack(x)
    return x.new_empty((x.shape[0], *x.shape[2:], _words(x.shape[1])), dtype=torch.int64)


@torch.library.custom_op("bitcnn::unpack", mutates_args=())
def unpack(words: Tensor, channels: int) -> Tensor:
    """Unpacks words [N, ..., ceil(C / 64)] into +1 and -1 of float32 [N, C, ...]."""
    _check_devices("unpack", words)
    _check_unpack(words, channels)
    if words.device.type != "cpu":
        bits = _unpack_bits(words, channels)
    else:
        flat = words.contiguous().numpy().view(np.uint8)
        bits = torch.from_numpy(np.unpackbits(flat, axis=-1, count=channels, bitorder="little"))
    return (bits.movedim(-1, 1).to(torch.float32, memory_format=torch.contiguous_format) * 2).sub_(1)


def _check_unpack(words: Tensor, channels: int) -> None:
    if words.dtype != torch.int64:
        raise TypeError(f"unpack: words of {words.dtype}, want int64")
    if channels < 1 or words.dim() < 2 or words.shape[-1] != _words(channels):
        raise ValueError(
            f"unpack: words of {list(words.shape)} are not [N, ..., {_words(channels)}] for {channels} channels"
        )


@unpack.register_fake
def _(words: Tensor, channels: int) -> Tensor:
    _check_unpack(words, channels)
    return words.new_empty((words.shape[0], channels, *words.shape[1:-1]), dtype=torch.float32)


def _is_packed(weight: Tensor) -> bool:
    return weight.dtype == torch.int64


def _check_input(name: str, x: Tensor, weight: Tensor) -> None:
    if x.dtype not in _FLOATS:
        raise TypeError(f"{name}: an input of {x.dtype}, want a floating-point type")
    if not _is_packed(weight) and weight.dtype not in _FLOATS:
        raise TypeError(f"{name}: weights of {weight.dtype}, want int64 as pack() gives them, or a floating-point type")


def check_geometry(name: str, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]) -> None:
    for what, numbers, least, counts in (
        ("stride", stride, 1, (2,)),
        ("padding", padding, 0, (2, 4)),
        ("dilation", dilation, 1, (2,)),
    ):
        if len(numbers) not in counts or min(numbers) < least:
            want = " or ".join(map(str, counts))
            raise ValueError(f"{name}: {what} is {list(numbers)}, want {want} numbers of at least {least}")


def _output_shape(
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    padding_value: int,
) -> list[int]:
    """The shape of the output, where the arguments make sense."""
    _check_input("binary_conv2d", x, weight)
    if x.dim() != 4 or weight.dim() != 4:
        raise ValueError(f"binary_conv2d: {list(x.shape)} and weights {list(weight.shape)}, want four dimensions each")
    if padding_value not in (-1, 0, 1):
        raise ValueError(f"binary_conv2d: padding_value is {padding_value}, want -1, 0 or 1")
    check_geometry("binary_conv2d", stride, padding, dilation)
    outputs, channels = weight.shape[0], x.shape[1]
    if groups < 1 or channels % groups or outputs % groups:
        raise ValueError(f"binary_conv2d: {groups} groups of {channels} channels and {outputs} outputs")
    want = _words(channels // groups) if _is_packed(weight) else channels // groups
    kernel, have = (weight.shape[1:3], weight.shape[3]) if _is_packed(weight) else (weight.shape[2:], weight.shape[1])
    if have != want:
        kind = "packed weights" if _is_packed(weight) else "weights"
        raise ValueError(
            f"binary_conv2d: {kind} {list(weight.shape)} do not fit {channels} channels in {groups} groups"
        )
    shape = [x.shape[0], outputs]
    sides = _sides(padding)
    for i in range(2):
        room = x.shape[2 + i] + sides[i] + sides[2 + i] - dilation[i] * (kernel[i] - 1) - 1
        if room < 0 or kernel[i] < 1:
            what = f"{list(x.shape[2:])} with padding {list(padding)}"
            raise ValueError(f"binary_conv2d: a kernel of {list(kernel)} does not fit {what}")
        shape.append(room // stride[i] + 1)
    return shape


def _format(x: Tensor) -> torch.memory_format:
    """The order of the output: that of the input, if it has one."""
    if x.is_contiguous() or not x.is_contiguous(memory_format=torch.channels_last):
        return torch.contiguous_format
    return torch.channels_last


def _as_float32(x: Tensor, zero_is_positive: bool) -> Tensor:
    # Another type may have values that float32 rounds to 0.
    return x.detach() if x.dtype == torch.float32 else _signs(x.detach(), zero_is_positive).float()


def _convolve(
    x: Tensor,
    weight: Tensor,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    padding_value: int,
    zero_is_positive: bool,
) -> Tensor:
    """The operator on the processor, or on a GPU."""
    images = x.shape[0] if x.dim() else 0
    told = (
        x.shape[1:], stride, padding, dilation, groups, padding_value, zero_is_positive,
        weight.data_ptr(), torch.get_num_threads(),
    )  # fmt: skip
    # Of a layer that there is, nothing needs to be looked at again but types and weights.
    if x.dtype == torch.float32 and _is_packed(weight) and x.is_cpu and x.is_contiguous() and weight.is_contiguous():
        found = known((weight.shape, told))
        if found is not None:
            out = x.new_empty((images, *found.output))
            if found.run_if(weight.data_ptr(), x, out, images, NCHW):
                return out
    _check_devices("binary_conv2d", x, weight)
    shape = _output_shape(x, weight, stride, padding, dilation, groups, padding_value)
    _check_packed("binary_conv2d", weight)
    on_cpu = x.device.type == "cpu"
    order = _format(x) if on_cpu else torch.channels_last
    out = torch.empty(shape, dtype=torch.float32, memory_format=order, device=x.device)
    given = _as_float32(x, zero_is_positive).contiguous(memory_format=order)
    words = weight.contiguous() if _is_packed(weight) else pack(weight)
    if out.numel():
        geometry = Geometry(
            x.shape[2], x.shape[3], x.shape[1], shape[1], (words.shape[1], words.shape[2]),
            (stride[0], stride[1]), _sides(padding), (dilation[0], dilation[1]),
            groups, padding_value, zero_is_positive,
        )  # fmt: skip
        batch = min(max(1, _IMAGES // (max(given.numel(), out.numel()) // images)), 256)
        key: tuple[object, ...] = (words.shape, told)
        if not on_cpu:
            batch = _batch_on_gpu(images)
            key = (*key, weight.device, batch)
        layer(key, geometry, tuple(shape[1:]), words, batch).run(
            given, out, images, NCHW if order == torch.contiguous_format else NHWC
        )
    return out.to(x.dtype) if on_cpu else out.to(x.dtype, memory_format=_format(x))


@torch.library.custom_op("bitcnn::binary_conv2d", mutates_args=())
def _binary_conv2d(
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    padding_value: int,
    zero_is_positive: bool,
) -> Tensor:
    return _convolve(x, weight, tuple(stride), tuple(padding), tuple(dilation), groups, padding_value, zero_is_positive)


def _batch_on_gpu(images: int) -> int:
    """How many images a session for a GPU takes: all, with few sizes of sessions."""
    return min(1 << (images - 1).bit_length(), 256)


@_binary_conv2d.register_fake
def _(
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    padding_value: int,
    zero_is_positive: bool,
) -> Tensor:
    shape = _output_shape(x, weight, stride, padding, dilation, groups, padding_value)
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=_format(x))


def conv2d(
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    padding_value: int,
) -> Tensor:
    """A convolution in floats, whose padded taps have a value."""
    top, left, bottom, right = _sides(padding)
    if (top, left) == (bottom, right) and (padding_value == 0 or not any(padding)):
        return torch.nn.functional.conv2d(x, weight, None, tuple(stride), (top, left), tuple(dilation), groups)
    padded = torch.nn.functional.pad(x, [left, right, top, bottom], value=float(padding_value))
    return torch.nn.functional.conv2d(padded, weight, None, tuple(stride), 0, tuple(dilation), groups)


def _save_conv2d(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.geometry = inputs[2:]


def _conv2d_gradient(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    stride, padding, dilation, groups, padding_value, zero_is_positive = ctx.geometry
    signs = _signs(x, zero_is_positive)
    w = unpack(weight, x.shape[1] // groups).to(x.dtype) if _is_packed(weight) else _signs(weight).to(x.dtype)
    top, left, bottom, right = _sides(padding)
    padded = torch.nn.functional.pad(signs, [left, right, top, bottom], value=float(padding_value))
    of_x, of_w, _ = torch.ops.aten.convolution_backward(
        gradient, padded, w, None, stride, [0, 0], dilation, False, [0, 0], groups,
        [ctx.needs_input_grad[0], ctx.needs_input_grad[1], False],
    )  # fmt: skip
    if of_x is not None:
        height, width = x.shape[2:]
        of_x = of_x[:, :, top : top + height, left : left + width] * (x.abs() <= 1)
    if of_w is not None:
        of_w = of_w.to(weight.dtype)
    return of_x, of_w, None, None, None, None, None, None


_binary_conv2d.register_autograd(_conv2d_gradient, setup_context=_save_conv2d)


def binary_conv2d(
    x: Tensor,
    weight: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    padding_value: int = -1,
    zero_is_positive: bool = True,
) -> Tensor:
    """Convolves the signs of x [N, C, H, W] with the signs of the weights, exactly.

    The weights are packed, [O, KH, KW, ceil(C / groups / 64)] as ``pack`` gives them, or real
    numbers [O, C / groups, KH, KW], which are packed at each call and whose 0 is +1. The
    padding is one number, two (above and below, left and right), four (above, left, below,
    right), "valid", which is none, or "same", with a stride of 1. Padded taps have the value
    -1, 0 or 1. The output [N, O, OH, OW] has the type of x, and its order:
    channels_last, or contiguous. The gradient goes straight through the signs: to the weights
    as it is, unless they are packed, and to x where abs(x) <= 1.
    """
    if isinstance(padding, str):
        _check_tensors("binary_conv2d", x, weight)
        kernel = weight.shape[1:3] if _is_packed(weight) else weight.shape[2:4]
        padding = named_padding(padding, kernel, pair(stride), pair(dilation))
    if is_direct(x, weight) and type(zero_is_positive) is bool:
        sides = (_indices(stride), _indices(padding), _indices(dilation))
        return _convolve(x, weight, *sides, index(groups), index(padding_value), zero_is_positive)
    _check_tensors("binary_conv2d", x, weight)
    result: Tensor = _binary_conv2d(
        x, weight, pair(stride), pair(padding), pair(dilation), groups, padding_value, zero_is_positive
    )
    return result


def named_padding(padding: str, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """What "same" and "valid" stand for, as for torch.nn.Conv2d."""
    if padding == "valid":
        return [0, 0]
    if padding != "same":
        raise ValueError(f'padding is {padding!r}, want "same", "valid" or numbers')
    if any(n != 1 for n in stride):
        raise ValueError(f'padding="same" goes with a stride of 1, not of {list(stride)}')
    both = [d * (k - 1) for d, k in zip(dilation, kernel, strict=False)]
    return [n // 2 for n in both] + [n - n // 2 for n in both]


def _sides(padding: Sequence[int]) -> tuple[int, int, int, int]:
    """The padding above, left, below and right."""
    return (padding[0], padding[1], padding[-2], padding[-1])


def pair(n: int | Sequence[int]) -> list[int]:
    """[n, n] for a number."""
    return [n, n] if isinstance(n, int) else list(n)


def _indices(n: int | Sequence[int]) -> tuple[int, ...]:
    return (n, n) if isinstance(n, int) else tuple(map(index, n))


def _linear_shape(x: Tensor, weight: Tensor) -> list[int]:
    _check_input("binary_linear", x, weight)
    if x.dim() < 1 or weight.dim() != 2:
        raise ValueError(
            f"binary_linear: {list(x.shape)} and weights {list(weight.shape)}, want [..., I] and two dimensions"
        )
    features = x.shape[-1]
    if weight.shape[1] != (_words(features) if _is_packed(weight) else features) or features == 0:
        kind = "packed weights" if _is_packed(weight) else "weights"
        raise ValueError(f"binary_linear: {kind} {list(weight.shape)} do not fit {features} features")
    return [*x.shape[:-1], weight.shape[0]]


def _multiply(x: Tensor, weight: Tensor, zero_is_positive: bool) -> Tensor:
    """The operator on the processor, or on a GPU."""
    dims = x.shape
    features = dims[-1] if dims else 0
    vectors = x.numel() // features if features else 0
    told = (features, zero_is_positive, weight.data_ptr(), torch.get_num_threads())
    if x.dtype == torch.float32 and _is_packed(weight) and x.is_cpu and x.is_contiguous() and weight.is_contiguous():
        found = known((weight.shape, told))
        if found is not None:
            out = x.new_empty((*dims[:-1], *found.output))
            if found.run_if(weight.data_ptr(), x, out, vectors, NHWC):
                return out
    _check_devices("binary_linear", x, weight)
    shape = _linear_shape(x, weight)
    _check_packed("binary_linear", weight)
    out = torch.empty(shape, dtype=torch.float32, device=x.device)
    given = _as_float32(x, zero_is_positive).contiguous()
    words = weight.contiguous() if _is_packed(weight) else pack(weight)
    if out.numel():
        geometry = Geometry(1, 1, features, shape[-1], (1, 1), zero_is_positive=zero_is_positive)
        batch = min(max(1, _VECTORS // max(features, shape[-1])), 256)
        key: tuple[object, ...] = (words.shape, told)
        if x.device.type != "cpu":
            batch = _batch_on_gpu(vectors)
            key = (*key, weight.device, batch)
        layer(key, geometry, (shape[-1],), words, batch).run(given, out, vectors, NHWC)
    return out.to(x.dtype)


@torch.library.custom_op("bitcnn::binary_linear", mutates_args=())
def _binary_linear(x: Tensor, weight: Tensor, zero_is_positive: bool = True) -> Tensor:
    return _multiply(x, weight, zero_is_positive)


@_binary_linear.register_fake
def _(x: Tensor, weight: Tensor, zero_is_positive: bool = True) -> Tensor:
    return torch.empty(_linear_shape(x, weight), dtype=x.dtype, device=x.device)


def _save_linear(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], inputs[1])
    ctx.zero_is_positive = inputs[2]


def _linear_gradient(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    of_x = of_w = None
    if ctx.needs_input_grad[0]:
        w = unpack(weight, x.shape[-1]).to(x.dtype) if _is_packed(weight) else _signs(weight).to(x.dtype)
        of_x = gradient @ w * (x.abs() <= 1)
    if ctx.needs_input_grad[1]:
        signs = _signs(x, ctx.zero_is_positive).reshape(-1, x.shape[-1])
        of_w = (gradient.reshape(-1, gradient.shape[-1]).T @ signs).to(weight.dtype)
    return of_x, of_w, None


_binary_linear.register_autograd(_linear_gradient, setup_context=_save_linear)


def binary_linear(x: Tensor, weight: Tensor, zero_is_positive: bool = True) -> Tensor:
    """Multiplies the signs of x [..., I] by the signs of the weights, exactly.

    The weights are packed, [O, ceil(I / 64)], or real numbers [O, I], as for
    ``binary_conv2d``, which tells the gradient, too. The output is [..., O].
    """
    if is_direct(x, weight) and type(zero_is_positive) is bool:
        return _multiply(x, weight, zero_is_positive)
    _check_tensors("binary_linear", x, weight)
    result: Tensor = _binary_linear(x, weight, zero_is_positive)
    return result
