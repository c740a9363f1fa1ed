"""Judges graphs whose inputs have infinities, NaNs and the like: they must come out where IEEE 754
has them. What the numeric contract leaves open is left out, image by image."""

import numpy as np

import noise

# Operators that give numbers for NaN: thresholds.
NO_NAN = {"Sign", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "Cast",
          "QuantizeLinear", "ThresholdedRelu", "Shrink"}
# What becomes one factor and one summand with what stands around it: it may overflow elsewhere.
FOLDED = {"Add", "Sub", "Mul", "Div", "Neg", "LeakyRelu", "PRelu", "BatchNormalization"}
MOVES = {"Reshape", "Transpose", "Slice", "Gather", "Split", "Concat", "Identity", "Squeeze", "Unsqueeze", "Flatten"}
TINY = 2.0**-125  # below which results have fewer bits
CLOSE = 2.0**-19  # of a value


class Looker:
    """Says which images are left out."""

    def __init__(self, model, inputs, values):
        self.images = next(iter(inputs.values())).shape[0]
        self.values = {**noise.constants_of(model), **values, **inputs}
        self.makers = {o: n for n in model.graph.node for o in n.output}
        self.inputs = set(inputs)
        self.out = np.zeros(self.images, bool)
        for n in model.graph.node:
            self.node(n)

    def mark(self, wrong):
        """Leaves out the images of which something is so."""
        if wrong.ndim and wrong.shape[0] == self.images:
            self.out |= wrong.reshape(self.images, -1).any(1)
        else:
            self.out |= wrong.any()

    def constant(self, name):
        maker = self.makers.get(name)
        return name not in self.inputs and (maker is None or maker.op_type in ("Constant", "ConstantOfShape"))

    def signed(self, name):
        """Whether a network keeps the sign of a zero: of an input, and of what only moves it."""
        while name in self.makers and self.makers[name].op_type in MOVES:
            name = self.makers[name].input[0]
        return name in self.inputs or self.constant(name)

    def node(self, n):
        op = n.op_type
        given = [self.values[i] for i in n.input if i in self.values and self.values[i].dtype == np.float32]
        made = self.values.get(n.output[0])
        if op in NO_NAN:
            for v in given:
                self.mark(np.isnan(v))
        if op == "Clip" and len(given) < 3:  # of which ONNX Runtime makes the largest number
            self.mark(np.isinf(given[0]))
        if op in ("Reciprocal", "Div", "Pow"):
            below = n.input[1 if op == "Div" else 0]
            if not self.signed(below):
                self.mark(self.values[below] == 0)
        if op == "Pow" and float(self.values[n.input[1]].reshape(-1)[0]) % 1:  # a product of roots
            self.mark(np.isneginf(given[0]) | (given[0] == 0))
        if made is None or made.dtype != np.float32 or op not in noise.SUMS | noise.RELATIVE:
            return
        self.mark((made != 0) & (np.abs(made) < TINY))
        if op in noise.LIKE_INPUT:
            for v in given:
                self.mark((v != 0) & (np.abs(v) < 1e-33))
        if op in FOLDED and not (op == "Div" and not self.constant(n.input[1])):
            finite = np.ones(made.shape, bool)
            for v in given:
                finite = finite & np.isfinite(v) if op != "PRelu" or v.shape == made.shape else finite
            self.mark(finite & ~np.isfinite(made))


def left_out(model, inputs, values):
    return Looker(model, inputs, values).out


def same(e, g, runs):
    """Whether values agree: NaN and infinities in place, others but for what noise makes of them.
    Where noise makes some runs infinite or no number, anything may come out."""
    e, g = np.asarray(e, np.float64), np.asarray(g, np.float64).reshape(np.shape(e))
    runs = [np.asarray(r, np.float64) for r in runs] or [e]
    sure = np.all([(np.isnan(r) == np.isnan(e)) & (np.isinf(r) == np.isinf(e)) for r in runs], 0)
    low, high = np.min(runs, 0), np.max(runs, 0)
    room = (high - low) + CLOSE * np.maximum(np.abs(low), np.abs(high)) + 1e-37
    near = np.where(np.isfinite(e), (g >= low - room) & (g <= high + room), (g == e) | np.isnan(g) & np.isnan(e))
    return bool(np.all(near | ~sure))
