#!/usr/bin/env python3
"""Lets bcnn take turns with OpenVINO, Larq Compute Engine and ONNX Runtime, one thread each.

Larq Compute Engine is timed in its fastest mode on x86 (use_indirect_bgemm), without and
with XNNPACK, of which the faster counts, on the same file as bcnn but for those that
shapes.py says. Before that its outputs are compared with those of bcnn, and OpenVINO's binary layers with NumPy. Times are of the
shortest run in all rounds, which other programs disturb the least: of the other engines
processor time, so that the time slices of other programs do not count against them, of
bcnn that of the clock. birealnet18-first16 is birealnet18 with the weights of its first
layer rounded to 16 bits by `bcnn convert --first-weights`, beside the same other engines.

    compare.py --lce WRAPPER --models DIR [--bcnn bin/bcnn] [--only birealnet18,QuickNet] [--json]
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import few_bits
import openvino_bin
import resnet18_int8
from shapes import LAYERS, ZOO

BIREAL = ["birealnet18", "birealnet18-first16"]


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--lce", required=True, help="interpreter_wrapper_lite.so of Larq Compute Engine")
    p.add_argument("--models", required=True, help="what larq_models.py has made")
    p.add_argument("--bcnn", default="bin/bcnn")
    p.add_argument("--isa", default="", help="instruction set of bcnn")
    p.add_argument("--rounds", type=int, default=5, help="how often the engines take turns")
    p.add_argument("--seconds", type=float, default=0.3, help="how long each is timed in a round")
    p.add_argument("--only", default="", help="names, separated by commas")
    p.add_argument("--json", action="store_true", help="print one JSON object per line of the table")
    return p.parse_args()


class Bcnn:
    """The command. It times itself."""

    def __init__(self, args):
        self.path, self.flags = args.bcnn, ["--isa", args.isa] if args.isa else []

    def bench(self, *args):
        out = subprocess.run([self.path, "bench", "-d", "cpu", "--threads", "1", "--json", *self.flags, *args],
                             check=True, capture_output=True, text=True).stdout
        return [json.loads(line) for line in out.splitlines()]

    def network(self, model):
        return lambda: self.bench("--model", model, "--runs", "100")[0]["min_us"] / 1e3

    def first16(self, folder):
        """birealnet18 with integers as first weights."""
        path = os.path.join(folder, "birealnet18-first16.bcnn")
        subprocess.run([self.path, "convert", "--from", "zoo", "birealnet18", "-o", path, "--first-weights", "16"],
                       check=True, capture_output=True)
        return self.network(path)

    def layer(self, name):
        return lambda: self.bench(f"--ops={name}", "--runs", "100")[0]["min_ms"]

    def outputs(self, model, x):
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/x.npy", x)
            subprocess.run([self.path, "run", "-d", "cpu", "--model", model, "--input", f"{folder}/x.npy",
                            "--output", f"{folder}/y.npz"], check=True, capture_output=True)
            with np.load(f"{folder}/y.npz") as y:
                return y[y.files[0]]


class Larq:
    """The interpreter in its wheel, without TensorFlow, which its package imports."""

    def __init__(self, args):
        spec = importlib.util.spec_from_file_location("interpreter_wrapper_lite", args.lce)
        self.module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.models = args.models

    def path(self, name):
        return os.path.join(self.models, name + ".tflite")

    def interpreter(self, name, xnnpack):
        with open(self.path(name), "rb") as f:  # threads, reference kernels, indirect BGEMM, XNNPACK
            return self.module.LiteInterpreter(f.read(), 1, False, True, xnnpack)

    def runs(self, name, xnnpack):
        i = self.interpreter(name, xnnpack)
        x = np.random.default_rng(0).standard_normal(i.input_shapes[0]).astype(np.float32)
        return lambda: i.predict([x])


def least(call, seconds):
    """The least processor time of a call, in milliseconds."""
    best, end = float("inf"), time.perf_counter() + seconds
    runs = 0
    while runs < 3 or time.perf_counter() < end:
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
        runs += 1
    return best * 1e3


def check(bcnn, larq, name):
    """Compares a network with Larq Compute Engine. Its float operators round otherwise,
    which may turn a sign where a value is close to 0, so the outputs of most images agree
    to rounding, and those of some do not."""
    i, worst = larq.interpreter(name, False), float("inf")
    for seed in range(8):
        x = np.random.default_rng(seed).standard_normal(i.input_shapes[0]).astype(np.float32)
        want, got = np.array(i.predict([x])[0]).reshape(-1), bcnn.outputs(larq.path(name), x).reshape(-1)
        worst = min(worst, np.abs(want - got).max() / np.abs(want).max())
        if worst < 1e-3:
            return worst
    raise RuntimeError(f"{name}: bcnn and Larq Compute Engine differ by {worst:.2g} of the largest output and more")


class Engine:
    """The calls of an engine, and what the time of an inference is, given theirs."""

    def __init__(self, calls, combine=min):
        self.calls, self.combine = calls, combine
        self.best = [float("inf")] * len(calls)

    def round(self, seconds):
        self.best = [min(b, least(call, seconds)) for b, call in zip(self.best, self.calls)]

    def time(self):
        return self.combine(self.best)


def chain(one, five):
    """One layer of five, from their time and that of the first alone."""
    return Engine([one, five], lambda best: (best[1] - best[0]) / 4)


def works(args, bcnn, larq):
    """The lines of the table: a name, how bcnn is timed, and the engines beside it."""
    wanted = args.only.split(",") if args.only else list(LAYERS) + BIREAL + ZOO + list(few_bits.NETWORKS)
    unknown = set(wanted) - set(LAYERS) - set(ZOO) - set(BIREAL) - set(few_bits.NETWORKS)
    if unknown:
        sys.exit(f"compare.py: no such work: {', '.join(sorted(unknown))}")
    resnet18 = None
    for name in wanted:
        if name in LAYERS:
            shapes = LAYERS[name]
            one, five = (openvino_bin.compiled(openvino_bin.layers(*shapes, n).model(False))[0] for n in (1, 5))
            yield name, bcnn.layer(name), {
                "OpenVINO": chain(one, five),
                "LCE": chain(larq.runs(name + ".x1", False), larq.runs(name + ".x5", False)),
            }
            continue
        if name in few_bits.NETWORKS:
            differs = few_bits.check(args.models, name, bcnn.outputs)
            print(f"{name}: differs by {differs:.2g} of the largest output", file=sys.stderr)
            yield name, bcnn.network(few_bits.model(args.models, name)), {
                engine: Engine([call]) for engine, call in few_bits.engines(args.models, name).items()
            }
            continue
        resnet18 = resnet18 or resnet18_int8.session(args.models)
        if name in BIREAL:
            yield name, bcnn.network(name) if name == "birealnet18" else bcnn.first16(args.models), {
                "OpenVINO": Engine([openvino_bin.compiled(openvino_bin.bireal18().model(True))[0]]),
                "ONNX Runtime int8 ResNet-18": Engine([resnet18]),
            }
        else:
            print(f"{name}: differs by {check(bcnn, larq, name):.2g} of the largest output", file=sys.stderr)
            yield name, bcnn.network(larq.path(name)), {
                "LCE": Engine([larq.runs(name, False), larq.runs(name, True)]),
                "ONNX Runtime int8 ResNet-18": Engine([resnet18]),
            }


def main():
    args = arguments()
    bcnn, larq = Bcnn(args), Larq(args)
    openvino_bin.check()
    columns = ["OpenVINO", "LCE", "ONNX Runtime int8 ResNet-18", "ONNX Runtime float", "ONNX Runtime int8", "OpenVINO int8"]
    if not args.json:
        print(f"| one thread, ms | bcnn | {' | '.join(columns)} |\n|---|---|{'---|' * len(columns)}")
    for name, ours, engines in works(args, bcnn, larq):
        mine = float("inf")
        for _ in range(args.rounds):
            mine = min(mine, ours())
            for engine in engines.values():
                engine.round(args.seconds)
        best = {"bcnn": mine} | {name: engine.time() for name, engine in engines.items()}
        if args.json:
            print(json.dumps({"work": name, "rounds": args.rounds, "min_ms": best}), flush=True)
            continue
        cells = [f"{best[e]:.3g} ({best[e] / best['bcnn']:.2f})" if e in best else "–" for e in columns]
        print(f"| {name} | {best['bcnn']:.3g} | {' | '.join(cells)} |", flush=True)


main()
