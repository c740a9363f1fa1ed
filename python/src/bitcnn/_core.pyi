from collections.abc import Callable
from typing import Any, NoReturn, overload

import numpy as np
from numpy.typing import NDArray

Spec = tuple[str, tuple[int, ...]]

class Runner:
    def __init__(
        self,
        session: int,
        max_batch: int,
        inputs: tuple[Spec, ...],
        outputs: tuple[Spec, ...],
        empty: Callable[..., Any],
        dtype: np.dtype[Any],
        masked: type,
        as_is: bool,
    ) -> None: ...
    @overload
    def __call__(self, x: NDArray[Any], /) -> NDArray[np.float32]: ...
    @overload
    def __call__(self, x: Any, /) -> Any: ...
    def _run(self, inputs: tuple[Any, ...], outputs: tuple[Any, ...], /) -> None: ...

def run_layer(
    session: int,
    most: int,
    images: int,
    layout: int,
    x: int,
    x_bytes: int,
    out: int,
    out_bytes: int,
    weights: int,
    kept: int,
    weights_bytes: int,
    /,
) -> bool: ...
def raise_status(status: int, /) -> NoReturn: ...
