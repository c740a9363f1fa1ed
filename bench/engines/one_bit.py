#!/usr/bin/env python3
"""Compares networks of one bit in bcnn with networks of eight in other engines: times of one
thread, accuracy on ImageNet as published, bytes of files and of memory.

All take turns. On a processor with AMX or AVX-512 the others are also held to what an older
one has (older_processor.c, which needs cpuid_fault), and bcnn by --isa. Times are of the shortest run in
all rounds, as compare.py takes them. Memory is the most that the process of bcnn has had at
all, and what the others have had in addition to Python with the engine imported. Prints
bench/figures/one_bit.json; docs/when-one-bit-pays.md says what it shows.

    one_bit.py --models DIR --int8 DIR [--bcnn bin/bcnn] [--rounds 5] [--only avx512amx] > one_bit.json
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# Top-1 accuracy in per cent, as larq-zoo publishes it for its weights, the paper for ReActNet-A,
# and torchvision for its networks of 8 bits.
BINARY = {
    "BiRealNet": ("Bi-Real Net 18", 57.5),
    "BiRealNet18-first16": ("Bi-Real Net 18, first weights of 16 bits", None),
    "QuickNetSmall": ("QuickNet Small", 59.4),
    "BinaryDenseNet28": ("BinaryDenseNet 28", 60.9),
    "MeliusNet22": ("MeliusNet 22", 62.4),
    "QuickNet": ("QuickNet", 63.3),
    "RealToBinaryNet": ("Real-to-Binary Net", 65.0),
    "QuickNetLarge": ("QuickNet Large", 66.9),
    "ReActNet": ("ReActNet-A", 69.4),
}
INT8 = {"resnet18": ("ResNet-18", 69.5), "mobilenetv2": ("MobileNetV2", 71.7)}

# What bcnn is told, and the others.
PROCESSORS = {"avx512amx": "", "avx512vpopcnt": "avx512", "avx2": "avx2"}


def high_water(process="self"):
    """The most memory that a process has had since it began its program, in bytes."""
    with open(f"/proc/{process}/status") as f:
        return sum(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))


def other(engine, path, seconds):
    """Runs a network in another engine, and prints the least processor time and the memory."""
    if engine == "OpenVINO":
        import openvino  # noqa: F401, so that it does not count
    else:
        import onnxruntime  # noqa: F401
    import int8_networks
    import resnet18_int8

    before = high_water()
    run = int8_networks.openvino(path) if engine == "OpenVINO" else resnet18_int8.runs(path)
    best, end = float("inf"), time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.process_time()
        run()
        best = min(best, 1e3 * (time.process_time() - start))
    print(json.dumps({"ms": best, "memory": high_water() - before}))


class Ours:
    """bcnn, which times itself."""

    engine = "bcnn"

    def __init__(self, args, path, isa, bits):
        self.command = [args.bcnn, "bench", "-d", "cpu", "--threads", "1", "--json", "--runs", str(args.runs), "--isa", isa, "--model", path]
        self.bcnn, self.path, self.isa, self.bits = args.bcnn, path, isa, bits
        self.best, self.memory = float("inf"), None

    def turn(self):
        out = subprocess.run(self.command, check=True, stdout=subprocess.PIPE, text=True).stdout
        self.best = min(self.best, json.loads(out.splitlines()[0])["min_us"] / 1e3)
        if self.memory is None:
            self.memory = self.most()

    def most(self):
        """The most memory of a process that computes one image."""
        import numpy as np

        shape = (1, 3, 224, 224) if self.bits == 8 else (1, 224, 224, 3)
        with tempfile.TemporaryDirectory() as folder:
            image, out = os.path.join(folder, "x.npy"), os.path.join(folder, "y.npy")
            np.save(image, np.random.default_rng(0).integers(0, 256, shape).astype(np.float32))
            run = subprocess.Popen([self.bcnn, "run", "-d", "cpu", "--threads", "1", "--batch", "1", "--isa", self.isa,
                                    "--model", self.path, "--input", image, "--output", out], stdout=subprocess.DEVNULL)
            most = 0  # not what wait4 says, which includes this process until it became the other
            while run.poll() is None:
                most = max(most, high_water(run.pid))
        if run.returncode != 0:
            sys.exit(f"bcnn cannot run {self.path}")
        return most


class Other:
    """Another engine, in a process of its own."""

    bits = 8

    def __init__(self, args, engine, path, older, library):
        self.engine, self.path = engine, path
        self.command = [sys.executable, os.path.abspath(__file__), "--other", engine, "--model", path, "--seconds", str(args.seconds)]
        self.environment = dict(os.environ)
        if older:
            self.environment |= {"OLDER_PROCESSOR": older, "LD_PRELOAD": library}
        self.best, self.memory = float("inf"), None

    def turn(self):
        out = subprocess.run(self.command, check=True, stdout=subprocess.PIPE, text=True, env=self.environment).stdout
        got = json.loads(out.splitlines()[-1])
        self.best, self.memory = min(self.best, got["ms"]), got["memory"]


def converted(args, folder, name, source):
    """A network as a .bcnn file, of a file or of the zoo."""
    path = os.path.join(folder, name + ".bcnn")
    base, _, first = name.partition("-first")
    command = [args.bcnn, "convert", source] if os.path.exists(source) else [args.bcnn, "convert", "--from", "zoo", base.lower()]
    if first:
        command += ["--first-weights", first]
    subprocess.run([*command, "-o", path], check=True, stdout=subprocess.DEVNULL)
    return path


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", help="what larq_models.py has made")
    p.add_argument("--int8", help="folder for the networks of 8 bits, which are made once")
    p.add_argument("--bcnn", default="bin/bcnn")
    p.add_argument("--rounds", type=int, default=5, help="how often all take turns")
    p.add_argument("--runs", type=int, default=40, help="of bcnn in a turn")
    p.add_argument("--seconds", type=float, default=1, help="how long another engine runs in a turn")
    p.add_argument("--only", default="", help="instruction sets of bcnn, separated by commas")
    p.add_argument("--other", help=argparse.SUPPRESS)
    p.add_argument("--model", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.other:
        return other(args.other, args.model, args.seconds)
    if not args.models or not args.int8:
        p.error("--models and --int8 are needed")

    import int8_networks
    import resnet18_int8

    os.makedirs(args.int8, exist_ok=True)
    devices = subprocess.run([args.bcnn, "devices", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout
    isas = json.loads(devices.splitlines()[0])["isas"]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "older_processor.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, os.path.join(HERE, "older_processor.c")], check=True)
        one = {name: converted(args, folder, name, os.path.join(args.models, name + ".tflite")) for name in BINARY}
        eight = {name: resnet18_int8.quantized(args.int8, name, int8_networks.NETWORKS[name]) for name in INT8}
        best = next(isa for isa in PROCESSORS if isa in isas)
        for isa, older in PROCESSORS.items():
            if isa not in isas or args.only and isa not in args.only.split(","):
                continue
            turns = [(BINARY[name], Ours(args, path, isa, 1)) for name, path in one.items()]
            for name, path in eight.items():
                turns.append((INT8[name], Ours(args, converted(args, folder, name, path), isa, 8)))
                for engine in ("OpenVINO", "ONNX Runtime"):
                    turns.append((INT8[name], Other(args, engine, path, older if isa != best else "", library)))
            for _ in range(args.rounds):
                for _, t in turns:
                    t.turn()
            for (name, accuracy), t in turns:
                rows.append({"network": name, "bits": t.bits, "engine": t.engine, "isa": isa,
                             "top1": accuracy, "ms": round(t.best, 2), "file": os.path.getsize(t.path), "memory": t.memory})
                print(f"{isa}: {name}, {t.engine}: {t.best:.2f} ms", file=sys.stderr)
    with open("/proc/cpuinfo") as f:
        processor = next(line.split(":")[1].strip() for line in f if line.startswith("model name"))
    print(json.dumps({"processor": processor, "date": datetime.date.today().isoformat(), "rows": rows}, indent="\t", ensure_ascii=False))


if __name__ == "__main__":
    main()
