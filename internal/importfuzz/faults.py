"""Puts faults into the code, one at a time, and sees that the fuzzer finds them.

injected.tsv has a fault on each line: its name, the half of the fuzzer that must find it, what it
is, a file, a text that occurs there once, and the text in its place. The tree is not changed: the
go command takes another file by its -overlay. At the end the code as it is runs on the same graphs.
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

# How the halves are run, and what they print for a fault. Only wrong results count: what
# panics or is refused would be noticed without a fuzzer.
FAULT = re.compile(r"FAULT ")
HALVES = {
    "onnx": (["venv", "internal/importfuzz/fuzz.py"], re.compile(r"FAULT in graph (\d+): (?:wrong|shape|check):")),
    "lce": (["venv-lce", "-m", "lce"], re.compile(r"FAULT (\d+): \S*: (?:\d+ of \d+ values differ|shape \(|[^:]+: output \S+ differs at )")),
}


def faults():
    with open(os.path.join(HERE, "injected.tsv"), encoding="utf-8") as f:
        return [line.rstrip("\n").split("\t") for line in f]


def build(folder, fault=None):
    """Builds a runner, with a fault or of the code as it is, and returns its path."""
    runner = os.path.join(folder, "runner")
    command = ["go", "build", "-o", runner]
    if fault:
        name, _, _, file, old, new = fault
        with open(os.path.join(ROOT, file), encoding="utf-8") as f:
            text = f.read()
        if text.count(old) != 1:
            raise SystemExit(f"fault {name}: {old!r} occurs {text.count(old)} times in {file}, want 1")
        changed, overlay = os.path.join(folder, "changed.go"), os.path.join(folder, "overlay.json")
        with open(changed, "w", encoding="utf-8") as f:
            f.write(text.replace(old, new))
        with open(overlay, "w", encoding="utf-8") as f:
            json.dump({"Replace": {os.path.join(ROOT, file): changed}}, f)
        command += ["-overlay", overlay]
    if subprocess.run([*command, "./internal/importfuzz"], cwd=ROOT, check=False).returncode:
        raise SystemExit(f"fault {fault[0]}: {fault[3]} does not compile with it" if fault else "the code does not compile")
    return runner


def first(half, found, runner, folder, *limit):
    """Runs a half up to the first line that found matches; its number and the seconds, or None."""
    (venv, *program), _ = HALVES[half]
    command = [os.path.join("build", "fuzz-import", venv, "bin", "python"), *program, "--runner", runner, "--out", folder, *limit]
    env = dict(os.environ, PYTHONPATH=HERE, PYTHONUNBUFFERED="1")
    start, faulty = time.monotonic(), False
    p = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        for line in p.stdout:
            if m := found.match(line):
                return (int(m[1]) if m.groups() else line.strip()), time.monotonic() - start
            faulty = faulty or FAULT.match(line)
        if p.wait() and not faulty:
            raise SystemExit(f"the fuzzer failed: {' '.join(command)}")
    finally:
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has ended with all that it had started
            pass
        p.wait()
    return None


def unchanged(half, graphs, seed):
    """Whether so many graphs are without faults where the code is."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        seen = first(half, FAULT, build(folder), folder, "--seed", str(seed), "--graphs", str(graphs))
    print(f"the code as it is, {half}, {graphs} graphs: {seen[0] if seen else 'no fault'} ({time.monotonic() - start:.0f} s)", flush=True)
    return seen is None


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
    found, last = 0, {}  # the last graph of each half that was needed
    print(f"{'fault':<20}{'half':<6}{'found':<6}{'graph':>7}{'s':>6}  what it is", flush=True)
    for fault in table:
        name, half, what = fault[:3]
        with tempfile.TemporaryDirectory() as folder:
            seen = first(half, HALVES[half][1], build(folder, fault), folder, "--seed", str(a.seed), "--seconds", str(a.seconds))
        number, seconds = (str(seen[0]), f"{seen[1]:.0f}") if seen else ("-", "-")
        if seen:
            found, last[half] = found + 1, max(seen[0], last.get(half, 0))
        print(f"{name:<20}{half:<6}{'yes' if seen else 'no':<6}{number:>7}{seconds:>6}  {what}", flush=True)
    print(f"{found} of {len(table)} found", flush=True)
    clean = [unchanged(half, graphs + 1, a.seed) for half, graphs in last.items()]
    return found < NEEDED * len(table) or not all(clean)


if __name__ == "__main__":
    sys.exit(main())
