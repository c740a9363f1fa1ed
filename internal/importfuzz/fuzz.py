"""Compares the importer of ONNX with ONNX Runtime on random graphs; see README.md.

Every graph comes from the seed and its number alone: --only draws one again.
"""

import argparse
import collections
import multiprocessing
import os
import signal
import sys
import time
import traceback

import numpy as np
import onnx

import draw
import kept
import oracle
import record
import shrink
from runner import CHECKS, Runner

SHRINK_SECONDS = 5.0
SHRINK_SHARE = 0.35  # of the time
KEEP = 3  # folders of one signature


class Worker:
    """Draws graphs, judges them, and makes those with faults smaller."""

    def __init__(self, program, seed, every):
        self.runner, self.seed, self.every = Runner(program), seed, every
        self.start, self.shrinking = time.monotonic(), 0.0
        self.found = collections.Counter()  # signatures

    def one(self, number, patient=False):
        """What came of a graph, as a dict that another process may read."""
        drawn = draw.draw(self.seed, number)
        checks = CHECKS if self.every and number % self.every == 0 else ()
        verdict = oracle.judge(drawn.model, drawn.inputs, self.runner, drawn.exact, drawn.wide, checks, drawn.special)
        operators = drawn.operators()
        made = {"number": number, "kind": verdict.kind, "operators": operators, "exact": drawn.exact, "checked": bool(checks)}
        if verdict.kind == oracle.REFUSED:
            found = verdict.answer.obstacles or [("", verdict.answer.message)]
            made["reasons"] = ["%s: %s" % (op, reason.split("\n")[0][:110]) for op, reason in found]
        elif verdict.kind == oracle.NOT_RUN:
            made["reasons"] = [verdict.text[:160]]
        elif verdict.kind == oracle.FAULT:
            made.update(self.fault(drawn, verdict, checks, patient))
        return made

    def fault(self, drawn, verdict, checks, patient):
        # Where most of the time goes into faults, those that hold the operators of one
        # that was found often are counted with it.
        if not patient and self.shrinking > SHRINK_SHARE * (time.monotonic() - self.start):
            forms = collections.Counter(filter(None, map(shrink.form, drawn.model.graph.node)))
            for s, n in self.found.items():
                cause, names = s.split(": ", 1)
                if n >= KEEP and cause == verdict.cause and not collections.Counter(names.split()) - forms:
                    return {"signature": s, "like": True}
        start = time.monotonic()
        s = shrink.Shrinker(drawn.model, drawn.inputs, self.runner, drawn.exact, drawn.wide, checks, verdict,
                            drawn.symbolic, drawn.special, SHRINK_SECONDS * (6 if patient else 1)).run()
        self.shrinking += time.monotonic() - start
        signature = shrink.signature(s.verdict, s.model)
        self.found[signature] += 1
        made = {"signature": signature, "like": False}
        if self.found[signature] <= KEEP:
            note = "Graph %d of seed %d, %s arithmetic, opset %d.\n%s\n%s" % (
                drawn.number, self.seed, "exact" if drawn.exact else "rounded", drawn.model.opset_import[0].version,
                s.verdict.cause, s.verdict.text)
            if s.verdict.cause in ("wrong", "shape"):
                note += "\n" + oracle.other_opinion(s.model, s.inputs, s.verdict.expected)
            if s.verdict.answer and s.verdict.answer.report:
                note += "\nthe report says: " + "; ".join(s.verdict.answer.report)
            made["folder"] = (s.model.SerializeToString(), s.inputs, s.verdict.expected, note,
                              {"exact": drawn.exact, "wide": sorted(drawn.wide), "checks": list(checks), "special": drawn.special})
        return made


def features(model):
    """What tells graphs apart: operators behind others, and values of attributes."""
    makers = {o: n.op_type for n in model.graph.node for o in n.output}
    found = {(model.opset_import[0].version,)}
    for n in model.graph.node:
        found.update((makers.get(name, "input"), at, n.op_type) for at, name in enumerate(n.input))
        for a in n.attribute:
            value = str(onnx.helper.get_attribute_value(a)) if a.type != onnx.AttributeProto.TENSOR else ""
            found.add((n.op_type, a.name, value[:40]))
    return found


def write(a):
    """Records known answers."""
    archive, runner, number = record.Archive(a.record, a.bytes), Runner(a.runner), a.first
    while not archive.full() and number < a.first + (a.graphs or sys.maxsize):
        drawn = draw.draw(a.seed, number)
        verdict = oracle.judge(drawn.model, drawn.inputs, runner, drawn.exact, drawn.wide)
        if verdict.kind == oracle.EQUAL and drawn.exact and not drawn.wide and record.agree(verdict.expected, verdict.answer.outputs):
            archive.add(number, drawn.model.SerializeToString(), features(drawn.model), drawn.inputs, verdict.expected)
        number += 1
    runner.close()
    archive.close()


class Summary:
    """Counts, and folders of faults."""

    def __init__(self, folder):
        self.folder = folder
        self.kinds, self.exact, self.checked = collections.Counter(), 0, 0
        self.drawn, self.converted = collections.Counter(), collections.Counter()
        self.refusals, self.not_run = collections.Counter(), collections.Counter()
        self.faults, self.first = collections.Counter(), {}

    def add(self, made):
        kind = made["kind"]
        self.kinds[kind] += 1
        self.exact += made["exact"]
        self.drawn.update(made["operators"])
        if kind in (oracle.EQUAL, oracle.ROUNDING, oracle.FAULT):
            self.converted.update(made["operators"])
            self.checked += made["checked"]
        for reason in made.get("reasons", ()):
            (self.refusals if kind == oracle.REFUSED else self.not_run)[reason] += 1
        if kind != oracle.FAULT:
            return
        signature = made["signature"]
        self.faults[signature] += 1
        if "folder" in made and self.faults[signature] <= KEEP:
            model, inputs, expected, note, how = made["folder"]
            path = kept.keep(self.folder, kept.name_of(signature, made["number"]), onnx.load_from_string(model), inputs, expected, note, how)
            self.first.setdefault(signature, (made["number"], path))
            print("FAULT in graph %d: %s\n  %s\n  %s" % (made["number"], signature, "\n  ".join(note.split("\n")[2:5])[:600], path), flush=True)

    def print(self, seconds):
        n = sum(self.kinds.values())
        converted = sum(self.kinds[k] for k in (oracle.EQUAL, oracle.ROUNDING, oracle.FAULT))
        print("\n%d graphs in %.0f s (%.0f a second), %d of them exact" % (n, seconds, n / max(seconds, 1e-9), self.exact))
        print("%d converted (%d with all checks), %d refused, %d not run by ONNX Runtime, %d out of the range of float32" % (
            converted, self.checked, self.kinds[oracle.REFUSED], self.kinds[oracle.NOT_RUN], self.kinds[oracle.OUT_OF_RANGE]))
        print("%d equal, %d differ by rounding, %d with faults" % (self.kinds[oracle.EQUAL], self.kinds[oracle.ROUNDING], self.kinds[oracle.FAULT]))
        print("\nrefused most often:")
        for reason, k in self.refusals.most_common(20):
            print("%7d  %s" % (k, reason))
        print("\nnot run by ONNX Runtime most often:")
        for reason, k in self.not_run.most_common(10):
            print("%7d  %s" % (k, reason))
        print("\nnodes drawn and, of these, in graphs that were converted:")
        cells = ["%-26s%7d%7d" % (op, k, self.converted[op]) for op, k in sorted(self.drawn.items())]
        rows = -(-len(cells) // 3)
        for i in range(rows):
            print("  ".join(cells[i::rows]))
        if self.faults:
            print("\nfaults by the operators of their smallest graphs:")
            for signature, k in self.faults.most_common():
                print("%7d  %s (%s)" % (k, signature, "first in graph %d" % self.first[signature][0] if signature in self.first else ""))


def work(program, seed, every, share, of, graphs, end, results):
    """A process: every of-th graph."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    number = share
    try:
        worker = Worker(program, seed, every)
        while number < graphs and time.time() < end:
            results.put(worker.one(number))
            number += of
        worker.runner.close()
        results.put(None)
    except Exception:  # the process that waits must not wait for ever
        results.put(RuntimeError("graph %d:\n%s" % (number, traceback.format_exc())))


def results_of(a, graphs, end):
    """Results of all processes, in the order in which they come."""
    if a.jobs == 1:
        worker = Worker(a.runner, a.seed, a.check_every)
        number = a.first
        while number < graphs and time.time() < end:
            yield worker.one(number)
            number += 1
        worker.runner.close()
        return
    context = multiprocessing.get_context("fork")
    results = context.Queue(1000)
    workers = [context.Process(target=work, args=(a.runner, a.seed, a.check_every, a.first + i, a.jobs, graphs, end, results), daemon=True)
               for i in range(a.jobs)]
    for w in workers:
        w.start()
    running = a.jobs
    while running:
        made = results.get()
        if isinstance(made, Exception):
            raise made
        if made is None:
            running -= 1
        else:
            yield made


def seconds_of(text):
    """60, 60s, 5m or 1h."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    return float(text[:-1]) * unit if unit else float(text)


def main():
    np.seterr(all="ignore")  # values out of range are left out
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "fuzz-import")
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--graphs", type=int, help="how many graphs (default: as many as the time allows)")
    p.add_argument("--seconds", type=seconds_of, help="how long, such as 300 or 5m (default FUZZTIME, else 60s)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--first", type=int, default=0, help="number of the first graph")
    p.add_argument("--jobs", type=int, default=1, help="processes")
    p.add_argument("--check-every", type=int, default=4, help="which graphs have all checks of the runner; 0 for none")
    p.add_argument("--only", type=int, metavar="NUMBER", help="one graph, with what came of it")
    p.add_argument("--replay", metavar="FOLDER", help="run kept faults")
    p.add_argument("--record", metavar="FILE", help="write known answers for the tests of the importer")
    p.add_argument("--bytes", type=int, default=400_000, help="how large the file becomes at the most")
    p.add_argument("--runner", default=os.path.join(root, "runner"))
    p.add_argument("--out", default=os.path.join(root, "faults"), help="folder for faults")
    a = p.parse_args()
    if a.record:
        write(a)
        return 0
    if a.replay:
        runner = Runner(a.runner)
        bad = 0
        for name, verdict in kept.replay(a.replay, runner):
            bad += verdict.kind == oracle.FAULT
            print("%-12s %s %s" % (verdict.kind, name, verdict.text.split("\n")[0][:200]))
        return 1 if bad else 0
    if a.only is not None:
        drawn = draw.draw(a.seed, a.only)
        print(onnx.printer.to_text(drawn.model))
        made = Worker(a.runner, a.seed, a.check_every).one(a.only, patient=True)
        made.pop("operators")
        folder = made.pop("folder", None)
        print(made)
        if folder:
            print(kept.keep(a.out, kept.name_of(made["signature"], a.only), onnx.load_from_string(folder[0]), *folder[1:]))
            print(folder[3], "\n", onnx.printer.to_text(onnx.load_from_string(folder[0])))
        return 1 if made["kind"] == oracle.FAULT else 0
    seconds = a.seconds or (10**9 if a.graphs else seconds_of(os.environ.get("FUZZTIME") or "60s"))
    graphs = a.first + a.graphs if a.graphs else sys.maxsize
    summary, start = Summary(a.out), time.time()
    try:
        for made in results_of(a, graphs, start + seconds):
            summary.add(made)
    except KeyboardInterrupt:
        pass
    summary.print(time.time() - start)
    return 1 if summary.faults else 0


if __name__ == "__main__":
    sys.exit(main())
