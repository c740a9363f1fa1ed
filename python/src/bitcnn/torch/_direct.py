"""Whether an operator may be called without PyTorch's dispatcher, which takes longer than a layer."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import Parameter

_C = torch._C


def _set(*names: str) -> int:
    keys = _C.DispatchKeySet(getattr(_C.DispatchKey, names[0]))
    for name in names[1:]:
        keys = keys | _C.DispatchKeySet(getattr(_C.DispatchKey, name))
    return keys.raw_repr()


# The keys of tensors on the processor that are nothing else, and those of a thread in which
# nothing looks on: with and without inference mode.
_TENSORS = {_set("CPU", "AutocastCPU", "ADInplaceOrView", "AutogradCPU"), _set("CPU", "AutocastCPU")}
_THREADS = {_set("BackendSelect", "ADInplaceOrView"), _set("BackendSelect")}
_TYPES = (Tensor, Parameter)


def is_direct(x: Tensor, weight: Tensor) -> bool:
    """Whether the dispatcher would call the kernel for the processor, and nothing before it: no
    gradient, tracing, mode, transform, subclass or profiler.
    """
    return (
        not torch.compiler.is_compiling()
        and type(x) in _TYPES
        and type(weight) in _TYPES
        and not (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad))
        and _C._dispatch_keys(x).raw_repr() in _TENSORS
        and _C._dispatch_keys(weight).raw_repr() in _TENSORS
        and _C._dispatch_tls_local_include_set().raw_repr() in _THREADS
        and not _C._len_torch_function_stack()
        and not _C._autograd._profiler_enabled()
    )
