"""Compares the importer of TensorFlow Lite with the interpreter of Larq Compute Engine on random
graphs; see README.md. Every graph comes from the seed and its number alone: --only draws one again.
"""

import argparse
import collections
import os
import shutil
import sys
import time

import numpy as np

import record
import runner

from . import binary, eight, flat, folded, inputs, moves, pointwise, weighted
from .draw import draw
from .oracle import NotRun, Oracle
from .rules import Judge, allowed, wrong_in_lce
from .shrink import shrink

REFUSED = "refused for another reason than REFUSALS lists"
BEHIND = "behind an obstacle"
KEEP = 3  # folders of faults of the same operators
TOP = 15  # lines of each list of the summary
FAMILIES = (binary, eight, folded, moves, pointwise, weighted)  # which register their operators


class Fuzzer:
    def __init__(self, args):
        self.args = args
        self.runner, self.oracle = runner.Runner(args.runner), Oracle()
        self.judge = Judge(self.oracle)
        self.count, self.refused, self.failures = collections.Counter(), collections.Counter(), collections.Counter()
        self.operators, self.kept, self.faults = collections.Counter(), collections.Counter(), []

    def bcnn(self, g, feed, checks=()):
        return self.runner.run(flat.encode(g), {g.tensors[i].name: x for i, x in feed.items()}, checks)

    def compare(self, g, exact, feed, checks=()):
        """What is wrong with a graph: a list of (index of an output or None, text)."""
        want = self.judge.images(g, feed)
        answer = self.bcnn(g, feed, checks)
        if answer.status == "refused":
            reasons = [reason for _, reason in answer.obstacles] or [answer.message]
            return answer, [(None, f"{REFUSED}: {reason}") for reason in reasons if not allowed(reason) and BEHIND not in reason]
        if answer.status != "ok":
            return answer, [(None, f"{answer.stage}: {answer.message}")]
        found, got = [(None, d) for d in answer.differences], list(answer.outputs.values())
        wrong = self.judge.faults(g, exact, feed, want, got, answer.report)
        if wrong:
            other, inside = self.judge.undisturbed(g, feed, want)
            if not inside:
                self.judge.allow("numbers out of range on the way")
                wrong = []
            elif not all(np.array_equal(x, y) for x, y in zip(want, other)):
                wrong = self.judge.faults(g, exact, feed, other, got, answer.report)
                if not wrong:
                    self.judge.allow("LCE's own fault, a tensor is overwritten that is still to be read")
        return answer, found + wrong

    def one(self, seed):
        """Draws and compares one graph."""
        r = np.random.default_rng([self.args.seed, seed])
        g, exact = draw(r)
        if not g.outputs:
            self.count["empty"] += 1
            return
        self.count["drawn"] += 1
        feed = inputs.feed(r, g, exact)
        checks = runner.CHECKS if self.args.check_every and seed % self.args.check_every == 0 else ()
        try:
            answer, found = self.compare(g, exact, feed, checks)
        except NotRun as e:
            self.count["not run by the interpreter"] += 1
            self.failures[str(e)] += 1
            return
        self.count[answer.status] += 1
        if answer.status == "refused":
            for o, reason in answer.obstacles or [("", answer.message)]:
                self.refused[short(f"{o} {reason}")] += 1
            if found:
                self.fault(seed, g, exact, feed, found, ())
            return
        self.count["exact" if exact else "with rounding"] += 1
        self.operators.update(o.name for o in g.operators)
        if found and wrong_in_lce(g):
            self.judge.allow("LCE's own fault, zeros around images smaller than the kernel")
        elif found:
            self.fault(seed, g, exact, feed, found, checks)

    def fault(self, seed, g, exact, feed, found, checks):
        """Makes a fault smaller and keeps it."""
        index, text = found[0]

        def wrong(h, x):
            try:
                again = self.compare(h, exact, x, checks if index is None else ())[1]
                return not wrong_in_lce(h) and any(t.startswith(REFUSED) == text.startswith(REFUSED) for _, t in again)
            except NotRun:
                return False
        let = dict(self.judge.let)
        h, x = shrink(g, feed, [index] if index is not None else g.outputs, wrong, self.oracle)
        _, smaller = self.compare(h, exact, x, checks)
        self.judge.let = let
        kind = "-".join(o.name.lower() for o in h.operators[:6])
        self.faults.append((seed, kind))
        print(f"FAULT {seed}: {kind}: {(smaller or found)[0][1][:300]}", flush=True)
        self.kept[kind] += 1
        if self.kept[kind] <= KEEP:
            self.save(f"lce-{seed}", h, exact, x, (smaller or found)[0][1])

    def save(self, name, g, exact, feed, text):
        folder = os.path.join(self.args.out, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        with open(os.path.join(folder, "model.tflite"), "wb") as f:
            f.write(flat.encode(g))
        np.savez(os.path.join(folder, "input.npz"), **{g.tensors[i].name: x for i, x in feed.items()})
        want = self.judge.images(g, feed)
        np.savez(os.path.join(folder, "expected.npz"), **{g.tensors[i].name: x for i, x in zip(g.outputs, want)})
        answer = self.bcnn(g, feed)
        got = list(answer.outputs.values())
        with open(os.path.join(folder, "note.txt"), "w", encoding="utf-8") as f:
            f.write(f"{text}\n{'exact' if exact else 'with rounding'}\n\n{describe(g)}\n")
            for report in answer.report:
                f.write(f"{report}\n")
            for k, i in enumerate(g.outputs):
                f.write(f"\n{g.tensors[i].name}: interpreter {want[k].ravel()[:24].tolist()}\n")
                if k < len(got):
                    f.write(f"{g.tensors[i].name}: bcnn {got[k].ravel()[:24].tolist()}\n")

    def replay(self, folder):
        """Compares a kept fault again; whether it is still one."""
        with open(os.path.join(folder, "model.tflite"), "rb") as f:
            g = flat.decode(f.read())
        with open(os.path.join(folder, "note.txt"), encoding="utf-8") as f:
            exact = "\nwith rounding\n" not in f.read()
        with np.load(os.path.join(folder, "input.npz")) as arrays:
            feed = {i: arrays[name if (name := g.tensors[i].name) in arrays.files else arrays.files[k]] for k, i in enumerate(g.inputs)}
        answer, found = self.compare(g, exact, feed)
        if found and wrong_in_lce(g):
            print(f"{folder}: LCE's own fault")
            return False
        print(f"{folder}: {answer.status}: {found[0][1] if found else answer.message or 'no difference'}")
        return bool(found)

    def write(self):
        """Records known answers."""
        archive, number = record.Archive(self.args.record, self.args.bytes), self.args.first
        while not archive.full() and number < self.args.end:
            r = np.random.default_rng([self.args.seed, number])
            g, exact = draw(r)
            feed = inputs.feed(r, g, exact) if g.outputs else {}
            number += 1
            if not exact or not g.outputs:
                continue
            try:
                answer, found = self.compare(g, exact, feed)
                want = self.judge.undisturbed(g, feed, self.judge.images(g, feed))[0] if answer.status == "ok" else None
            except NotRun:
                continue
            if answer.status != "ok" or found or wrong_in_lce(g):
                continue
            expected = {g.tensors[i].name: x for i, x in zip(g.outputs, want)}
            got = dict(zip(expected, answer.outputs.values()))
            if all(x.shape == got[n].shape and x.dtype == got[n].dtype for n, x in expected.items()) and record.agree(expected, got):
                archive.add(number - 1, flat.encode(g), features(g), {g.tensors[i].name: x for i, x in feed.items()}, expected)
        archive.close()

    def summary(self, seconds):
        c = self.count
        print(f"\n{c['drawn']} models in {seconds:.0f} s, {c['drawn'] / max(seconds, 1e-9):.0f} a second: {c['ok']} converted "
              f"({c['exact']} exact, {c['with rounding']} with rounding), {c['refused']} refused, {c['failed'] + c['died']} failed, "
              f"{c['not run by the interpreter']} not run by the interpreter ({self.oracle.crashes} crashes), {len(self.faults)} faults")
        for title, list_ in (("let through", collections.Counter(self.judge.let)), ("refused", self.refused), ("not run", self.failures),
                             ("faults", collections.Counter(kind for _, kind in self.faults))):
            for what, n in list_.most_common(TOP):
                print(f"{title}: {n} {what}")
        print("operators:", ", ".join(f"{name} {n}" for name, n in self.operators.most_common()))


def features(g):
    """What tells graphs apart: operators behind others, types, and values of options."""
    makers = {i: o.name for o in g.operators for i in o.outputs}
    found = set()
    for o in g.operators:
        found.update((makers.get(i, "input"), at, o.name, g.tensors[i].dtype if i >= 0 else "") for at, i in enumerate(o.inputs))
        found.update((o.name, k, str(v)[:40]) for k, v in o.fields.items())
    return found


def short(reason):
    """A reason without its numbers, so that they are counted together."""
    return "".join("0" if c.isdigit() else c for c in reason[:160])


def describe(g):
    """A graph as text."""
    lines = []
    for i in g.inputs:
        lines.append(f"{tensor(g, i)} is an input")
    for o in g.operators:
        fields = ", ".join(f"{k}={v}" for k, v in o.fields.items())
        lines.append(f"{', '.join(tensor(g, i) for i in o.outputs)} = {o.name}({', '.join(tensor(g, i) for i in o.inputs)}{'; ' + fields if fields else ''})")
    return "\n".join(lines)


def tensor(g, i):
    if i < 0:
        return "none"
    t = g.tensors[i]
    quant = f" {np.asarray(t.scale).ravel()[:4].tolist()}, {np.asarray(t.zero).ravel()[:4].tolist()}" if t.scale is not None else ""
    if t.data is not None:
        return f"{t.dtype}{t.dims}{np.asarray(t.data).ravel()[:12].tolist()}{quant}"
    return f"{t.name}:{t.dtype}{t.dims}{quant}"


def seconds_of(text):
    """60, 60s, 5m or 1h."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    return float(text[:-1]) * unit if unit else float(text)


def arguments():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "build", "fuzz-import")
    p = argparse.ArgumentParser(prog="lce", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--graphs", type=int, help="how many graphs (default: as many as the time allows)")
    p.add_argument("--seconds", type=seconds_of, help="how long, such as 300 or 5m (default FUZZTIME, else 60s)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--first", type=int, default=0, help="number of the first graph")
    p.add_argument("--check-every", type=int, default=8, help="which graphs have all checks of the runner; 0 for none")
    p.add_argument("--only", type=int, metavar="NUMBER", help="one graph, with what came of it")
    p.add_argument("--replay", metavar="FOLDER", help="run kept faults")
    p.add_argument("--record", metavar="FILE", help="write known answers for the tests of the importer")
    p.add_argument("--bytes", type=int, default=400_000, help="how large the file becomes at the most")
    p.add_argument("--runner", default=os.path.join(root, "runner"))
    p.add_argument("--out", default=os.path.join(root, "faults"), help="folder for faults")
    a = p.parse_args()
    if a.seconds is None:
        a.seconds = float("inf") if a.graphs or a.only is not None else seconds_of(os.environ.get("FUZZTIME") or "60s")
    a.end = a.first + a.graphs if a.graphs else sys.maxsize
    return a


def folders(path):
    """A folder with a model, or those below it."""
    list_ = [path] if os.path.exists(os.path.join(path, "model.tflite")) else [os.path.join(path, n) for n in sorted(os.listdir(path))]
    return [f for f in list_ if os.path.exists(os.path.join(f, "model.tflite"))]


def main():
    args = arguments()
    np.seterr(all="ignore")  # infinities are left out
    f = Fuzzer(args)
    try:
        if args.record:
            f.write()
            return 0
        if args.replay:
            return int(any([f.replay(folder) for folder in folders(args.replay)]))
        start, number = time.monotonic(), args.first if args.only is None else args.only
        while number < args.end and time.monotonic() - start < args.seconds:
            f.one(number)
            if args.only is not None:
                break
            number += 1
        f.summary(time.monotonic() - start)
        return int(bool(f.faults))
    except KeyboardInterrupt:
        return 1
    finally:
        f.runner.close()
        f.oracle.close()


if __name__ == "__main__":
    sys.exit(main())
