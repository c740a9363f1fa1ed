"""Compares binary_conv2d with the convolution of PyTorch on one thread, in turns.

The shapes are those of BinaryNet for CIFAR-10 (Courbariaux et al. 2016), whose first layer,
of real pixels, is left out. Inputs are floats in the order NCHW, and so are outputs; weights
have been packed before. Times are the shortest of the turns, in µs for each image. Where the
package openvino is there, its BinaryConvolution takes the same inputs, signs included.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812

from bitcnn.torch import binary_conv2d, binary_linear, pack

CONVS = [(128, 128, 32), (128, 256, 16), (256, 256, 16), (256, 512, 8), (512, 512, 8)]
DENSE = [(8192, 1024), (1024, 1024)]


def seconds(f: Callable[[], object], times: int) -> float:
    """The shortest of some calls in a row."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best


def openvino(x: torch.Tensor, outputs: int) -> Callable[[], object] | None:
    """A convolution by OpenVINO, after its outputs have been compared."""
    try:
        import openvino as ov
    except ImportError:
        return None
    sys.path.insert(0, str(Path(__file__).parents[1] / "bench" / "engines"))
    import openvino_bin

    batch, channels, side, _ = x.shape
    layer = openvino_bin.Builder(side, channels).sign(0).binary(outputs, 3, 1, 1)
    model = ov.Model([layer.x], [layer.input], "layer")
    model.reshape([batch, channels, side, side])
    settings = {
        "INFERENCE_NUM_THREADS": 1,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    request = ov.Core().compile_model(model, "CPU", settings).create_infer_request()
    request.set_input_tensor(ov.Tensor(x.numpy(), shared_memory=True))
    request.infer()
    ((thresholds, weights),) = layer.signs
    moved = x - torch.from_numpy(thresholds).float().view(1, -1, 1, 1)
    want = binary_conv2d(moved, torch.from_numpy(weights).float(), padding=1, padding_value=1, zero_is_positive=False)
    assert torch.equal(torch.from_numpy(request.get_output_tensor().data), want), "OpenVINO and binary_conv2d differ"
    return request.infer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--row", type=int, default=10, help="calls in a row; 1 has caches as the other one left them")
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 32])
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    print("| layer | batch | PyTorch | OpenVINO | binary | PyTorch / binary | OpenVINO / binary |")
    print("|---|---|---|---|---|---|---|")
    for batch in args.batch:
        layers: list[tuple[str, list[Callable[[], object] | None]]] = []
        for c, o, side in CONVS:
            x, w = torch.randn(batch, c, side, side), torch.randn(o, c, 3, 3)
            words = pack(w)
            layers.append(
                (
                    f"conv 3×3, {c} to {o}, {side}×{side}",
                    [
                        lambda x=x, w=w: F.conv2d(x, w, padding=1),  # type: ignore[misc]
                        openvino(x, o),
                        lambda x=x, words=words: binary_conv2d(x, words, padding=1),  # type: ignore[misc]
                    ],
                )
            )
        for i, o in DENSE:
            x, w = torch.randn(batch, i), torch.randn(o, i)
            words = pack(w)
            layers.append(
                (
                    f"dense, {i} to {o}",
                    [
                        lambda x=x, w=w: F.linear(x, w),  # type: ignore[misc]
                        None,
                        lambda x=x, words=words: binary_linear(x, words),  # type: ignore[misc]
                    ],
                )
            )
        for name, calls in layers:
            best = [float("inf")] * len(calls)
            for _ in range(args.turns):
                best = [min(b, seconds(call, args.row)) if call else b for b, call in zip(best, calls, strict=True)]
            us = [1e6 * t / batch for t in best]
            cells = [*(f"{t:.1f}" for t in (*us, us[0] / us[2])), f"{us[1] / us[2]:.2f}"]
            print(f"| {name} | {batch} | {' | '.join(cells).replace('inf', '–')} |", flush=True)


if __name__ == "__main__":
    main()
