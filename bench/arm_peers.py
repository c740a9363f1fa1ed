#!/usr/bin/env python3
"""Times model files in bcnn and in the engines that this Python has: .tflite files in
Larq Compute Engine (default, indirect kernels, and those with XNNPACK), .onnx files in
ONNX Runtime. scripts/arm-check runs it on the board.

The engines take turns: in every round each of them runs a model for a while, on the
same number of threads, and the median of all its runs counts. Prints a table in
Markdown; what cannot run is listed with its reason.

    peers.py [--bcnn ./bcnn] [--threads 1,4] [--runs 30] MODEL...
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROUNDS = 3


def run_bcnn(bcnn: str, model: str, threads: int, runs: int) -> list[float]:
    """Medians of bcnn, in microseconds."""
    done = subprocess.run(
        [bcnn, "bench", "--model", model, "--device", "cpu", "--threads", str(threads), "--runs", str(runs), "--json"],
        capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    return [json.loads(done.stdout.splitlines()[0])["median_us"]]


def timed(call, runs: int) -> list[float]:
    call()  # what is made at the first run does not count
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1e6)
    return times


def larq(model: str, threads: int, **options):
    import numpy as np
    from larq_compute_engine.tflite.python.interpreter import Interpreter

    with open(model, "rb") as f:
        interpreter = Interpreter(f.read(), num_threads=threads, **options)
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(shape).astype(kind) for shape, kind in zip(interpreter.input_shapes, interpreter.input_types)]
    return lambda: interpreter.predict(inputs if len(inputs) > 1 else inputs[0])


def onnx(model: str, threads: int):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    kinds = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}
    feed = {}
    for x in session.get_inputs():
        shape = [size if isinstance(size, int) and size > 0 else 1 for size in x.shape]
        feed[x.name] = (rng.standard_normal(shape) * 64).astype(kinds[x.type])
    return lambda: session.run(None, feed)


def engines(model: str, threads: int):
    """Names of engines, and how to make a call that runs the model in each."""
    if model.endswith(".tflite"):
        yield "LCE", lambda: larq(model, threads)
        yield "LCE, indirect", lambda: larq(model, threads, use_indirect_bgemm=True)
        yield "LCE, indirect, XNNPACK", lambda: larq(model, threads, use_indirect_bgemm=True, use_xnnpack=True)
    else:
        yield "ONNX Runtime", lambda: onnx(model, threads)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bcnn", default="./bcnn")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    try:
        counts = list(dict.fromkeys(int(n) for n in args.threads.split(",")))
    except ValueError:
        parser.error(f"--threads {args.threads}: want numbers separated by commas")
    if args.runs < 1 or min(counts) < 1:
        parser.error("--runs and --threads must be at least 1")

    failed = False
    print("| Model | threads | engine | ms, median | of bcnn's |")
    print("|---|--:|---|--:|--:|")
    reasons = {}
    for model in args.models:
        for threads in counts:
            calls, times = {}, {"bcnn": []}
            for name, make in engines(model, threads):
                try:
                    calls[name], times[name] = make(), []
                except Exception as err:  # an engine that is absent or refuses the model
                    reasons[f"{name}, {os.path.basename(model)}"] = err
            try:
                for _ in range(ROUNDS):
                    times["bcnn"] += run_bcnn(args.bcnn, model, threads, args.runs)
                    for name, call in calls.items():
                        times[name] += timed(call, args.runs)
            except Exception as err:
                reasons[f"{os.path.basename(model)}, {threads} threads"] = err
                failed = True
                continue
            ours = statistics.median(times["bcnn"])
            for name, list_ in times.items():
                median = statistics.median(list_)
                print(f"| {os.path.basename(model)} | {threads} | {name} | {median / 1000:.3f} | {median / ours:.2f} |")
    if reasons:
        print("\nNot run:\n")
        for what, why in reasons.items():
            print(f"- {what}: {' '.join(str(why).split()) or type(why).__name__}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
