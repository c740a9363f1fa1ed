"""Judges what the runner gives for a graph beside what ONNX Runtime gives."""

import re

import numpy as np
import onnx

import noise

# What becomes of a graph. Left out are graphs that ONNX Runtime does not run, and those
# that differ where a value is out of range on the way.
EQUAL, REFUSED, NOT_RUN, OUT_OF_RANGE, ROUNDING, FAULT = "equal", "refused", "not run", "out of range", "rounding", "fault"

TOLERANCE = 2e-6  # of a value and of the largest value of its tensor, where float32 rounds
WIDE = 2.0**-21  # of the largest value, where values have all the bits of a float32

# The types that outputs have: ONNX's, and that of the network's arrays for it.
TYPES = {"bool": "uint8", "float16": "float32", "float64": "float32"}


class Verdict:
    """kind is one of the above; cause tells faults apart: wrong, shape, failed, died, check."""

    def __init__(self, kind, text="", cause="", expected=None, answer=None):
        self.kind, self.text, self.cause, self.expected, self.answer = kind, text, cause, expected, answer


def described(e, g):
    """A line on an output that differs."""
    at = np.argmax(np.abs(np.asarray(e, np.float64) - np.asarray(g, np.float64))) if e.shape == g.shape else 0
    first = (at // 8) * 8
    return "onnxruntime %s %s %s; bcnn %s %s %s" % (
        e.shape, e.dtype, e.ravel()[first:first + 8].tolist(), g.shape, g.dtype, g.ravel()[first:first + 8].tolist())


def form_differs(e, g):
    """Shape or type is another one. Vectors of all images in one row may be one of each image."""
    joined = e.ndim == 1 and g.ndim == 2 and e.size == g.size
    return e.shape != g.shape and not joined or TYPES.get(str(e.dtype), str(e.dtype)) != str(g.dtype)


def exact_difference(e, g, wide):
    """Where no operator rounds every bit counts, but for the sign of 0. Where values have all
    bits of a float32, such as {0.1, 0.2}, a network has them as one factor and one summand."""
    e, g = e.astype(np.float64), g.astype(np.float64).reshape(e.shape)
    if not wide:
        return bool(np.any(e != g))
    return bool(np.any(np.abs(e - g) > WIDE * np.abs(e).max(initial=0)))


def close(e, g):
    """Values that differ by no more than roundings of a few operators. It lets pass what
    is a fault of less than TOLERANCE of the largest value of the output."""
    e, g = e.astype(np.float64), g.astype(np.float64).reshape(e.shape)
    if e.size == 0:
        return True
    return bool(np.all(np.abs(e - g) <= TOLERANCE * (np.abs(e) + np.abs(e).max()) + 1e-36))


def within(e, g, low, high):
    """Values that the graph might give if its operators rounded otherwise: see noise. It
    lets pass, of each value by itself, what noise makes of it, and as much again."""
    g = g.astype(np.float64).reshape(e.shape)
    room = (high - low) + TOLERANCE * np.maximum(np.abs(low), np.abs(high)).max(initial=0) + 1e-36
    return bool(np.all((g >= low - room) & (g <= high + room)))


def out_of_range(model, inputs, values):
    """A value on the way is infinite or no number, so that another order of computing may
    give another number; or an operator that computes takes or gives a number so small or,
    for squares, so large that float32 underflows or overflows within it."""
    def floats(name):
        v = values.get(name, inputs.get(name))
        return np.abs(v.ravel()) if v is not None and v.dtype == np.float32 else np.zeros(0, np.float32)

    for node in model.graph.node:
        if not all(np.isfinite(floats(n)).all() for n in [*node.input, *node.output]):
            return True
        if node.op_type in noise.SUMS | noise.RELATIVE:
            small = np.concatenate([floats(n) for n in [*node.input, *node.output]])
            if np.any((small > 0) & (small < 1e-37)):
                return True
        if node.op_type in noise.FRONT | noise.SQUARES and any(np.any(floats(n) > 1e18) for n in node.input):
            return True
    return False


def noise_of(report):
    """The noise of sums: that of roundings, or of weights that were taken as the ±α that
    they nearly are, which the report tells."""
    taken = [float(d) for d in re.findall(r"nearly binary: .*, by ([-+.e0-9]+), taken true", "\n".join(report))]
    return max([noise.NOISE] + [2 * d for d in taken])


def judge(model, inputs, runner, exact, wide=(), checks=(), data=None):
    """Runs a model by both and says what came of it."""
    data = data or model.SerializeToString()
    try:
        session = noise.session(data)
        names = [o.name for o in session.get_outputs()]
        expected = dict(zip(names, session.run(names, inputs)))
    except Exception as e:  # the library has classes of errors of its own
        return Verdict(NOT_RUN, str(e))
    if any(np.issubdtype(e.dtype, np.floating) and not np.isfinite(e).all() for e in expected.values()):
        return Verdict(OUT_OF_RANGE)
    answer = runner.run(data, inputs, checks)

    def verdict(kind, text="", cause=""):
        return Verdict(kind, text, cause, expected, answer)

    if answer.status == "refused":
        return verdict(REFUSED)
    if answer.status != "ok":
        return verdict(FAULT, answer.message, answer.status)
    if answer.differences:
        return verdict(FAULT, "\n".join(answer.differences), "check")
    different = []
    for name in names:
        e, g = expected[name], answer.outputs.get(name)
        if g is None:
            return verdict(FAULT, "no output %s" % name, "shape")
        if form_differs(e, g):
            return verdict(FAULT, "%s: %s" % (name, described(e, g)), "shape")
        if exact_difference(e, g, name in wide) if exact else not close(e, g):
            different.append(name)
    if not different:
        return verdict(EQUAL)
    values = noise.every(model, inputs)
    if out_of_range(model, inputs, values):
        return verdict(OUT_OF_RANGE)
    text = "\n".join("%s: %s" % (n, described(expected[n], answer.outputs[n])) for n in different)
    if exact:
        return verdict(FAULT, text, "wrong")
    try:
        hulls = noise.hull(model, inputs, values, noise_of(answer.report))
    except Exception as e:
        return verdict(FAULT, text + "\nnoise could not be put in: %s" % e, "wrong")
    if all(within(expected[n], answer.outputs[n], *hulls[names.index(n)]) for n in different):
        return verdict(ROUNDING)
    return verdict(FAULT, text, "wrong")


def other_opinion(model, inputs, expected):
    """What onnx.reference says of it: another implementation, with faults of its own."""
    from onnx.reference import ReferenceEvaluator
    try:
        with np.errstate(all="ignore"):
            values = ReferenceEvaluator(model).run(None, inputs)
    except Exception as e:
        return "onnx.reference cannot: %s" % str(e).split("\n")[0][:200]
    for o, v in zip(model.graph.output, values):
        e = expected[o.name]
        if np.shape(v) != e.shape or not close(e, np.asarray(v)):
            return "onnx.reference does not agree with onnxruntime"
    return "onnx.reference agrees with onnxruntime"
