#!/usr/bin/env python3
"""Times the networks that bcnn is compared with, in PyTorch, on one device.

VehicleNet in full precision (96x96x3, two 5x5 convolutions with 32 channels, max
pooling, batch norm, ReLU, dense 100, 100, 6) at batch 1 and 1024, and 3x3
convolutions with C = 64 ... 512 input and output channels, in the ways PyTorch has:
eager, with a CUDA graph, and compiled; fp32, TF32 and fp16; int8 matrix products of
the same size by cuBLAS, where torch._int_mm is there. What cannot run is listed with
its reason.

Times are medians in microseconds. On a GPU "device_us" is between two events around
a burst of runs, divided by their number, and "host_us" one run and a
synchronisation. Of both the median of many repetitions is taken, after a warm-up.

    bench/torch_peer.py [--device cuda] [--ways eager,graph] [--json FILE] [--quick]
    bench/torch_peer.py --onnx FILE
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as err:
    sys.exit(f"torch_peer.py: {err}: PyTorch is not installed")

# Channels and the size of the image, as in networks of the ResNet family; the
# first at batch 1 as well.
CONVOLUTIONS = [(64, 56, 1), (64, 56, 64), (128, 28, 64), (256, 14, 64), (256, 56, 64), (512, 7, 64), (512, 28, 64)]
QUICK_CONVOLUTIONS = [(64, 14, 1), (128, 7, 2)]


class VehicleNet(nn.Module):
    """The full-precision twin of the paper's network."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 5, padding=2, bias=False)
        self.conv2 = nn.Conv2d(32, 32, 5, padding=2, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(32), nn.BatchNorm2d(32)
        self.dense1 = nn.Linear(32 * 24 * 24, 100, bias=False)
        self.dense2 = nn.Linear(100, 100, bias=False)
        self.dense3 = nn.Linear(100, 6, bias=False)
        self.norm3, self.norm4 = nn.BatchNorm1d(100), nn.BatchNorm1d(100)

    def forward(self, x):
        x = F.relu(self.norm1(F.max_pool2d(self.conv1(x), 2)))
        x = F.relu(self.norm2(F.max_pool2d(self.conv2(x), 2)))
        x = x.flatten(1)
        x = F.relu(self.norm3(self.dense1(x)))
        x = F.relu(self.norm4(self.dense2(x)))
        return self.dense3(x)


class Timer:
    """Medians of a function's time."""

    def __init__(self, device, quick):
        self.device, self.cuda = device, device.type == "cuda"
        self.repetitions = 5 if quick else 50
        self.burst_us = 200 if quick else 2000

    def synchronize(self):
        if self.cuda:
            torch.cuda.synchronize(self.device)

    def host(self, run, repetitions):
        times = []
        for _ in range(repetitions):
            start = time.perf_counter()
            run()
            self.synchronize()
            times.append((time.perf_counter() - start) * 1e6)
        return statistics.median(times)

    def __call__(self, run):
        for _ in range(3):
            run()
        self.synchronize()
        first = self.host(run, 3)
        result = {"host_us": self.host(run, self.repetitions)}
        if not self.cuda:
            return result
        burst = max(1, min(200, int(self.burst_us / first)))
        times = []
        for _ in range(self.repetitions):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            for _ in range(burst):
                run()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / burst)
        result["device_us"] = statistics.median(times)
        return result


def set_tf32(on):
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on


def graphed(model, x):
    """A replay of a CUDA graph of model(x)."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x)
    return graph.replay


def compiled(model, x):
    model = torch.compile(model, mode="max-autotune")
    for _ in range(3):
        model(x)
    return lambda: model(x)


WAYS = ("eager", "graph", "compile", "gemm")


def ways(device):
    """Name, precision and how a model becomes a function to time, or why it cannot."""
    cuda = device.type == "cuda"
    no_cuda = None if cuda else "needs a CUDA device"
    precisions = [("fp32", None), ("tf32", no_cuda), ("fp16", no_cuda)]
    if cuda and torch.cuda.get_device_capability(device)[0] < 8:
        precisions[1] = ("tf32", "needs compute capability 8.0")
    no_compile = None if hasattr(torch, "compile") else "needs PyTorch 2"
    for precision, why in precisions:
        yield "eager", precision, lambda model, x: lambda: model(x), why
        yield "graph", precision, graphed, why or no_cuda
        yield "compile", precision, compiled, why or no_compile


def measure(args, keep):
    """Measures, and gives keep the results so far after each."""
    device = torch.device(args.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_peer.py: this PyTorch finds no CUDA device")
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    timer = Timer(device, args.quick)
    work = [("vehiclenet", batch, VehicleNet(), (batch, 3, 96, 96), None) for batch in ((1, 4) if args.quick else (1, 1024))]
    for c, size, batch in QUICK_CONVOLUTIONS if args.quick else CONVOLUTIONS:
        macs = batch * size * size * c * c * 9
        work.append((f"conv3x3 {size}x{size}x{c}", batch, nn.Conv2d(c, c, 3, padding=1, bias=False), (batch, c, size, size), macs))
    results = []
    about = {"torch": torch.__version__, "python": platform.python_version(), "device": args.device}
    if device.type == "cuda":
        about.update(name=torch.cuda.get_device_name(device), cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version())

    def record(name, batch, way, precision, macs, why, make):
        entry = {"work": name, "batch": batch, "way": way, "precision": precision}
        if why is None:
            try:
                entry.update(timer(make()))
                if macs:
                    entry["ops_per_s"] = 2 * macs / (entry.get("device_us", entry["host_us"]) * 1e-6)
            except Exception as err:  # what a version of PyTorch cannot do is a result, too
                why = f"{type(err).__name__}: {str(err).splitlines()[0] if str(err) else ''}"
        if why is not None:
            entry["absent"] = why
        results.append(entry)
        keep({"about": about, "results": results})
        took = f"{entry['host_us']:12.1f}" if "host_us" in entry else f"{'-':>12}"
        on_device = f"{entry['device_us']:12.1f}" if "device_us" in entry else f"{'-':>12}"
        print(f"{name:22} {batch:5} {way:8} {precision:5} {on_device} {took}  {entry.get('absent', '')}", flush=True)

    print(f"{'work':22} {'batch':>5} {'way':8} {'type':5} {'device µs':>12} {'host µs':>12}")
    with torch.inference_mode():
        for name, batch, model, shape, macs in work:
            for way, precision, prepare, why in ways(device):
                if way not in args.ways:
                    continue
                set_tf32(precision == "tf32")
                kind = torch.float16 if precision == "fp16" else torch.float32

                def make():
                    m = model.eval().to(device=device, dtype=kind, memory_format=torch.channels_last)
                    x = torch.randn(shape, device=device, dtype=kind).contiguous(memory_format=torch.channels_last)
                    return prepare(m, x)

                record(name, batch, way, precision, macs, why, make)
        # A convolution as the product of patches and weights, by cuBLAS in int8.
        for name, batch, model, shape, macs in work:
            if macs is None or "gemm" not in args.ways:
                continue
            why = None if hasattr(torch, "_int_mm") else "needs torch._int_mm of PyTorch 2"

            def make():
                rows, c = shape[0] * shape[2] * shape[3], shape[1]
                a = torch.randint(-128, 127, (rows, 9 * c), dtype=torch.int8, device=device)
                b = torch.randint(-128, 127, (c, 9 * c), dtype=torch.int8, device=device).t()
                return lambda: torch._int_mm(a, b)

            record(name, batch, "gemm", "int8", macs, why, make)


def export(path):
    """Writes the full-precision VehicleNet for one image as ONNX, for other engines."""
    torch.onnx.export(VehicleNet().eval(), (torch.zeros(1, 3, 96, 96),), path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu (default %(default)s)")
    parser.add_argument("--ways", default=",".join(WAYS), help="which ways, separated by commas (default %(default)s)")
    parser.add_argument("--json", help="write the results to this file, after each measurement")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repetitions: a test of this program")
    parser.add_argument("--onnx", help="write VehicleNet to this file, and measure nothing")
    args = parser.parse_args()
    if args.onnx:
        export(args.onnx)
        return
    args.ways = args.ways.split(",")
    for way in args.ways:
        if way not in WAYS:
            parser.error(f"no way {way!r}, there are {', '.join(WAYS)}")

    def keep(results):
        if args.json:
            with open(args.json + ".new", "w") as f:
                json.dump(results, f, indent=1)
            os.replace(args.json + ".new", args.json)

    measure(args, keep)


if __name__ == "__main__":
    main()
