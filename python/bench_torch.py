"""Compares binary_conv2d with the convolution of PyTorch on one thread, in turns.

The shapes are those of BinaryNet for CIFAR-10 (Courbariaux et al. 2016), whose first layer,
of real pixels, is left out. Inputs are floats in the order NCHW, and so are outputs; weights
have been packed before. Times are the shortest of the turns, in µs for each image.
"""

import argparse
import time
from collections.abc import Callable

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--row", type=int, default=10, help="calls in a row; 1 has caches as the other one left them")
    parser.add_argument("--batch", type=int, nargs="*", default=[1, 32])
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    print("| layer | batch | PyTorch | binary | times |\n|---|---|---|---|---|")
    for batch in args.batch:
        layers: list[tuple[str, Callable[[], object], Callable[[], object]]] = []
        for c, o, side in CONVS:
            x, w = torch.randn(batch, c, side, side), torch.randn(o, c, 3, 3)
            words = pack(w)
            layers.append(
                (
                    f"conv 3×3, {c} to {o}, {side}×{side}",
                    lambda x=x, w=w: F.conv2d(x, w, padding=1),  # type: ignore[misc]
                    lambda x=x, words=words: binary_conv2d(x, words, padding=1),  # type: ignore[misc]
                )
            )
        for i, o in DENSE:
            x, w = torch.randn(batch, i), torch.randn(o, i)
            words = pack(w)
            layers.append(
                (
                    f"dense, {i} to {o}",
                    lambda x=x, w=w: F.linear(x, w),  # type: ignore[misc]
                    lambda x=x, words=words: binary_linear(x, words),  # type: ignore[misc]
                )
            )
        total = [0.0, 0.0]
        for name, plain, binary in layers:
            best = [float("inf")] * 2
            for _ in range(args.turns):
                best = [min(best[0], seconds(plain, args.row)), min(best[1], seconds(binary, args.row))]
            us = [1e6 * t / batch for t in best]
            total = [total[0] + us[0], total[1] + us[1]]
            print(f"| {name} | {batch} | {us[0]:.1f} | {us[1]:.1f} | {us[0] / us[1]:.1f} |", flush=True)
        print(f"| all | {batch} | {total[0]:.1f} | {total[1]:.1f} | {total[0] / total[1]:.1f} |")


if __name__ == "__main__":
    main()
