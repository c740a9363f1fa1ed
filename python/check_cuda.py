"""Compares the package on CUDA tensors with PyTorch in floats, on the default stream and on another.

Needs a PyTorch with a GPU. Before each call a kernel makes the stream wait, so that a call that
does not take the stream's order, or waits for it, shows. With --device cpu only itself is checked.
"""

import argparse
import sys
import time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

import bitcnn
import bitcnn.torch as bt


def signs(x: Tensor) -> Tensor:
    return torch.where(x >= 0, 1.0, -1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    device = torch.device(parser.parse_args().device)
    cuda = device.type == "cuda"
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    net = nn.Sequential(
        bt.BinaryConv2d(3, 64, 3, padding=1, padding_value=0), nn.BatchNorm2d(64),
        bt.BinaryConv2d(64, 130, 3, padding=1, sign=bt.Sign()), nn.BatchNorm2d(130), nn.Flatten(),
        bt.BinaryLinear(130 * 64, 10, sign=bt.Sign()),
    ).to(device)  # fmt: skip
    x = torch.randn(5, 3, 8, 8, device=device)
    with torch.no_grad():
        net.train()(x)
        net.eval()
        model = bt.compile(net, x, device=str(device), max_batch=4)
        want = torch.from_numpy(bitcnn.load(bt.to_onnx(net, x), device="cpu")(x.cpu().numpy()))
        failed = []
        for stream in (torch.cuda.default_stream(device), torch.cuda.Stream(device)) if cuda else (None,):
            for turn in range(3):  # the first compiles

                def check(name: str, call, expected: Tensor, *arguments: Tensor, stream=stream, turn=turn) -> None:
                    with torch.cuda.stream(stream):
                        if cuda:
                            torch.cuda.synchronize()
                            torch.cuda._sleep(200_000_000)
                        given = [a + 0 for a in arguments]  # which are there when the stream comes to it
                        start = time.perf_counter()
                        got = call(*given)
                        waited = cuda and turn > 0 and time.perf_counter() - start > 0.05
                        got = torch.as_tensor(got) + 0
                    if got.device.type != device.type or waited or not torch.equal(got.cpu(), expected.cpu()):
                        failed.append(f"{name}, turn {turn}{', it waited' if waited else ''}")

                a, w = torch.randn(5, 70, 9, 8, device=device), torch.randn(33, 70, 3, 3, device=device)
                words = bt.pack(w)
                for kind in (torch.contiguous_format, torch.channels_last):
                    b = a.contiguous(memory_format=kind)
                    padded = F.pad(signs(b).cpu(), [1, 1, 1, 1], value=-1)
                    check(
                        "binary_conv2d",
                        lambda t, words=words: bt.binary_conv2d(t, words, padding=1),
                        F.conv2d(padded, signs(w).cpu()),
                        b,
                    )
                flat, v = a.flatten(1), torch.randn(7, 70 * 72, device=device)
                many = bt.pack(v)
                check("binary_linear", lambda t, many=many: bt.binary_linear(t, many), signs(flat) @ signs(v).T, flat)
                check("pack", bt.pack, bt.pack(a.cpu()), a)
                check("unpack", lambda t: bt.unpack(t, 70), signs(w), words)
                check(
                    "module",
                    net[2],
                    F.conv2d(F.pad(signs(net[:2](x)), [1] * 4, value=-1), signs(net[2].weight)),
                    net[:2](x),
                )
                check("model", (lambda t: model(t)) if cuda else (lambda t: model(t.numpy())), want, x)
    print(f"bitcnn.torch on {device}: {'; '.join(failed) if failed else 'ok'}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
