#!/usr/bin/env python3
"""Compare bcnn with Larq Compute Engine on the networks of Larq Zoo.

Each network gets seeded weights, and batch norms the statistics of the test images,
disturbed, with factors of both signs. LCE's converter makes a .tflite file of it, and
LCE's interpreter all tensors between its operators. Two things are compared by
'bcnn check': every operator alone, on the tensor that LCE gave it (a binary convolution
together with the sign in front of it), and the whole network. Prints a table: the
largest difference of a binary convolution as a part of what LCE's own roundings can
make, that of the other operators as a part of their largest value.

Needs larq-compute-engine 0.16.0 (Python 3.11), larq-zoo 2.4, tensorflow and tf_keras 2.16.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import flatbuffers
import larq_compute_engine as lce
import larq_zoo as lqz
import numpy as np
import tensorflow as tf
from flatbuffers import flexbuffers
from larq_compute_engine.tflite.python.interpreter import Interpreter
from tensorflow.lite.python import schema_py_generated as schema

NETWORKS = {
    "QuickNetSmall": lqz.sota.QuickNetSmall, "QuickNet": lqz.sota.QuickNet, "QuickNetLarge": lqz.sota.QuickNetLarge,
    "BinaryResNetE18": lqz.literature.BinaryResNetE18, "BiRealNet": lqz.literature.BiRealNet,
    "XNORNet": lqz.literature.XNORNet, "BinaryAlexNet": lqz.literature.BinaryAlexNet,
    "BinaryDenseNet28": lqz.literature.BinaryDenseNet28, "RealToBinaryNet": lqz.literature.RealToBinaryNet,
    "MeliusNet22": lqz.literature.MeliusNet22,
}
OPERATORS = {v: k for k, v in vars(schema.BuiltinOperator).items() if not k.startswith("_")}
FLOAT = schema.TensorType.FLOAT32
SHAPES = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}  # which compute nothing


def images(r, n, size):
    """Noise, and pictures of large squares."""
    noise = r.standard_normal((n, size, size, 3))
    squares = np.kron(r.standard_normal((n, size // 16, size // 16, 3)), np.ones((1, 16, 16, 1)))
    return (0.3 * noise + squares).astype(np.float32)


def randomise(model, r, x):
    norms = [l for l in model.layers if "BatchNorm" in type(l).__name__]
    for layer in model.layers:
        if layer in norms or not layer.weights:
            continue
        binary = any(getattr(layer, q, None) for q in ("kernel_quantizer", "depthwise_quantizer"))
        new = []
        for a in layer.get_weights():
            if a.ndim < 2:
                a = a + 0.05 * r.standard_normal(a.shape)
            elif binary:
                a = r.uniform(-1, 1, a.shape)
            else:
                a = r.standard_normal(a.shape) * np.sqrt(2 / np.prod(a.shape[:-1]))
            new.append(np.asarray(a, np.float32))
        layer.set_weights(new)
    for n in norms:  # of these images alone
        n.momentum = 0.0
    model(x, training=True)
    for n in norms:
        new = []
        for v, a in zip(n.weights, n.get_weights()):
            name = v.name.split("/")[-1]
            if name.startswith("gamma"):
                a = r.uniform(0.5, 1.5, a.shape) * np.where(r.random(a.shape) < 0.25, -1, 1)
            elif name.startswith("beta"):
                a = 0.3 * r.standard_normal(a.shape)
            elif name.startswith("moving_mean"):
                a = a + 0.3 * r.standard_normal(a.shape) * np.std(a)
            else:
                a = np.maximum(a, 1e-3) * r.uniform(0.6, 1.6, a.shape)
            new.append(np.asarray(a, np.float32))
        n.set_weights(new)
    # Logits of a spread that leaves no probability at 1.
    last = [l for l in model.layers if l.weights][-1]
    for _ in range(4):
        spread = float(np.log(np.maximum(model(x, training=False).numpy(), 1e-30)).std())
        if spread < 2.5:
            break
        last.set_weights([a * np.float32(2 / spread) for a in last.get_weights()])


def pack(model):
    b = flatbuffers.Builder(1 << 20)
    b.Finish(model.Pack(b), b"TFL3")
    return bytes(b.Output())


class File:
    """A .tflite file of which parts can be cut."""

    def __init__(self, data):
        self.model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(data, 0))
        self.graph = self.model.subgraphs[0]
        self.constant = [self.model.buffers[t.buffer].data is not None for t in self.graph.tensors]
        self.maker = {t: o for o in self.graph.operators for t in o.outputs}
        # What becomes constant only when the file runs is no input of a part.
        for o in self.graph.operators:
            if all(t < 0 or self.constant[t] for t in o.inputs):
                for t in o.outputs:
                    self.constant[t] = True

    def name(self, o):
        code = self.model.operatorCodes[o.opcodeIndex]
        return code.customCode.decode() if code.customCode else OPERATORS[max(code.builtinCode, code.deprecatedBuiltinCode)]

    def computed(self):
        """The float tensors that operators compute."""
        return [t for o in self.graph.operators if self.name(o) not in SHAPES for t in o.outputs
                if self.graph.tensors[t].type == FLOAT and not self.constant[t]]

    def rounding(self, o):
        """What LCE's roundings of gamma K + beta, of the other product and of their sum can
        make in a binary convolution."""
        floats = [np.frombuffer(bytes(self.model.buffers[self.graph.tensors[t].buffer].data), "<f4") for t in o.inputs[2:4]]
        _, kh, kw, _ = self.graph.tensors[o.inputs[1]].shape
        taps = kh * kw * flexbuffers.Loads(bytes(o.customOptions))["channels_in"]
        return 6 * 2.0**-24 * float((taps * abs(floats[0]) + abs(floats[1])).max())

    def with_outputs(self, outputs):
        old, self.graph.outputs = self.graph.outputs, outputs
        signatures, self.model.signatureDefs = self.model.signatureDefs, None
        data = pack(self.model)
        self.graph.outputs, self.model.signatureDefs = old, signatures
        return data

    def part(self, output):
        """The operators from float tensors to one, and those tensors."""
        inputs, operators, queue = [], [], [output]
        while queue:
            o = self.maker[queue.pop()]
            if o in operators:
                continue
            operators.append(o)
            for t in o.inputs:
                if t < 0 or t in inputs or self.constant[t] and t not in self.maker:
                    continue
                shaped = t in self.maker and self.name(self.maker[t]) in SHAPES
                if self.graph.tensors[t].type == FLOAT and not self.constant[t] and not shaped:
                    inputs.append(t)
                else:
                    queue.append(t)
        return [o for o in self.graph.operators if o in operators], inputs

    def cut(self, operators, inputs, output):
        """A file of some operators, with the tensors and buffers that they use."""
        m, g = schema.ModelT(), schema.SubGraphT()
        m.version, m.operatorCodes, m.buffers, m.subgraphs = 3, self.model.operatorCodes, [schema.BufferT()], [g]
        g.tensors, g.operators, number = [], [], {-1: -1}

        def tensor(t):
            if t not in number:
                old, new = self.graph.tensors[t], schema.TensorT()
                new.name, new.shape, new.type, new.quantization = old.name, old.shape, old.type, old.quantization
                if self.constant[t] and t not in self.maker:
                    m.buffers.append(self.model.buffers[old.buffer])
                    new.buffer = len(m.buffers) - 1
                g.tensors.append(new)
                number[t] = len(g.tensors) - 1
            return number[t]

        g.inputs = [tensor(t) for t in inputs]
        for old in operators:
            new = schema.OperatorT()
            for field in ("opcodeIndex", "builtinOptionsType", "builtinOptions", "customOptions"):
                setattr(new, field, getattr(old, field))
            new.inputs, new.outputs = [tensor(t) for t in old.inputs], [tensor(t) for t in old.outputs]
            g.operators.append(new)
        g.outputs = [tensor(output)]
        return pack(m)


def label(graph, t):
    return graph.tensors[t].name.decode()


def check(bcnn, folder, data, arrays):
    """What 'bcnn check' says: its object, or the text of an error."""
    model, reference = folder / "model.tflite", folder / "reference.npz"
    model.write_bytes(data)
    np.savez(reference, **arrays)
    p = subprocess.run([bcnn, "check", "--json", "--tolerance", "0.999", "--model", model, "--reference", reference],
                       capture_output=True, text=True)
    return json.loads(p.stdout) if p.stdout else p.stderr


def predict(data, x):
    """All outputs for all images: lists of arrays."""
    it = Interpreter(data, num_threads=1, use_indirect_bgemm=True)
    rows = [it.predict(image[None]) for image in x]
    rows = [r if isinstance(r, list) else [r] for r in rows]
    return [np.concatenate(list(column)) for column in zip(*rows)]


def compare(bcnn, name, build, seed, count, size, folder):
    r = np.random.default_rng(seed)
    tf.keras.utils.set_random_seed(seed)
    model = build(input_shape=(size, size, 3), weights=None, num_classes=1000)
    x = images(r, count, size)
    randomise(model, r, x)
    data = lce.convert_keras_model(model)
    f = File(data)
    entry = label(f.graph, f.graph.inputs[0])
    final = label(f.graph, f.graph.outputs[0])
    [y] = predict(data, x)

    whole = check(bcnn, folder, data, {entry: x, final: y})
    row = {"network": name, "operators": len(f.graph.operators), "bytes": len(data)}
    if isinstance(whole, str):
        return {**row, "error": whole.splitlines()[0].replace(str(folder), "")}
    row["difference"], row["same"] = whole["outputs"][0]["difference"], whole["outputs"][0]["same_argmax"]

    tensors = f.computed()
    values = dict(zip(tensors, predict(f.with_outputs(tensors), x)))
    values[f.graph.inputs[0]] = x
    binary, others, alone = 0.0, 0.0, []
    for t in tensors:
        operators, inputs = f.part(t)
        part = check(bcnn, folder, f.cut(operators, inputs, t), {label(f.graph, i): values[i] for i in [*inputs, t]})
        if isinstance(part, str):
            sys.exit(f"{name}: {f.name(operators[-1])}: {part}")
        alone += [o for o in operators if o not in alone]
        if f.name(operators[-1]) == "LceBconv2d":
            binary = max(binary, part["outputs"][0]["difference"] / f.rounding(operators[-1]))
        else:
            others = max(others, part["outputs"][0]["relative"])
    return {**row, "alone": len(alone), "binary": binary, "others": others}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bcnn", default="bin/bcnn")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--images", type=int, default=3)
    p.add_argument("--size", type=int, default=224, help="of the images")
    p.add_argument("networks", nargs="*", default=list(NETWORKS))
    args = p.parse_args()
    print("| network | operators | compared alone | binary convolutions | others | whole network, probabilities | same arg-max |")
    print("|---|--:|--:|--:|--:|--:|--:|", flush=True)
    for name in args.networks:
        with tempfile.TemporaryDirectory() as folder:
            r = compare(args.bcnn, name, NETWORKS[name], args.seed, args.images, args.size, pathlib.Path(folder))
        if "error" in r:
            print(f"| {name} | {r['operators']} | {r['error']} |", flush=True)
            continue
        print(f"| {name} | {r['operators']} | {r['alone']} | {r['binary']:.2f} | {r['others']:.1e} | {r['difference']:.1e} "
              f"| {r['same']} of {args.images} |", flush=True)


if __name__ == "__main__":
    main()
