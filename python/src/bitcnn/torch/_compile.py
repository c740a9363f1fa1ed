"""From a module to a model of the runtime."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .._load import load
from .._model import Model
from ._modules import BinaryLayer


def to_onnx(module: nn.Module, example: Tensor | Sequence[Tensor]) -> bytes:
    """The bytes of an ONNX file of a trained module; see ``compile``."""
    return export(module, examples_of(module, example))


def examples_of(module: nn.Module, example: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The batches that a module takes, on the processor."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"{type(module).__name__} is not a module")
    examples = (example,) if isinstance(example, Tensor) else tuple(example)
    for x in examples:
        if not isinstance(x, Tensor) or x.dim() < 1 or x.shape[0] < 1:
            raise ValueError("an example is a tensor with at least one image")
    return tuple(x.detach().cpu() for x in examples)


def export(
    module: nn.Module,
    examples: Sequence[Tensor],
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
) -> bytes:
    """The bytes of an ONNX file with these names of inputs and outputs."""
    frozen = copy.deepcopy(module).cpu().eval()
    for layer in frozen.modules():
        if isinstance(layer, BinaryLayer):
            layer.freeze()
    given = tuple(x[:1] for x in examples)
    # Advice to those who write exporters.
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            if outputs is None:
                results = frozen(*given)
                count = 1 if isinstance(results, Tensor) else len(results)
                outputs = ["output"] + [f"output {i + 1}" for i in range(1, count)]
            # Without optimisation: batch norms would be folded into weights, which must stay ±1.
            program = torch.onnx.export(
                frozen, given, dynamo=True, optimize=False, verbose=False, input_names=inputs, output_names=outputs
            )
    finally:
        log.setLevel(level)
    assert program is not None
    return bytes(program.model_proto.SerializeToString())


def compile(module: nn.Module, example: Tensor | Sequence[Tensor], **options: Any) -> Model:
    """Compiles a trained module for a device.

    ``example`` is a batch of what the module takes, or a list of batches if it takes several;
    shapes and types matter, and values do not. ``options`` are those of ``bitcnn.load``:
    device, max_batch, threads. The module goes through ONNX in memory and stays as it is.
    Layers are taken in evaluation mode. It needs the packages onnx and onnxscript.
    """
    options.setdefault("name", type(module).__name__)
    return load(to_onnx(module, example), **options)
