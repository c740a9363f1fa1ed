"""Networks of few bits on images of CIFAR, of ImageNet and of digits, as quantisers of PyTorch
export them.

Random weights and statistics: ResNet-20 and ResNet-18 with weights and activations of 4 and 2
bits as PACT and DoReFa quantise them, ResNet-20 with ternary weights, and with torch.sign;
LeNet-5 with ternary weights and activations of 2 bits. Beside each stands the same network in
float, batch normalisation folded and ReLU in the place of quantisers, which ONNX Runtime also
quantises to 8 bits.
"""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import int8_networks
import resnet18_int8


class Graph:
    """Nodes and constants of a network that is being made."""

    def __init__(self, quantised, weights, activations, seed=1):
        self.quantised, self.bits_w, self.bits_a = quantised, weights, activations
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants = [], []

    def add(self, kind, inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"{kind}{len(self.nodes)}", **attributes))
        return name

    def constant(self, value, dtype=np.float32):
        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weights(self, shape, real):
        """Weights of so many bits: odd multiples as DoReFa's, ternary ones or signs."""
        w = self.rng.normal(0, 1, shape)
        if real or not self.quantised:
            return w * (2 / np.prod(shape[1:])) ** 0.5
        if self.bits_w == "sign":
            return np.where(w >= 0, 1.0, -1.0)
        if self.bits_w == "ternary":
            return np.sign(w) * (np.abs(w) > 0.6) * 0.125
        steps = 2 ** self.bits_w - 1
        w = np.tanh(w)
        return 2 * np.round(steps * (w / (2 * np.abs(w).max()) + 0.5)) / steps - 1

    def conv(self, x, inputs, outputs, size, stride=1, real=False, pad=None):
        pad = size // 2 if pad is None else pad
        w = self.weights((outputs, inputs, size, size), real)
        args = [x, self.constant(w)]
        if not self.quantised:
            args.append(self.constant(self.rng.normal(0, 0.1, outputs)))
        return self.add("Conv", args, kernel_shape=[size, size], strides=[stride, stride], pads=[pad] * 4), w

    def norm(self, x, w, scale=1.0):
        """A batch normalisation, which the network in float has in its weights."""
        if not self.quantised:
            return x
        x, w = x, np.asarray(w)
        n = w.shape[0]
        deviation = scale * np.sqrt((w ** 2).reshape(n, -1).sum(1).mean()) * np.ones(n)
        args = [self.rng.uniform(0.5, 1.5, n), self.rng.normal(0, 0.3, n),
                self.rng.normal(0, 0.3, n) * deviation, deviation ** 2 * self.rng.uniform(0.5, 1.5, n)]
        return self.add("BatchNormalization", [x] + [self.constant(a) for a in args], epsilon=1e-5)

    def activation(self, x):
        """Levels from 0 to 1, or signs; ReLU in float."""
        if not self.quantised:
            return self.add("Relu", [x])
        if self.bits_a == "sign":
            return self.add("Sign", [x])
        steps = float(2 ** self.bits_a - 1)
        x = self.add("Clip", [x, self.constant(0), self.constant(1)])
        x = self.add("Round", [self.add("Mul", [x, self.constant(steps)])])
        return self.add("Mul", [x, self.constant(1 / steps)])

    def model(self, name, shape, out):
        graph = helper.make_graph(
            self.nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, *shape])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, out])], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def padded(g, x, channels):
    """The shortcut of ResNet-20: every second pixel, and channels of zeros around them."""
    x = g.add("Slice", [x] + [g.constant(v, np.int64) for v in ([0, 0], [1 << 30] * 2, [2, 3], [2, 2])])
    return g.add("Pad", [x, g.constant([0, channels // 2, 0, 0, 0, channels // 2, 0, 0], np.int64)])


def resnet20(quantised, weights, activations):
    """ResNet-20 for CIFAR: of 16, 32 and 64 channels, a real first layer, padded shortcuts."""
    g = Graph(quantised, weights, activations)
    sign = activations == "sign"
    x, w = g.conv("x", 3, 16, 3, real=True)
    x = g.norm(x, w)
    if not sign or not quantised:
        x = g.activation(x)
    channels = 16
    for out in (16, 32, 64):
        for block in range(3):
            stride = 2 if block == 0 and out > 16 else 1
            shortcut = x if stride == 1 else padded(g, x, channels)
            if sign and quantised:  # each convolution has a shortcut of its own
                y, w = g.conv(g.activation(x), channels, out, 3, stride)
                x = g.add("Clip", [g.add("Add", [g.norm(y, w), shortcut]), g.constant(-1), g.constant(1)])
                y, w = g.conv(g.activation(x), out, out, 3)
                x = g.add("Clip", [g.add("Add", [g.norm(y, w), x]), g.constant(-1), g.constant(1)])
            else:
                y, w = g.conv(x, channels, out, 3, stride)
                y, w = g.conv(g.activation(g.norm(y, w, 0.5)), out, out, 3)
                x = g.activation(g.add("Add", [g.norm(y, w, 0.5), shortcut]))
            channels = out
    x = g.add("Flatten", [g.add("GlobalAveragePool", [x])])
    g.add("Gemm", [x, g.constant(g.rng.normal(0, 0.2, (64, 10))), g.constant(np.zeros(10))])
    g.nodes[-1].output[0] = "y"
    return g.model("resnet20", (3, 32, 32), 10)


def imagenet_resnet18(quantised, weights, activations):
    """ResNet-18 for ImageNet: a real first layer, shortcuts of convolutions of few bits."""
    g = Graph(quantised, weights, activations)
    x, w = g.conv("x", 3, 64, 7, 2, real=True)
    x = g.add("MaxPool", [g.activation(g.norm(x, w))], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for out in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and out > 64 else 1
            shortcut = x
            if stride > 1:
                shortcut, w = g.conv(x, channels, out, 1, stride)
                shortcut = g.norm(shortcut, w, 0.5)
            y, w = g.conv(x, channels, out, 3, stride)
            y, w = g.conv(g.activation(g.norm(y, w, 0.5)), out, out, 3)
            x, channels = g.activation(g.add("Add", [g.norm(y, w, 0.5), shortcut])), out
    x = g.add("Flatten", [g.add("GlobalAveragePool", [x])])
    g.add("Gemm", [x, g.constant(g.rng.normal(0, 0.04, (1000, 512))), g.constant(np.zeros(1000))], transB=1)
    g.nodes[-1].output[0] = "y"
    return g.model("resnet18", (3, 224, 224), 1000)


def lenet(quantised, weights, activations):
    """LeNet-5 as it is common in PyTorch: 20 and 50 channels, 500 units."""
    g = Graph(quantised, weights, activations)
    x, w = g.conv("x", 1, 20, 5, real=True, pad=0)
    x = g.add("MaxPool", [g.norm(x, w)], kernel_shape=[2, 2], strides=[2, 2])
    x, w = g.conv(g.activation(x), 20, 50, 5, pad=0)
    x = g.activation(g.add("MaxPool", [g.norm(x, w, 0.5)], kernel_shape=[2, 2], strides=[2, 2]))
    w = g.weights((500, 800), False)
    x = g.norm(g.add("MatMul", [g.add("Flatten", [x]), g.constant(w.T)]), w, 0.5)
    x = g.activation(x)
    g.add("Gemm", [x, g.constant(g.rng.normal(0, 0.1, (500, 10))), g.constant(np.zeros(10))])
    g.nodes[-1].output[0] = "y"
    return g.model("lenet", (1, 28, 28), 10)


# What makes each network, and its bits of weights and of activations.
NETWORKS = {
    "resnet20-w4a4": (resnet20, 4, 4),
    "resnet20-w2a2": (resnet20, 2, 2),
    "resnet20-ternary-a2": (resnet20, "ternary", 2),
    "resnet20-ternary-a4": (resnet20, "ternary", 4),
    "resnet20-w1a2": (resnet20, "sign", 2),
    "resnet20-w1a4": (resnet20, "sign", 4),
    "resnet20-sign": (resnet20, "sign", "sign"),
    "resnet18-w4a4": (imagenet_resnet18, 4, 4),
    "resnet18-w2a2": (imagenet_resnet18, 2, 2),
    "lenet-ternary": (lenet, "ternary", 2),
}


def float_model(name):
    """The network in float."""
    make, _, _ = NETWORKS[name]
    return make(False, None, None)


def model(folder, name):
    """The path of the network of few bits. The file is made once."""
    make, weights, activations = NETWORKS[name]
    return saved(os.path.join(folder, name + ".onnx"), lambda: make(True, weights, activations))


def saved(path, make):
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        onnx.save(make(), path + ".part")
        os.replace(path + ".part", path)
    return path


def engines(folder, name):
    """What runs the network in float and in int8, one thread each."""
    make, _, _ = NETWORKS[name]
    path = saved(os.path.join(folder, make.__name__ + ".float.onnx"), lambda: float_model(name))
    shape = [d.dim_value for d in onnx.load(path).graph.input[0].type.tensor_type.shape.dim]
    int8 = resnet18_int8.quantized(folder, make.__name__, lambda: float_model(name), shape)
    return {
        "ONNX Runtime float": resnet18_int8.runs(path), "ONNX Runtime int8": resnet18_int8.runs(int8),
        "OpenVINO int8": int8_networks.openvino(int8),
    }


def check(folder, name, outputs):
    """Compares outputs(path, x) with those of ONNX Runtime, and returns by how much of the
    largest output they differ. Other roundings may turn a level, so that most images agree to
    rounding and some do not."""
    import onnxruntime as ort

    path, worst = model(folder, name), float("inf")
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for seed in range(8):
        x = np.random.default_rng(seed).standard_normal(session.get_inputs()[0].shape).astype(np.float32)
        want, got = session.run(None, {"x": x})[0].reshape(-1), outputs(path, x).reshape(-1)
        worst = min(worst, np.abs(want - got).max() / np.abs(want).max())
        if worst < 1e-4:
            return worst
    raise RuntimeError(f"{name}: bcnn and ONNX Runtime differ by {worst:.2g} of the largest output and more")
