"""Compares the importer of OpenVINO with OpenVINO on random graphs; see README.md. Every graph comes
from the seed and its number alone: --only draws one again."""

import argparse
import collections
import os
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy as np
import openvino as ov

from .draw import draw

TOLERANCE = 1e-5  # of the largest value
# Low-precision transformations move zero points.
CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "LP_TRANSFORMS_MODE": "NO", "INFERENCE_NUM_THREADS": 1}


def answer(path, x, file):
    """What OpenVINO computes, in a process of its own, since some graphs end it."""
    child = os.fork()
    if child == 0:
        try:
            np.save(file, ov.Core().compile_model(path, "CPU", CONFIG)([x])[0])
            os._exit(0)
        except RuntimeError as e:
            with open(file, "w") as f:
                f.write(str(e).strip().split("\n")[-1][:100])
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None, "it died"
    if os.waitstatus_to_exitcode(status):
        with open(file) as f:
            return None, f.read()
    return np.load(file), ""


def compare(a, folder, number):
    """What came of a graph, and a text that says more of it."""
    model, x, operators = draw(a.seed, number)
    path = os.path.join(folder, "g.xml")
    ov.save_model(model, path, compress_to_fp16=False)
    # What OpenVINO makes of FakeQuantize and BinaryConvolution is not always what they are defined
    # as: quantisers behind each other, and padding of 0 around outputs 1 and 0 with a dilation. So
    # they are written as operators on numbers.
    plain = os.path.join(folder, "plain.xml")
    ov.save_model(draw(a.seed, number, plain=True)[0], plain, compress_to_fp16=False)
    want, why = answer(plain, x, os.path.join(folder, "want.npy"))
    if want is None:
        return "not run", why, operators
    np.savez(os.path.join(folder, "x.npz"), x=x)
    r = subprocess.run([a.program, "run", "--model", path, "--input", os.path.join(folder, "x.npz"), "--output", os.path.join(folder, "y.npz"), "--device", "cpu"],
                       capture_output=True, text=True)
    if r.returncode:  # 1 is what the command ends with where it says why
        broken = r.returncode != 1 or "internal error" in r.stderr
        return "fault" if broken else "refused", r.stderr.strip().split("(")[-1][:160], operators
    got = np.load(os.path.join(folder, "y.npz"))["y"]
    if got.shape != want.shape:
        return "fault", "shapes %s and %s" % (want.shape, got.shape), operators
    off = np.abs(want - got).max() / max(np.abs(want).max(), 1)
    if not off <= TOLERANCE:
        return "fault", "off by %g, %d of %d values" % (off, (np.abs(want - got) > TOLERANCE).sum(), want.size), operators
    np.savez_compressed(os.path.join(folder, "answer.npz"), in_x=x, out_y=want)
    return "equal", "", operators


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--program", default="build/fuzz-import/bcnn")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--graphs", type=int, default=300)
    p.add_argument("--only", type=int)
    p.add_argument("--keep", default="build/fuzz-import/faults-openvino", help="folder of graphs with faults")
    p.add_argument("--record", help="archive of graphs and answers that is written, of those that are equal")
    a = p.parse_args()
    archive = zipfile.ZipFile(a.record, "w", zipfile.ZIP_DEFLATED) if a.record else None
    kinds, reasons, drawn = collections.Counter(), collections.Counter(), collections.Counter()
    start = time.monotonic()
    numbers = [a.only] if a.only is not None else range(a.graphs)
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            kind, why, operators = compare(a, folder, number)
            kinds[kind] += 1
            drawn.update(operators)
            if kind == "equal" and archive:
                for name, ext in (("g.xml", "xml"), ("g.bin", "bin"), ("answer.npz", "npz")):
                    with open(os.path.join(folder, name), "rb") as f:
                        archive.writestr(zipfile.ZipInfo("%d.%s" % (number, ext)), f.read(), zipfile.ZIP_DEFLATED)
            if kind != "equal":
                reasons[kind + ": " + why] += 1
            if kind == "fault":
                print("FAULT in graph %d: %s: %s" % (number, " ".join(operators), why), flush=True)
                os.makedirs(a.keep, exist_ok=True)
                for name in ("g.xml", "g.bin", "x.npz"):
                    with open(os.path.join(folder, name), "rb") as f, open(os.path.join(a.keep, "%d-%s" % (number, name)), "wb") as to:
                        to.write(f.read())
    if archive:
        archive.close()
    print("%d graphs in %.0f s: %s" % (len(numbers), time.monotonic() - start, dict(kinds)))
    print("drawn: %s" % dict(drawn))
    for why, n in reasons.most_common(20):
        print("%6d  %s" % (n, why))
    nothing = a.only is None and not kinds["equal"]
    if nothing:
        print("FAULT: no graph was compared")
    sys.exit(1 if kinds["fault"] or nothing else 0)


if __name__ == "__main__":
    main()
