"""Puts faults into the code, one at a time, and sees that the fuzzer finds them.

injected.tsv has a fault on each line: its name, the half of the fuzzer that must find it, what it
is, a file, a text that occurs there once, and the text in its place. The tree is not changed: the
go command takes another file by its -overlay.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
NEEDED = 0.9  # of the faults

# What the halves print for a fault, and how they are run.
FOUND = re.compile(r"FAULT (?:in graph )?(\d+)")
HALVES = {
    "onnx": ["venv", "internal/importfuzz/fuzz.py"],
    "lce": ["venv-lce", "-m", "lce"],
}


def faults():
    with open(os.path.join(HERE, "injected.tsv"), encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f]


def build(folder, file, old, new):
    """Builds a runner with another text in a file, and returns its path."""
    with open(os.path.join(ROOT, file), encoding="utf-8") as f:
        text = f.read()
    if text.count(old) != 1:
        raise SystemExit(f"{file}: {old!r} occurs {text.count(old)} times, want 1")
    changed, overlay, runner = (os.path.join(folder, name) for name in ("changed.go", "overlay.json", "runner"))
    with open(changed, "w", encoding="utf-8") as f:
        f.write(text.replace(old, new))
    with open(overlay, "w", encoding="utf-8") as f:
        json.dump({"Replace": {os.path.join(ROOT, file): changed}}, f)
    subprocess.run(["go", "build", "-overlay", overlay, "-o", runner, "./internal/importfuzz"], cwd=ROOT, check=True)
    return runner


def first(half, runner, folder, seed, seconds):
    """Runs the fuzzer until it finds something; the number of the graph and the seconds, or None."""
    venv, *program = HALVES[half]
    command = [os.path.join("build", "fuzz-import", venv, "bin", "python"), *program, "--runner", runner, "--seed", str(seed),
               "--seconds", str(seconds), "--out", folder]
    env = dict(os.environ, PYTHONPATH=HERE, PYTHONUNBUFFERED="1")
    start = time.monotonic()
    p = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        for line in p.stdout:
            if m := FOUND.match(line):
                return int(m[1]), time.monotonic() - start
    finally:
        os.killpg(p.pid, signal.SIGKILL)
        p.wait()
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", help="faults (default: all)")
    p.add_argument("--seconds", type=float, default=600, help="for each fault")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    table = faults()
    if unknown := set(a.names) - {f[0] for f in table}:
        raise SystemExit(f"no such faults: {', '.join(sorted(unknown))}")
    table = [f for f in table if not a.names or f[0] in a.names]
    found = 0
    print(f"{'fault':<20}{'half':<6}{'graph':>8}{'s':>7}  what it is", flush=True)
    for name, half, what, file, old, new in table:
        with tempfile.TemporaryDirectory() as folder:
            seen = first(half, build(folder, file, old, new), folder, a.seed, a.seconds)
        found += seen is not None
        number, seconds = (str(seen[0]), f"{seen[1]:.0f}") if seen else ("-", "-")
        print(f"{name:<20}{half:<6}{number:>8}{seconds:>7}  {what}", flush=True)
    print(f"{found} of {len(table)} found")
    return found < NEEDED * len(table)


if __name__ == "__main__":
    sys.exit(main())
