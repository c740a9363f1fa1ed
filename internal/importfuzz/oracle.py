"""Judges what the runner gives for a graph beside what ONNX Runtime gives."""

import re

import numpy as np
import onnx

import ieee
import noise
from qonnx import written_out

# What becomes of a graph. Left out are graphs that ONNX Runtime does not run, and those
# that differ where a value is out of range on the way.
EQUAL, REFUSED, NOT_RUN, OUT_OF_RANGE, ROUNDING, FAULT = "equal", "refused", "not run", "out of range", "rounding", "fault"

TOLERANCE = 2e-6  # of a value and of the largest value of its tensor, where float32 rounds
ROUGH = 2e-5  # the same where there is onnx.reference alone
COMPLETE = 25  # an opset of which ONNX Runtime has all operators that are drawn
LACKS = "NOT_IMPLEMENTED"  # what ONNX Runtime says of an operator that it does not have
WIDE = 2.0**-20  # of a value that has all the bits of a float32

UNFUSED = "unfused true"  # a check whose network may give another sign of what is no number

# The types that outputs have: ONNX's, and that of the network's arrays for it.
TYPES = {"bool": "uint8", "float16": "float32", "bfloat16": "float32", "float64": "float32"}


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
    bits of a float32, such as {0.1, 0.2}, a network has them as one factor and one summand,
    which may round: this lets pass 16 units in the last place of each value."""
    e, g = e.astype(np.float64), g.astype(np.float64).reshape(e.shape)
    if not wide:
        return bool(np.any(e != g))  # of no numbers, too
    return not np.all(np.abs(e - g) <= WIDE * np.abs(e))


def close(e, g, tolerance=TOLERANCE):
    """Values that differ by no more than roundings of a few operators. It lets pass what
    is a fault of less than the tolerance of the largest value of the output."""
    e, g = e.astype(np.float64), g.astype(np.float64).reshape(e.shape)
    if e.size == 0:
        return True
    return bool(np.all(np.abs(e - g) <= tolerance * (np.abs(e) + np.abs(e).max()) + 1e-36))


def within(e, g, low, high):
    """Values that the graph might give if its operators rounded otherwise: see noise. It
    lets pass, of each value by itself, what noise makes of it, and as much again."""
    g = g.astype(np.float64).reshape(e.shape)
    room = (high - low) + TOLERANCE * np.maximum(np.abs(low), np.abs(high)).max(initial=0) + 1e-36
    return bool(np.all((g >= low - room) & (g <= high + room)))


def out_of_range(model, inputs, values):
    """The images of which a value on the way is infinite or no number, so that another order
    of computing may give another number; or of which an operator that computes takes or
    gives a number so small or, for squares, so large that float32 underflows or overflows
    within it. A tensor whose first dimension is not the batch counts for all images."""
    images = next(iter(inputs.values())).shape[0]
    bad = np.zeros(images, bool)

    def look(name, wrong):
        v = values.get(name, inputs.get(name))
        if v is None or v.dtype != np.float32:
            return
        found = wrong(np.abs(v))
        if v.ndim and v.shape[0] == images:
            bad[:] |= found.reshape(images, -1).any(1)
        else:
            bad[:] |= found.any()

    for node in model.graph.node:
        ends = [*node.input, *node.output]
        for name in ends:
            look(name, lambda v: ~np.isfinite(v))
            if node.op_type in noise.SUMS | noise.RELATIVE:
                look(name, lambda v: (v > 0) & (v < 1e-37))
            if node.op_type in noise.LIKE_INPUT | {"Exp", "Softmax"}:  # of which e^x is 0 below 10^-34
                look(name, lambda v: (v > 0) & (v < 1e-33))
        for name in node.input:
            if node.op_type in noise.FRONT | noise.SQUARES:
                look(name, lambda v: (v > 1e18) | (v > 0) & (v < 1e-18))
            if node.op_type == "LRN":  # ONNX Runtime adds squares and takes them away again as it moves on
                look(name, lambda v: v > 64)
            if node.op_type.endswith("Normalization"):  # it subtracts a mean behind the scale
                look(name, lambda v: v > 1e3)
            if node.op_type == "MeanVarianceNormalization":  # whose epsilon each engine adds elsewhere
                look(name, lambda v: (v > 0) & (v < 1e-4))
    return bad


def has_nan(model, inputs):
    """Whether a value on the way is no number."""
    values = [*inputs.values(), *noise.every(model, inputs).values()]
    return any(v.dtype == np.float32 and np.isnan(v).any() for v in values)


def noise_of(report):
    """The noise of sums: that of roundings, or of weights that were taken as the ±α that
    they nearly are, which the report tells."""
    taken = [float(d) for d in re.findall(r"nearly binary: .*, by ([-+.e0-9]+), taken true", "\n".join(report))]
    return max([noise.NOISE] + [2 * d for d in taken])


def of_images(a, images, some):
    """A without the images that some leaves out, where it has images."""
    return a[some] if a.ndim and a.shape[0] == images else a


def straight(model, report, values):
    """The graph with what remains in place of sums of which the report says that parts cancel,
    as x + (f(x) - x); None if there is none of which that is so. What remains is off by
    no more than the roundings of the sum."""
    names = [n.strip() for line in report if line.startswith("cancelled: ") for n in line[len("cancelled: "):].split(",")]
    makers = {o: n for n in model.graph.node for o in n.output}
    new = onnx.ModelProto()
    new.CopyFrom(model)
    found = False
    for at, node in enumerate(model.graph.node):
        if (node.name or "%s_%d" % (node.op_type, at)) not in names or node.op_type not in ("Add", "Sub"):
            continue
        for split in ((1, 0), (0, 1), (1, 1)):
            terms = []
            for name, minus, deep in zip(node.input, (False, node.op_type == "Sub"), split):
                inner = makers.get(name)
                if deep and inner is not None and inner.op_type in ("Add", "Sub"):
                    terms += [(inner.input[0], minus), (inner.input[1], minus != (inner.op_type == "Sub"))]
                else:
                    terms.append((name, minus))
            left = [t for t in terms if (t[0], not t[1]) not in terms]
            if len(left) != 1 or left[0][1] or any(t[0] not in values for t in terms):
                continue
            rest, total = values[left[0][0]].astype(np.float64), values[node.output[0]].astype(np.float64)
            room = 2.0**-22 * sum(np.abs(values[t[0]].astype(np.float64)) for t in terms)
            if rest.shape == total.shape and np.all(np.abs(rest - total) <= room):
                new.graph.node[at].CopyFrom(onnx.helper.make_node("Identity", [left[0][0]], [node.output[0]], name=node.name))
                found = True
                break
    return new if found else None


def strange(model, inputs, values, answer, pairs):
    """The outputs that are not what IEEE 754 has of infinities, NaNs and the like; None if the
    numeric contract leaves all images open."""
    some = ~ieee.left_out(model, inputs, values)
    if answer.report or not some.any():  # what the report tells was changed may lose what is infinite
        return None
    cut = {n: [of_images(a, some.size, some) for a in pair] for n, pair in pairs.items()}
    different = [n for n, (e, g) in cut.items() if not ieee.same(e, g, ())]
    for count in (noise.RUNS, noise.MANY):
        if different:
            runs = noise.runs_of(model, inputs, values, noise.NOISE, count)
            different = [n for n in different if not ieee.same(*cut[n], [of_images(r[list(pairs).index(n)], some.size, some) for r in runs])]
    return different


def judge(model, inputs, runner, exact, wide=(), checks=(), special=False, answer=None):
    """Runs a model by both and says what came of it; answer is what bcnn gave before, for a
    graph without the parts that cancel."""
    cancelled = answer is not None
    data = model.SerializeToString()
    model = written_out(model)
    names, lacks, why = [o.name for o in model.graph.output], False, ""
    for theirs in (model, earlier(model)):
        try:
            expected = dict(zip(names, noise.session(theirs).run(names, inputs)))
            model = theirs
            break
        except Exception as e:  # the library has classes of errors of its own
            why = why or str(e)
            if LACKS not in why:
                return Verdict(NOT_RUN, why)
    else:
        expected, lacks = reference(model, inputs), True
        if expected is None:
            return Verdict(NOT_RUN, why)
    answer = answer or runner.run(data, inputs, checks)

    def verdict(kind, text="", cause=""):
        return Verdict(kind, text, cause, expected, answer)

    if answer.status == "refused":
        return verdict(REFUSED)
    if answer.status != "ok":
        return verdict(FAULT, answer.message, answer.status)
    if answer.differences and not (all(UNFUSED in d for d in answer.differences) and has_nan(model, inputs)):
        return verdict(FAULT, "\n".join(answer.differences), "check")
    for name in names:
        if name not in answer.outputs:
            return verdict(FAULT, "no output %s" % name, "shape")
        if form_differs(expected[name], answer.outputs[name]):
            return verdict(FAULT, "%s: %s" % (name, described(expected[name], answer.outputs[name])), "shape")

    def differ(pairs):
        return [n for n, (e, g) in pairs.items() if (exact_difference(e, g, n in wide) if exact else not close(e, g))]

    pairs = {n: (expected[n], answer.outputs[n].reshape(expected[n].shape)) for n in names}
    if not special and not differ(pairs):
        return verdict(EQUAL)
    if lacks:  # there is no noise to put in
        different = [n for n, (e, g) in pairs.items() if not close(e, g, ROUGH)]
        text = "\n".join("%s, of onnx.reference: %s" % (n, described(*pairs[n])) for n in different)
        return verdict(FAULT, text, "wrong") if different else verdict(ROUNDING)
    values = noise.every(model, inputs)
    if special:
        different = strange(model, inputs, values, answer, pairs)
        if different is None:
            return verdict(OUT_OF_RANGE)
        text = "\n".join("%s: %s" % (n, described(*pairs[n])) for n in different)
        return verdict(FAULT, text, "wrong") if different else verdict(EQUAL)
    some = ~out_of_range(model, inputs, values)
    pairs = {n: (of_images(e, some.size, some), of_images(g, some.size, some)) for n, (e, g) in pairs.items()}
    different = differ(pairs) if some.any() else []
    if not different:
        return verdict(OUT_OF_RANGE)
    text = "\n".join("%s: %s" % (n, described(*pairs[n])) for n in different)
    if not cancelled:
        other = straight(model, answer.report, {**inputs, **values, **noise.constants_of(model)})
        if other is not None:
            again = judge(other, inputs, runner, exact, wide, answer=answer)
            if again.kind != FAULT:
                return verdict(ROUNDING)
    if exact:
        return verdict(FAULT, text, "wrong")
    for runs in (noise.RUNS, noise.MANY):
        try:
            hulls = noise.hull(model, inputs, values, noise_of(answer.report), runs)
        except Exception as e:
            return verdict(FAULT, "%s\nnoise could not be put in: %s" % (text, e), "wrong")
        if all(within(*pairs[n], *(of_images(h, some.size, some) for h in hulls[names.index(n)])) for n in different):
            return verdict(ROUNDING)
    return verdict(FAULT, text, "wrong")


def earlier(model):
    """The model at an opset of which ONNX Runtime has all operators. Attributes that came later
    are errors there."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for o in made.opset_import:
        if o.domain == "":
            o.version = min(o.version, COMPLETE)
    return made


def limited(model):
    """The model with limits in front of its quantisers, of which onnx.reference makes int32 before it
    saturates: by the standard and by ONNX Runtime large numbers have the largest integer, not the least."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    constants = {n.output[0]: onnx.numpy_helper.to_array(a.t) for n in model.graph.node if n.op_type == "Constant" for a in n.attribute if a.name == "value"}
    scales = {n: np.abs(v) for n, v in (constants | noise.constants_of(model)).items() if v.dtype == np.float32 and v.size}
    del made.graph.node[:]
    for k, node in enumerate(model.graph.node):
        scale = scales.get(node.input[1]) if node.op_type == "QuantizeLinear" and len(node.input) > 1 else None
        node = made.graph.node.add(**{f.name: v for f, v in node.ListFields()})
        if scale is not None and 0 < scale.max() < scale.min() * 1000 and node.domain == "":
            names = ["limit%d_%s" % (k, end) for end in ("low", "high", "x")]
            bound = np.float32(scale.max() * 2.0**18)
            made.graph.initializer.extend(onnx.numpy_helper.from_array(v, n) for v, n in zip((-bound, bound), names))
            made.graph.node.insert(len(made.graph.node) - 1, onnx.helper.make_node("Clip", [node.input[0]] + names[:2], names[2:]))
            made.graph.node[-1].input[0] = names[2]
    return made


def reference(model, inputs):
    """What onnx.reference gives: another implementation, with faults of its own. None if it
    cannot run the model."""
    from onnx.reference import ReferenceEvaluator
    try:
        with np.errstate(all="ignore"):
            values = ReferenceEvaluator(limited(model)).run(None, inputs)
        return {o.name: np.asarray(v) for o, v in zip(model.graph.output, values, strict=True)}
    except Exception:
        return None


def other_opinion(model, inputs, expected):
    """What onnx.reference says of a fault."""
    values = reference(written_out(model), inputs)
    if values is None:
        return "onnx.reference cannot run it"
    for name, v in values.items():
        e = expected[name]
        if v.shape != e.shape or not close(e, v):
            return "onnx.reference does not agree with onnxruntime"
    return "onnx.reference agrees with onnxruntime"
