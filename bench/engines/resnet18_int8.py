"""ResNet-18 in int8 for ONNX Runtime: random weights, batch normalisation folded.

Its own static quantisation: QDQ, bytes with signed weights per channel, the ranges of
random images.
"""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def float_model():
    rng = np.random.default_rng(1)
    nodes, weights = [], []

    def add(kind, inputs, **attributes):
        name = f"t{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [name], name=f"{kind}{len(nodes)}", **attributes))
        return name

    def constant(value):
        name = f"w{len(weights)}"
        weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def conv(x, inputs, outputs, size, stride):
        w = constant(rng.normal(0, (2 / (inputs * size * size)) ** 0.5, (outputs, inputs, size, size)))
        b = constant(rng.normal(0, 0.1, outputs))
        return add("Conv", [x, w, b], kernel_shape=[size, size], strides=[stride, stride], pads=[size // 2] * 4)

    x = add("Relu", [conv("x", 3, 64, 7, 2)])
    x = add("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for out in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and out > 64 else 1
            y = add("Relu", [conv(x, channels, out, 3, stride)])
            y = conv(y, out, out, 3, 1)
            shortcut = x if stride == 1 else conv(x, channels, out, 1, 2)
            x, channels = add("Relu", [add("Add", [y, shortcut])]), out
    x = add("Flatten", [add("GlobalAveragePool", [x])])
    x = add("Gemm", [x, constant(rng.normal(0, 0.04, (512, 1000))), constant(np.zeros(1000))])
    nodes[-1].output[0] = "y"
    graph = helper.make_graph(
        nodes, "resnet18", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 224, 224])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1000])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


IMAGE = (1, 3, 224, 224)


def quantized(folder, name="resnet18", make=float_model, shape=IMAGE):
    """The path of the network, quantised. The file is made once."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Images(CalibrationDataReader):
        def __init__(self):
            self.seeds = iter(range(4))

        def get_next(self):
            for seed in self.seeds:
                return {"x": np.random.default_rng(seed).standard_normal(shape).astype(np.float32)}
            return None

    path = os.path.join(folder, name + ".int8.onnx")
    if not os.path.exists(path):
        plain, prepared = path + ".float", path + ".prepared"
        onnx.save(make(), plain)
        quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        quantize_static(prepared, path + ".part", Images(), quant_format=QuantFormat.QDQ, per_channel=True,
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
        os.remove(plain)
        os.remove(prepared)
        os.replace(path + ".part", path)
    return path


def session(folder, name="resnet18", make=float_model):
    """A function that runs it on one thread."""
    return runs(quantized(folder, name, make))


def runs(path):
    """A function that runs a file on one thread."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    s = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = s.io_binding()
    shape = s.get_inputs()[0].shape
    binding.bind_cpu_input("x", np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    binding.bind_output("y", "cpu")
    return lambda: s.run_with_iobinding(binding)
