#!/usr/bin/env python3
"""Reckons how long a network takes on many threads, which the machine at hand does not have.

Steps take the times that they have here on one thread, scaled to those of a whole run, in which
some are computed together. They are divided into the tiles that bcnn divides them into for so many
threads. A step with several ends when the thread with the most has done them:

    most tiles of a thread x (time of a tile + TAKE), or tiles x LINE if that is longer, + BARRIER

TAKE is what schedule.go reckons with for a tile: taking it, and reading its border once more.
LINE is the time for a cache line to move from core to core, which additions to one number wait for
in turn; BARRIER is two of them, one to see the step, one to see its end. Memory that threads share is not
in it: caches and weights, of which each thread reads all.

    bench/threads.py MODEL [--bcnn bin/bcnn] [--isa avx512amx] [--line 0.07]
"""

import argparse
import json
import math
import re
import subprocess

TAKE = 0.5  # microseconds
THREADS = [1, 2, 4, 8, 16, 32, 64]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("model")
    p.add_argument("--bcnn", default="bin/bcnn")
    p.add_argument("--isa", default="", help="instruction set of bcnn")
    p.add_argument("--line", type=float, default=0.07, help="microseconds for a cache line from core to core")
    p.add_argument("--rounds", type=int, default=5)
    args = p.parse_args()
    isa = ["--isa", args.isa] if args.isa else []

    def bench(threads):
        out = subprocess.run([args.bcnn, "bench", "-d", "cpu", "--model", args.model, "--threads", str(threads), "--runs", "40", "--json", *isa],
                             check=True, stdout=subprocess.PIPE, text=True).stdout
        return json.loads(out.splitlines()[0])

    runs = [bench(1) for _ in range(args.rounds)]
    whole = min(r["min_us"] for r in runs)
    times = [min(step) for step in zip(*([s["min_us"] for s in r["steps"]] for r in runs))]
    scale = whole / sum(times)
    print("| threads | steps with several tiles | tiles | ms | times as fast |\n|---|---|---|---|---|")
    for threads in THREADS:
        out = subprocess.run([args.bcnn, "inspect", "--plan", "--json", "--threads", str(threads), *isa, args.model],
                             check=True, stdout=subprocess.PIPE, text=True).stdout
        steps = json.loads(out)["plan"]["steps"]
        groups = {}  # work and tiles of steps that lead
        for i, step in enumerate(steps):
            leader = re.match(r"(?:those|in that) of (.*)", step.get("tile", "") or step["kernel"])
            tiles = re.search(r"(\d+) tiles?", step.get("tile", ""))
            name = leader.group(1) if leader else step["name"]
            work, n = groups.get(name, (0, 1))
            groups[name] = (work + times[i] * scale, int(tiles.group(1)) if tiles and not leader else n)
        total, shared, all_tiles = 0, 0, 0
        for work, n in groups.values():
            if n == 1 or threads == 1:
                total += work
                continue
            shared, all_tiles = shared + 1, all_tiles + n
            total += max(math.ceil(n / threads) * (work / n + TAKE), n * args.line) + 2 * args.line
        print(f"| {threads} | {shared} of {len(groups)} | {all_tiles} | {total / 1e3:.2f} | {whole / total:.1f} |")


if __name__ == "__main__":
    main()
