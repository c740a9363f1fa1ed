"""BinaryNet for CIFAR-10 in PyTorch and in this runtime, in turns on one machine.

The network is that of Courbariaux et al. 2016: six 3×3 convolutions of 128 to 512 channels
and three dense layers, on images of 32×32 pixels. Weights are random: times do not depend on
them. By default it is Table 2 of Xu and Pedersoli 2019: the time of 10,000 images; with --train
the time of a training step. Times are those of the processor, of all threads together, so
that others who use the machine count little; with --wall they are those of the clock.
"""

import argparse
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

import bitcnn.torch as bt

CHANNELS = [128, 128, 256, 256, 512, 512]


class _Sign(torch.autograd.Function):
    """The signs of x, 0 is +1, with the gradient of hard tanh, as networks in plain PyTorch have it."""

    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() <= 1)


class PlainConv(nn.Conv2d):
    """A binary convolution in plain PyTorch, its input binary or real."""

    def __init__(self, i: int, o: int, first: bool) -> None:
        super().__init__(i, o, 3, padding=1, bias=False)
        self.first = first

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x if self.first else _Sign.apply(x), _Sign.apply(self.weight), None, 1, 1)


class PlainLinear(nn.Linear):
    """A binary dense layer in plain PyTorch."""

    def __init__(self, i: int, o: int) -> None:
        super().__init__(i, o, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(_Sign.apply(x), _Sign.apply(self.weight))


def network(
    conv: Callable[[int, int, bool], nn.Module], dense: Callable[[int, int], nn.Module], act: nn.Module
) -> nn.Module:
    """BinaryNet of these layers; act comes before all but the first."""
    layers: list[nn.Module] = []
    before = 3
    for i, channels in enumerate(CHANNELS):
        layers += ([act] if i else []) + [conv(before, channels, i == 0)]
        layers += ([nn.MaxPool2d(2)] if i % 2 else []) + [nn.BatchNorm2d(channels)]
        before = channels
    layers.append(nn.Flatten())
    before *= 16
    for features in (1024, 1024, 10):
        layers += [act, dense(before, features), nn.BatchNorm1d(features)]
        before = features
    return nn.Sequential(*layers)


def floats() -> nn.Module:
    """The network with real weights and activations."""
    return network(
        lambda i, o, _: nn.Conv2d(i, o, 3, padding=1, bias=False), lambda i, o: nn.Linear(i, o, bias=False), nn.ReLU()
    )


def plain() -> nn.Module:
    """The binary network in plain PyTorch: floats of +1 and -1."""
    return network(PlainConv, PlainLinear, nn.Identity())


def modules() -> nn.Module:
    """The binary network of the layers of bitcnn.torch."""
    return network(
        lambda i, o, first: bt.BinaryConv2d(i, o, 3, padding=1, padding_value=0, sign=None if first else bt.Sign()),
        lambda i, o: bt.BinaryLinear(i, o, sign=bt.Sign()),
        nn.Identity(),
    )


def settle(net: nn.Module) -> None:
    """Gives batch norms some statistics."""
    with torch.no_grad():
        for _ in range(3):
            net.train()(torch.randn(16, 3, 32, 32))
    net.eval()


def infer(args: argparse.Namespace, clock: Callable[[], float]) -> None:
    """Times inference, in turns of a batch each."""
    nets = {
        "PyTorch, float network": floats(),
        "PyTorch, binary network in floats": plain(),
        "bitcnn.torch, layer by layer": modules(),
    }
    torch.manual_seed(1)
    settle(nets["bitcnn.torch, layer by layer"])
    nets["PyTorch, binary network in floats"].load_state_dict(nets["bitcnn.torch, layer by layer"].state_dict())
    for net in nets.values():
        net.eval()
    example = torch.randn(args.batch, 3, 32, 32)
    compiled = bt.compile(
        nets["bitcnn.torch, layer by layer"], example, device="cpu", threads=args.threads, max_batch=args.batch
    )
    runs: dict[str, Callable[[Tensor], Tensor]] = dict(nets)
    runs["bitcnn.torch.compile"] = lambda x: torch.from_numpy(compiled(x.numpy()))
    with torch.no_grad():
        want, *others = [run(example) for name, run in runs.items() if name != "PyTorch, float network"]
        for other in others:
            torch.testing.assert_close(other, want, rtol=1e-4, atol=1e-4)
        took = dict.fromkeys(runs, 0.0)
        for _ in range(args.images // args.batch):
            x = torch.randn(args.batch, 3, 32, 32)
            for name, run in runs.items():
                start = clock()
                run(x)
                took[name] += clock() - start
    first = next(iter(took.values()))
    print(f"| {args.images} images, batches of {args.batch}, threads: {args.threads} | s | ms an image | times |")
    print("|---|---|---|---|")
    for name, t in took.items():
        print(f"| {name} | {t:.2f} | {1e3 * t / args.images:.3f} | {first / t:.1f} |")


def train(args: argparse.Namespace, clock: Callable[[], float]) -> None:
    """Times steps of training, the shortest of each."""
    nets = {"plain PyTorch with an STE": plain(), "bitcnn.torch": modules()}
    nets["plain PyTorch with an STE"].load_state_dict(nets["bitcnn.torch"].state_dict())
    optimisers = {name: torch.optim.SGD(net.train().parameters(), 1e-3) for name, net in nets.items()}
    best = dict.fromkeys(nets, float("inf"))
    losses: dict[str, list[float]] = {name: [] for name in nets}
    for _ in range(args.steps):
        x, y = torch.randn(args.batch, 3, 32, 32), torch.randint(0, 10, (args.batch,))
        for name, net in nets.items():
            start = clock()
            loss = F.cross_entropy(net(x), y)
            optimisers[name].zero_grad()
            loss.backward()
            optimisers[name].step()
            best[name] = min(best[name], clock() - start)
            losses[name].append(loss.item())
    print(f"| a step, batch of {args.batch}, threads: {args.threads} | ms | first loss |\n|---|---|---|")
    for name, t in best.items():
        print(f"| {name} | {1e3 * t:.1f} | {losses[name][0]:.4f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--wall", action="store_true")
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    (train if args.train else infer)(args, time.perf_counter if args.wall else time.process_time)


if __name__ == "__main__":
    main()
