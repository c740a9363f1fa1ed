"""Layers that train in floats and infer on packed weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ._device import can_infer
from ._operators import _signs, binary_conv2d, binary_linear, check_geometry, conv2d, named_padding, pack, pair

Estimator = Literal["ste", "clipped", "polynomial"]


class _SignFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, estimator: Estimator, zero_is_positive: bool) -> Tensor:
        ctx.estimator = estimator
        if estimator != "ste":
            ctx.save_for_backward(x)
        return _signs(x, zero_is_positive)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        if ctx.estimator == "ste":
            return gradient, None, None
        (x,) = ctx.saved_tensors
        if ctx.estimator == "clipped":
            return gradient * (x.abs() <= 1), None, None
        return gradient * (2 - 2 * x.abs()).clamp_(min=0), None, None


def sign(x: Tensor, estimator: Estimator = "clipped", zero_is_positive: bool = True) -> Tensor:
    """+1 or -1 for each value, with the gradient of an estimator: see ``Sign``."""
    if _is_exporting() or not (torch.is_grad_enabled() and x.requires_grad):
        return _signs(x, zero_is_positive)  # operators that every importer reads
    result: Tensor = _SignFunction.apply(x, estimator, zero_is_positive)
    return result


def _is_exporting() -> bool:
    return torch.onnx.is_in_onnx_export()


class Sign(nn.Module):
    """+1 where x >= 0, or x > 0 if zero is not positive; -1 elsewhere, also of NaN.

    The estimator of the gradient is "ste", 1 everywhere; "clipped", 1 where abs(x) <= 1, the
    gradient of hard tanh; or "polynomial", 2 - 2 abs(x) where that is positive, as Bi-Real Net
    has it.
    """

    def __init__(self, estimator: Estimator = "clipped", zero_is_positive: bool = True) -> None:
        super().__init__()
        if estimator not in ("ste", "clipped", "polynomial"):
            raise ValueError(f'unknown estimator {estimator!r}; choose "ste", "clipped" or "polynomial"')
        self.estimator: Estimator = estimator
        self.zero_is_positive = zero_is_positive

    def forward(self, x: Tensor) -> Tensor:
        return sign(x, self.estimator, self.zero_is_positive)

    def extra_repr(self) -> str:
        return f"{self.estimator!r}, zero_is_positive={self.zero_is_positive}"


class RSign(nn.Module):
    """ReActNet's sign of images [N, C, H, W]: x + b is compared with 0, with b learned for
    each channel.
    """

    def __init__(self, channels: int, estimator: Estimator = "polynomial", zero_is_positive: bool = True) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.sign = Sign(estimator, zero_is_positive)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.sign(x + self.bias)
        return result


class RPReLU(nn.Module):
    """ReActNet's activation of images [N, C, H, W]: a PReLU of x + b, plus c, with the slope,
    b and c learned for each channel.
    """

    def __init__(self, channels: int, slope: float = 0.25) -> None:
        super().__init__()
        self.before = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.after = nn.Parameter(torch.zeros(1, channels, 1, 1))
        self.prelu = nn.PReLU(channels, slope)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.prelu(x + self.before) + self.after
        return result


class BinaryLayer(nn.Module):
    """What layers with weights of +1 and -1 share.

    ``weight`` are real numbers, whose signs (0 is +1) are the weights; their gradient is that
    of the signs. Where a gradient may be wanted, so in training mode, the layer computes in
    floats. Without one, in evaluation mode, a layer with a ``sign`` computes on the
    runtime's kernels, from ``packed``, which ``eval()`` makes. The outputs are equal.

    ``sign`` binarises the input. Without it the input is taken as it is: real numbers, or
    the output of a ``Sign``, and the layer always computes in floats.
    """

    packed: Tensor

    def __init__(self, shape: Sequence[int], sign: Sign | None) -> None:
        super().__init__()
        if sign is not None and not isinstance(sign, Sign):
            raise TypeError(f"sign is a {type(sign).__name__}, want a Sign or None; an RSign stands before the layer")
        self.weight = nn.Parameter(torch.empty(*shape))
        self.sign = sign
        self.register_buffer("packed", torch.empty(0, dtype=torch.int64), persistent=False)
        self._packed_of: tuple[int, int] | None = None
        self._frozen = False
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights."""
        nn.init.xavier_uniform_(self.weight)

    def binary_weight(self) -> Tensor:
        """The weights as a forward pass uses them, with their gradient."""
        return self.weight if self._frozen else sign(self.weight, "ste")

    @torch.no_grad()
    def clip(self) -> None:
        """Keeps the real weights in [-1, 1]: further out they would need many steps to change
        sign. It is for after each step of the optimiser.
        """
        self.weight.clamp_(-1, 1)

    @torch.no_grad()
    def freeze(self) -> None:
        """Replaces the real weights by their signs, which an exported file then has."""
        self.weight.copy_(_signs(self.weight))
        self._frozen = True

    def train(self, mode: bool = True) -> BinaryLayer:
        super().train(mode)
        self._packed_of = None  # whoever wrote to weight.data
        if not mode:
            self._pack()
        return self

    def _pack(self) -> None:
        """Packs the weights if they have changed."""
        if self.sign is None:
            return
        if not can_infer(self.weight.device):
            if self.packed.numel():  # it has come along from another device
                self.packed = self.packed.new_empty(0)
            self._packed_of = None
            return
        now = (self.weight.data_ptr(), self.weight._version)
        if self._packed_of != now:
            self.packed = pack(self.weight.detach())
            self._packed_of = now

    def _infers(self, x: Tensor) -> bool:
        """Whether the packed weights are used."""
        if self.training or self.sign is None or _is_exporting() or x.device != self.weight.device:
            return False
        if torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad):
            return False
        if not torch.compiler.is_compiling():
            self._pack()
        return self.packed.numel() > 0 and self.packed.device == x.device

    def _check_channels(self, what: str, have: int, want: int) -> None:
        # Packed weights do not tell: there may be bits behind the last channel.
        if have != want:
            raise ValueError(f"{type(self).__name__}: an input of {have} {what}, want {want}")

    def _signed(self, x: Tensor) -> Tensor:
        return x if self.sign is None else self.sign(x)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_packed_of": None}  # an address of this process


class BinaryConv2d(BinaryLayer):
    """A convolution with weights of +1 and -1 and no bias. The padding is that of
    ``torch.nn.Conv2d``, "same" and "valid" too. Padded taps have the value -1, 0 or 1; 0 is
    what suits an input of real numbers.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | str | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        padding_value: int = -1,
        sign: Sign | None = None,
    ) -> None:
        if padding_value not in (-1, 0, 1):
            raise ValueError(f"padding_value is {padding_value}, want -1, 0 or 1")
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(f"{groups} groups of {in_channels} channels and {out_channels} outputs")
        super().__init__((out_channels, in_channels // groups, *pair(kernel_size)), sign)
        self.stride, self.dilation = pair(stride), pair(dilation)
        self.padding = (
            named_padding(padding, self.weight.shape[2:], self.stride, self.dilation)
            if isinstance(padding, str)
            else pair(padding)
        )
        check_geometry("BinaryConv2d", self.stride, self.padding, self.dilation)
        self.groups, self.padding_value = groups, padding_value

    def forward(self, x: Tensor) -> Tensor:
        geometry = (self.stride, self.padding, self.dilation, self.groups, self.padding_value)
        if self._infers(x):
            assert self.sign is not None
            if x.dim() == 4:
                self._check_channels("channels", x.shape[1], self.weight.shape[1] * self.groups)
            return binary_conv2d(x, self.packed, *geometry, self.sign.zero_is_positive)
        weight = self.binary_weight()
        if not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last):
            weight = weight.contiguous(memory_format=torch.channels_last)
        return conv2d(self._signed(x), weight, *geometry)

    def extra_repr(self) -> str:
        out, group, *kernel = self.weight.shape
        return (
            f"{group * self.groups}, {out}, kernel_size={kernel}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, groups={self.groups}, padding_value={self.padding_value}"
        )


class BinaryLinear(BinaryLayer):
    """A dense layer with weights of +1 and -1 and no bias."""

    def __init__(self, in_features: int, out_features: int, sign: Sign | None = None) -> None:
        super().__init__((out_features, in_features), sign)

    def forward(self, x: Tensor) -> Tensor:
        if self._infers(x):
            assert self.sign is not None
            if x.dim():
                self._check_channels("features", x.shape[-1], self.weight.shape[1])
            result: Tensor = binary_linear(x, self.packed, self.sign.zero_is_positive)
            return result
        return nn.functional.linear(self._signed(x), self.binary_weight())

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}"
