"""Compares a call from Python with one from Go, of one image on one thread, in turns.

The best turn of each counts: others who use the machine take time away, and add none.
"""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import bitcnn

ROOT = Path(__file__).parents[1]
ROUNDS, TURNS = 8, 300


def from_python(model: bitcnn.Model, x: np.ndarray, calls: int) -> float:
    """The µs of a call."""
    best = float("inf")
    for _ in range(TURNS):
        start = time.perf_counter()
        for _ in range(calls):
            model(x)
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def from_go() -> dict[str, float]:
    """The µs of a run, by model, as the benchmark of the C library measures it."""
    command = ["go", "test", "-run", "-", "-bench", "BenchmarkRun", "-benchtime", "1x", "./capi"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in text.splitlines() if line.startswith("BenchmarkRun/")]
    return {line[0].split("/")[1].rsplit("-", 1)[0]: float(line[line.index("Go-ns") - 1]) / 1e3 for line in lines}


def main() -> None:
    """Prints a line for each model."""
    models = {"digits": 300, "vehiclenet": 20}
    python, go = dict.fromkeys(models, float("inf")), dict.fromkeys(models, float("inf"))
    for _ in range(ROUNDS):
        for name, took in from_go().items():
            go[name] = min(go[name], took)
        for name, calls in models.items():
            model = bitcnn.load(name, device="cpu", threads=1)
            info = model.inputs[0]
            x = np.random.default_rng(1).integers(0, 256, info.shape, info.dtype)
            python[name] = min(python[name], from_python(model, x, calls))
    for name in models:
        sys.stdout.write(f"{name}: {python[name]:.2f} µs from Python, {go[name]:.2f} µs from Go\n")


if __name__ == "__main__":
    main()
