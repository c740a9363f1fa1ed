"""Runs the tests of operators that the onnx package brings with it; see README.md.

Each test has a model, inputs and what comes out. suite.tsv lists those that are right: one that
is no longer is an error, as is a wrong result or a panic. suite_known.tsv has the exceptions.
"""

import argparse
import collections
import csv
import glob
import os
import re
import sys
import time
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

import oracle
from runner import Runner

HERE = os.path.dirname(os.path.abspath(__file__))
RIGHT_FILE, KNOWN_FILE = os.path.join(HERE, "suite.tsv"), os.path.join(HERE, "suite_known.tsv")
RIGHT, REFUSED, KNOWN, WRONG, PANIC = "right", "refused", "known", "wrong", "panic"
TOLERANCE = 1e-5  # relative, and a tenth of it absolute; suite_known.tsv allows some tests more
OPSET = 11  # that models older than the importer reads are brought to
FED = ("float32", "float64", "float16", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


class Test:
    """A test with some of its inputs as those of the network, and the others as constants."""

    def __init__(self, kind, name, inputs, model, fed, expected):
        self.key = (kind, name, inputs)
        self.model, self.fed, self.expected = model, fed, expected


def array_of(v):
    """An input or output as an array; None of sequences, optionals and types without arrays."""
    if isinstance(v, onnx.TensorProto):
        v = numpy_helper.to_array(v)
    return np.asarray(v) if isinstance(v, (np.ndarray, np.generic)) else None


def ways(kind, name, model, inputs, expected):
    """The test with its first float32 input as the network's, or, where it has none, its first
    one of another type; and with all float32 ones, if they are several. inputs are by name."""
    floats = [n for n, a in inputs.items() if a.dtype == np.float32]
    for which, fed in (("one", (floats or [n for n, a in inputs.items() if str(a.dtype) in FED])[:1]), ("all", floats)):
        if which == "all" and len(fed) < 2:
            continue
        m = onnx.ModelProto()
        m.CopyFrom(model)
        ports = {p.name: p for p in m.graph.input}
        m.graph.ClearField("input")
        m.graph.input.extend(ports[n] for n in fed)
        m.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in inputs.items() if n not in fed)
        yield Test(kind, name, which, m, {n: inputs[n] for n in fed}, expected)


def node_tests():
    """The tests of single operators, which the package computes anew: of each the first data."""
    from onnx.backend.test.case.node import collect_testcases
    for t in collect_testcases(None):
        for given, wanted in (t.data_sets or [])[:1]:
            given, wanted = [array_of(v) for v in given], [array_of(v) for v in wanted]
            if any(v is None for v in given + wanted):
                continue
            yield from ways("node", t.name, t.model, dict(zip([i.name for i in t.model.graph.input], given)),
                            dict(zip([o.name for o in t.model.graph.output], wanted)))


def pytorch_tests():
    """Models that PyTorch has written, with weights and data as files."""
    folders = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "pytorch-*", "*", "")
    for folder in sorted(glob.glob(folders)):
        model = onnx.load(os.path.join(folder, "model.onnx"))
        if model.opset_import[0].version < 7:
            try:
                model = onnx.version_converter.convert_version(model, OPSET)
            except Exception:  # an operator that the converter does not know
                continue
        weights = {i.name for i in model.graph.initializer}
        for port in [i for i in model.graph.input if i.name in weights]:
            model.graph.input.remove(port)

        def load(what):
            files = glob.glob(os.path.join(folder, "test_data_set_0", what + "_*.pb"))
            return [numpy_helper.to_array(onnx.load_tensor(f)) for f in sorted(files, key=lambda f: int(re.findall(r"\d+", f)[-1]))]

        yield from ways("pytorch", os.path.basename(os.path.dirname(folder)), model,
                        dict(zip([i.name for i in model.graph.input], load("input"))),
                        dict(zip([o.name for o in model.graph.output], load("output"))))


def difference(want, got, tolerance):
    """How an output differs in shape, type or values, in words; None if it does not."""
    if oracle.form_differs(want, got):
        return "want %s %s, got %s %s" % (want.dtype, want.shape, got.dtype, got.shape)
    w, g = want.astype(np.float64), got.astype(np.float64).reshape(want.shape)
    bad = ~np.isclose(g, w, rtol=tolerance, atol=tolerance / 10, equal_nan=True)
    if not bad.any():
        return None
    return "%d of %d values, such as %r in place of %r" % (bad.sum(), bad.size, float(g[bad][0]), float(w[bad][0]))


def judge(test, runner, tolerance):
    """What comes of a test, and why."""
    answer = runner.run(test.model.SerializeToString(), test.fed)
    # What is fed may be refused as well, such as a float64 that is no float32.
    if answer.status == "refused" or answer.stage == "inputs":
        return REFUSED, answer.obstacles[0][1] if answer.obstacles else answer.message
    if answer.status != "ok":
        return PANIC, answer.message
    for name, want in test.expected.items():
        if name not in answer.outputs:
            return WRONG, "there is no output %s" % name
        what = difference(want, answer.outputs[name], tolerance)
        if what:
            return WRONG, "%s: %s" % (name, what)
    return RIGHT, ""


def read(path):
    """The lines of a table, without its head."""
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.reader(f, "excel-tab"))[1:]


def kind_of(message):
    """A message without the names and numbers in it, by which refusals are counted."""
    return re.sub(r'"[^"]*"|[-+]?\d[\d.e+-]*', "_", message.split("\n")[0])[:110]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("-v", "--verbose", action="store_true", help="count refusals by kind of message, with an example")
    p.add_argument("--update", action="store_true", help="list tests that are right now, too")
    p.add_argument("--only", metavar="TEXT", help="only tests whose names hold it, each with what came of it")
    p.add_argument("--runner", default=os.path.join(HERE, "..", "..", "build", "fuzz-import", "runner"))
    a = p.parse_args()
    warnings.filterwarnings("ignore")
    np.seterr(all="ignore")
    known = {tuple(line[:3]): line[3] for line in read(KNOWN_FILE)}
    listed = {tuple(line) for line in read(RIGHT_FILE)}
    found, errors, refusals, start = {}, [], collections.defaultdict(list), time.monotonic()
    runner = Runner(a.runner)
    for tests in (node_tests, pytorch_tests):
        for t in tests():
            if a.only and a.only not in t.key[1]:
                continue
            wrong = known.get(t.key) == WRONG
            tolerance = float(known[t.key]) if t.key in known and not wrong else TOLERANCE
            outcome, why = judge(t, runner, tolerance)
            if outcome == WRONG and wrong:
                outcome = KNOWN
            found[t.key] = outcome, why
            if a.only:
                print(*t.key, outcome, why)
            if outcome in (WRONG, PANIC):
                errors.append("%s: %s: %s" % (" ".join(t.key), outcome, why))
            elif outcome != KNOWN and wrong:
                errors.append("%s: %s, which suite_known.tsv has as wrong: take it out there" % (" ".join(t.key), outcome))
            elif outcome != RIGHT and t.key in listed:
                errors.append("%s: %s, which was right: %s" % (" ".join(t.key), outcome, why))
            elif outcome == REFUSED:
                refusals[kind_of(why)].append(t.key)
            elif outcome == RIGHT and tolerance > TOLERANCE and judge(t, runner, TOLERANCE)[0] == RIGHT:
                errors.append("%s: right without the tolerance of suite_known.tsv: take it out there" % " ".join(t.key))
    runner.close()
    if not a.only:
        errors += ["%s: listed, but there is no such test" % " ".join(k) for k in sorted((listed | set(known)) - set(found))]
    if a.verbose:
        for message, keys in sorted(refusals.items(), key=lambda item: -len(item[1])):
            print("%6d  %s  (%s)" % (len(keys), message, " ".join(keys[0])))
    for kind in ("node", "pytorch"):
        for inputs in ("one", "all"):
            some = collections.Counter(outcome for k, (outcome, _) in found.items() if (k[0], k[2]) == (kind, inputs))
            print("%-8s %-4s %5d right, %5d refused, %3d known to be wrong, %3d wrong, %3d panics" % (
                kind, inputs, *(some[o] for o in (RIGHT, REFUSED, KNOWN, WRONG, PANIC))))
    new = {k for k, (outcome, _) in found.items() if outcome == RIGHT} - listed
    print("%d tests in %.0f s; %d right ones are not listed%s" % (
        len(found), time.monotonic() - start, len(new), ", now they are" if a.update and new else ""))
    if a.update and new:
        with open(RIGHT_FILE, "w", encoding="utf-8", newline="") as f:
            table = csv.writer(f, "excel-tab", lineterminator="\n")
            table.writerow(["set", "test", "inputs"])
            table.writerows(sorted(listed | new))
    for e in errors:
        print("ERROR", e[:600])
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
