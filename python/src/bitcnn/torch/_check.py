"""A module beside the model that it is compiled to, module by module."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._load import load
from .._table import Table, Value
from ._compile import compile, examples_of, export

# Outputs of a model; it may have 64.
_MOST = 48


class Check(Table):
    """A row for each tensor that was compared, in the order of execution.

    ``ok`` tells whether none differs, ``first`` is the name of the first that does, and
    ``not_compared`` says of other modules why.
    """

    def __init__(
        self,
        title: str,
        rows: Sequence[Sequence[Value]],
        not_compared: dict[str, str],
    ) -> None:
        columns = ["module", "kind", "difference", "relative", "ok"]
        super().__init__(title, columns, rows, plotted="relative", coloured="ok")
        self.not_compared = not_compared
        self.first = next((str(row["module"]) for row in self if not row["ok"]), None)
        self.ok = self.first is None

    def __repr__(self) -> str:
        lines = [super().__repr__()]
        lines += [f"not compared: {name}: {why}" for name, why in self.not_compared.items()]
        return "\n".join(lines)


class _Inside(nn.Module):
    """A module with the results of modules inside of it as outputs. ``wanted`` are their
    names; without it they are all, and ``names`` has them after a run.
    """

    def __init__(self, module: nn.Module, wanted: Sequence[str] | None = None) -> None:
        super().__init__()
        self.module, self.wanted = module, wanted
        self.names: list[str] = []
        self.kinds: dict[str, str] = {}

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        found: dict[str, Tensor] = {}
        seen: list[tuple[str, Tensor]] = []
        calls: dict[str, int] = {}

        def hook_of(name: str) -> Callable[[nn.Module, Any, Any], None]:
            def hook(module: nn.Module, _: Any, result: Any) -> None:
                calls[name] = calls.get(name, 0) + 1
                call = name if calls[name] == 1 else f"{name} (call {calls[name]})"
                several = isinstance(result, tuple | list)
                for i, x in enumerate(result if several else [result]):
                    if not isinstance(x, Tensor) or x.dim() < 1:
                        continue
                    # A container often returns what its last module has returned.
                    if any(x is other and within.startswith(name + ".") for within, other in seen):
                        continue
                    seen.append((name, x))
                    full = f"{call}[{i}]" if several else call
                    found[full] = x.clone()  # another module may write to it
                    self.kinds[full] = type(module).__name__

            return hook

        hooks = [m.register_forward_hook(hook_of(name)) for name, m in self.module.named_modules() if name]
        try:
            self.module(*inputs)
        finally:
            for hook in hooks:
                hook.remove()
        self.names = [name for name in found if self.wanted is None or name in self.wanted]
        return [found[name] for name in self.names]


def check(module: nn.Module, example: Tensor | Sequence[Tensor], *, tolerance: float = 1e-4, **options: Any) -> Check:
    """Compares what a module computes in PyTorch with the model that ``compile`` makes of it.

    ``example`` is a batch of images, or a list of batches if the module takes several; their
    values matter. PyTorch computes in floats, also what layers of this package compute. The
    results of the modules inside are compared as well: the first row that differs is where
    to look. A tensor is ok where no value differs by more than ``tolerance`` times the largest.
    Rounding alone may turn a sign of a real number close to 0; the modules behind it differ then.
    ``options`` are those of ``bitcnn.load``.
    """
    given = examples_of(module, example)
    reference = copy.deepcopy(module).cpu().eval()
    # With a gradient wanted, binary layers do not use the runtime.
    inside = _Inside(reference)
    with torch.enable_grad():
        outputs = reference(*given)
        found = inside(*given)
    whole = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    want = {name: x.detach().numpy() for name, x in zip(inside.names, found, strict=True)}

    got: dict[str, NDArray[Any]] = {}
    not_compared: dict[str, str] = {}

    def run(names: Sequence[str]) -> None:  # all at once, or those that can be
        try:
            part = _Inside(reference, names)
            data = export(part, given, inputs=[f"input {i + 1}" for i in range(len(given))], outputs=list(names))
            with load(data, **options) as model:
                arrays = {f"input {i + 1}": x.detach().numpy() for i, x in enumerate(given)}
                got.update(model.run({i.name: arrays[i.name] for i in model.inputs}))
        except (ValueError, NotImplementedError, RuntimeError) as e:
            if len(names) == 1:
                not_compared[names[0]] = str(e).splitlines()[0]
                return
            run(names[: len(names) // 2])
            run(names[len(names) // 2 :])

    for from_ in range(0, len(want), _MOST):
        run(list(want)[from_ : from_ + _MOST])
    rows = [_row(name, inside.kinds[name], got[name], want[name], tolerance) for name in want if name in got]
    # And as it is used, with nothing but its outputs.
    with compile(module, example, **options) as model:
        name, device = model.name, model.device.id
        results = model.run({i.name: x.detach().numpy() for i, x in zip(model.inputs, given, strict=True)})
        for output, x in zip(results.items(), whole, strict=True):
            rows.append(_row(output[0], "output", output[1], x.detach().numpy(), tolerance))
    within = f"{tolerance:g} of the largest value"
    differ = sum(not row[-1] for row in rows)
    verdict = f"{differ} differ by more than {within}" if differ else f"all agree within {within}"
    if not differ and tolerance == 0:
        verdict = "all are equal"
    return Check(f"{name} on {device}: {len(rows)} tensors compared, {verdict}", rows, not_compared)


def _row(name: str, kind: str, got: NDArray[Any], want: NDArray[Any], tolerance: float) -> list[Value]:
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        distance = np.where(same, 0.0, np.abs(a - b))
    difference = float(np.nan_to_num(distance, nan=np.inf).max(initial=0.0))
    largest = float(np.abs(b[np.isfinite(b)]).max(initial=0.0))
    relative = difference / largest if largest else float(np.inf if difference else 0.0)
    return [name, kind, difference, relative, relative <= tolerance]
