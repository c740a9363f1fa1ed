"""Folders of faults: the smallest graph, its inputs, what should come out, and a note."""

import json
import os
import re

import numpy as np
import onnx

import oracle


def keep(folder, name, model, inputs, expected, note, how):
    """Writes a folder; how is what replay needs: exact, wide, checks, special."""
    path = os.path.join(folder, name)
    os.makedirs(path, exist_ok=True)
    onnx.save(model, os.path.join(path, "model.onnx"))
    np.savez(os.path.join(path, "input.npz"), **inputs)
    np.savez(os.path.join(path, "expected.npz"), **(expected or {}))
    with open(os.path.join(path, "note.txt"), "w") as f:
        f.write(note.rstrip() + "\n\n" + onnx.printer.to_text(model))
    with open(os.path.join(path, "how.json"), "w") as f:
        json.dump(how, f)
    return path


def name_of(signature, number):
    words = re.sub("[^A-Za-z0-9]+", "_", signature).strip("_").lower()
    return "%s-%d" % (words[:80], number)


def replay(folder, runner):
    """Runs all kept folders below a folder, or that folder; yields their names and verdicts."""
    paths = [folder] if os.path.exists(os.path.join(folder, "model.onnx")) else [
        os.path.join(folder, n) for n in sorted(os.listdir(folder)) if os.path.exists(os.path.join(folder, n, "model.onnx"))]
    for path in paths:
        how = {"exact": False, "wide": [], "checks": [], "special": False}
        if os.path.exists(os.path.join(path, "how.json")):
            with open(os.path.join(path, "how.json")) as f:
                how.update(json.load(f))
        model = onnx.load(os.path.join(path, "model.onnx"))
        with np.load(os.path.join(path, "input.npz")) as arrays:
            inputs = {k: arrays[k] for k in arrays.files}
        yield os.path.basename(path), oracle.judge(model, inputs, runner, how["exact"], set(how["wide"]), how["checks"], how["special"])
