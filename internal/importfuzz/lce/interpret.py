"""LCE's interpreter as a program of its own, so that a crash of it ends no more than that.

    python interpret.py WRAPPER

reads pickled (model, inputs) with their length before, and answers with pickled
("ok", outputs, kernels) or ("failed", message, "").
"""

import importlib.util
import os
import pickle
import struct
import sys

import numpy as np


def load(path):
    """The interpreter's library in its wheel, without TensorFlow, which its package imports."""
    spec = importlib.util.spec_from_file_location("interpreter_wrapper_lite", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(module, model, inputs):
    """The outputs of a model, by the kernels that take it: some cases only the reference kernels do."""
    message = ""
    inputs = [x.view(getattr(np, x.dtype.name)) for x in inputs]  # it knows types by their object
    for reference in (False, True):
        try:
            i = module.LiteInterpreter(model, 1, reference, False, False)
            outputs = [y.copy() for y in i.predict(inputs)]
            return "ok", outputs, "reference" if reference else "optimised"
        except RuntimeError as e:
            message = message or str(e)
    return "failed", message, ""


def main():
    module = load(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints is no answer
    while head := sys.stdin.buffer.read(4):
        model, inputs = pickle.loads(sys.stdin.buffer.read(struct.unpack("<I", head)[0]))
        data = pickle.dumps(run(module, model, inputs), 5)
        answers.write(struct.pack("<I", len(data)) + data)
        answers.flush()


if __name__ == "__main__":
    main()
