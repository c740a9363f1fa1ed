"""Networks of OpenVINO's BinaryConvolution, with random weights.

The CPU plugin compiles it with scale, shift, a sum and the next signs in one kernel, if
every sign (FakeQuantize) has five constants of its own: outputs 0 and 1, and thresholds
that lie twice in memory. A padded tap has the value pad_value, and the first weight of a
byte is its lowest bit.
"""

import numpy as np
import openvino as ov
from openvino import opset1 as op


class Builder:
    """A chain of layers on an NCHW image; c is the channels of the last one."""

    def __init__(self, size, channels, seed=5):
        self.rng = np.random.default_rng(seed)
        self.input = self.x = op.parameter([1, channels, size, size], np.float32)
        self.c = channels
        self.kept = []  # tensors of raw bytes do not own them
        self.signs = []  # thresholds and weights of the binary layers, for reference

    def per_channel(self, values):
        return op.constant(np.asarray(values).reshape(1, -1, 1, 1).astype(np.float32))

    def sign(self, spread):
        thresholds = np.round(self.rng.normal(0, spread, self.c)) + 0.5
        self.signs.append([thresholds])
        low, high = self.per_channel(thresholds), self.per_channel(thresholds.copy())
        zeros, ones = self.per_channel(np.zeros(self.c)), self.per_channel(np.ones(self.c))
        self.x = op.fake_quantize(self.x, low, high, zeros, ones, 2)
        return self

    def binary(self, out, size, stride=1, pad=0):
        weights = self.rng.integers(0, 2, (out, self.c, size, size), dtype=np.uint8)
        packed = np.packbits(weights.reshape(-1), bitorder="little")
        self.kept.append(packed)
        self.signs[-1].append(2.0 * weights - 1)
        bits = ov.op.Constant(ov.Tensor(packed, ov.Shape(list(weights.shape)), ov.Type.u1))
        self.x = op.binary_convolution(self.x, bits, [stride] * 2, [pad] * 2, [pad] * 2, [1, 1], "xnor-popcount", 1.0)
        self.c = out
        return self

    def conv(self, out, size, stride=1, pad=0):
        weights = self.rng.normal(0, (2 / (self.c * size * size)) ** 0.5, (out, self.c, size, size)).astype(np.float32)
        self.x = op.convolution(self.x, op.constant(weights), [stride] * 2, [pad] * 2, [pad] * 2, [1, 1])
        self.c = out
        return self

    def norm(self):
        self.scale, self.shift = self.rng.uniform(0.025, 0.075, self.c), self.rng.normal(0, 1, self.c)
        self.x = op.add(op.multiply(self.x, self.per_channel(self.scale)), self.per_channel(self.shift))
        return self

    def model(self, bytes_in):
        prepared = ov.preprocess.PrePostProcessor(ov.Model([self.x], [self.input], "net"))
        tensor = prepared.input().tensor().set_layout(ov.Layout("NHWC"))
        if bytes_in:
            tensor.set_element_type(ov.Type.u8)
        prepared.input().model().set_layout(ov.Layout("NCHW"))
        if not bytes_in:
            prepared.output().model().set_layout(ov.Layout("NCHW"))
            prepared.output().tensor().set_layout(ov.Layout("NHWC"))
        return prepared.build()


def layers(size, inputs, outputs, count):
    """So many 3x3 convolutions in a row, between which only bits are passed on."""
    b = Builder(size, inputs)
    for i in range(count):
        b.sign(12 if i else 0).binary(inputs if i % 2 else outputs, 3, 1, 1)
    return b.norm()


def bireal18():
    b = Builder(224, 3).conv(64, 7, 2, 3).norm()
    b.x = op.max_pool(b.x, [2, 2], [1, 1], [1, 1], [3, 3], "floor")
    for out in (64, 128, 256, 512):
        for _ in range(4):
            shortcut, channels, stride = b.x, b.c, 1 if out == b.c else 2
            b.sign(0.5).binary(out, 3, stride, 1).norm()
            y = b.x
            if stride == 2:
                b.x, b.c = op.avg_pool(shortcut, [2, 2], [0, 0], [0, 0], [2, 2], True), channels
                shortcut = b.conv(out, 1).norm().x
            b.x, b.c = op.add(y, shortcut), out
    b.x = op.avg_pool(b.x, [1, 1], [0, 0], [0, 0], [7, 7], True)
    return b.conv(1000, 1).norm()


def compiled(model):
    """A function that computes the model on one thread, and one for the last output."""
    exe = ov.Core().compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = exe.create_infer_request()
    shape, rng = list(exe.inputs[0].shape), np.random.default_rng(0)
    if exe.inputs[0].element_type == ov.Type.u8:
        x = rng.integers(0, 256, shape, dtype=np.uint8)
    else:
        x = rng.standard_normal(shape).astype(np.float32)
    request.set_input_tensor(ov.Tensor(x))
    return request.infer, lambda: (x, request.get_output_tensor().data.copy())


def check():
    """Compares convolutions in a row with NumPy, which computes them exactly."""
    for count in (1, 3):
        b = layers(9, 64, 128, count)
        run, output = compiled(b.model(False))
        run()
        x, got = output()
        x = x[0]
        for thresholds, weights in b.signs:
            padded = np.pad(np.where(x > thresholds, 1.0, -1.0), ((1, 1), (1, 1), (0, 0)), constant_values=1)
            h, w = x.shape[:2]
            x = sum(padded[ky:ky + h, kx:kx + w] @ weights[:, :, ky, kx].T for ky in range(3) for kx in range(3))
        want = x * b.scale.astype(np.float32) + b.shift.astype(np.float32)
        worst = np.abs(got[0] - want).max() / np.abs(want).max()
        if worst > 1e-6:
            raise RuntimeError(f"OpenVINO: {count} layers differ from NumPy by {worst:.2g} of the largest output")
