"""Tensors of PyTorch, where PyTorch is in use. This package does not import it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any


def is_tensor(x: Any) -> bool:
    """Whether an object is a tensor, on whatever device."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def detached(x: Any) -> Any:
    """The values of a tensor, which have no gradient; other objects as they are."""
    return x.detach() if is_tensor(x) else x


def like(given: Iterable[Any], results: Any) -> Any:
    """An array as a tensor with the same memory, if one of the inputs is a tensor."""
    return sys.modules["torch"].from_numpy(results) if any(map(is_tensor, given)) else results
