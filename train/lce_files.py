#!/usr/bin/env python3
"""Write bcnn/tflite/testdata/lce.zip: small files of Larq Compute Engine with answers.

The archive holds for each case NAME.tflite, an input NAME.in.npy and what LCE's own
interpreter makes of it, NAME.out.npy. Cases named op_* are single operators, written
from the schema, such as no converter combines them; those named net_* are Keras
networks that LCE's converter has converted.

Needs larq-compute-engine 0.16.0 (Python 3.11), larq and tensorflow.
"""

import argparse
import io
import itertools
import os
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import flatbuffers
import larq as lq
import larq_compute_engine as lce
import numpy as np
import tensorflow as tf
from flatbuffers import flexbuffers
from larq_compute_engine.tflite.python.interpreter import Interpreter
from tensorflow.lite.python import schema_py_generated as schema

keras = tf.keras
layers = keras.layers

TYPES = {"float32": schema.TensorType.FLOAT32, "int8": schema.TensorType.INT8, "int32": schema.TensorType.INT32,
         "uint8": schema.TensorType.UINT8}


def operator(name, inputs, out, out_type, options=None, in_quant=None, out_quant=None, quants=None, computed=1, first=0):
    """A file of one operator, a custom one unless the schema has its name. So many inputs as are computed, from the first
    on, are those of the graph; the others are constants, or None for one that is left out. out is the shape of the output.
    quants are the scales, zero points and dimension of further inputs; options of a built-in operator are a pair, the name
    of their table and its fields."""
    m = schema.ModelT()
    m.version, m.description = 3, "one operator"
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, name, schema.BuiltinOperator.CUSTOM)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    code.customCode, code.version = name, 1
    m.operatorCodes, m.buffers = [code], [schema.BufferT()]
    g = schema.SubGraphT()
    g.name, g.tensors = "main", []

    def tensor(label, shape, dtype, data=None, quant=None):
        t = schema.TensorT()
        t.name, t.shape, t.type = label, list(shape), TYPES[dtype]
        if data is not None:
            b = schema.BufferT()
            b.data = np.frombuffer(data.tobytes(), np.uint8)
            m.buffers.append(b)
            t.buffer = len(m.buffers) - 1
        if quant is not None:
            t.quantization = schema.QuantizationParametersT()
            t.quantization.scale, t.quantization.zeroPoint = np.atleast_1d(quant[0]).tolist(), np.atleast_1d(quant[1]).tolist()
            t.quantization.quantizedDimension = quant[2] if len(quant) > 2 else 0
        g.tensors.append(t)
        return len(g.tensors) - 1

    quants = [in_quant, *(quants or [None] * (len(inputs) - 1))]
    indices = []
    for i, (c, quant) in enumerate(zip(inputs, quants)):
        if c is None:
            indices.append(-1)
        elif first <= i < first + computed:
            indices.append(tensor(f"x{i or ''}", c.shape, c.dtype.name, quant=quant))
        else:
            indices.append(tensor(f"constant{i - 1}", c.shape, c.dtype.name, c, quant))
    o = schema.OperatorT()
    o.opcodeIndex, o.inputs = 0, indices
    o.outputs = [tensor("y", out, out_type, quant=out_quant)]
    if code.builtinCode == schema.BuiltinOperator.CUSTOM:
        o.customOptions = list(flexbuffers.Dumps(options or {}))
    elif options:
        table, fields = options
        o.builtinOptionsType = getattr(schema.BuiltinOptions, table)
        o.builtinOptions = getattr(schema, table + "T")()
        for field, value in fields.items():
            setattr(o.builtinOptions, field, value)
    g.inputs, g.outputs, g.operators = indices[first:first + computed], o.outputs, [o]
    m.subgraphs = [g]
    b = flatbuffers.Builder(1024)
    b.Finish(m.Pack(b), b"TFL3")
    return bytes(b.Output())


def packed(shape, r):
    """Random words of signs whose bits beyond the channels are 0."""
    words = (shape[-1] + 31) // 32
    bits = r.random((*shape[:-1], words * 32)) < 0.5
    bits[..., shape[-1]:] = False
    return np.packbits(bits, axis=-1, bitorder="little").view("<i4").reshape(*shape[:-1], words)


def size(n, kernel, stride, dilation, padding):
    span = (kernel - 1) * dilation + 1
    return -(-n // stride) if padding == 0 else -(-(n - span + 1) // stride)


def bconvs(r):
    """(name, file, input) of binary convolutions."""
    SAME, VALID = 0, 1
    cases = []
    for channels in (1, 3, 31, 32, 33, 64, 96, 130):
        cases.append(dict(c=channels, out=9, padding=VALID))
    cases.append(dict(c=33, out=9, padding=SAME, numbers=True))
    for pad, stride, dilation in itertools.product((0, 1), ((1, 1), (2, 1), (2, 3)), ((1, 1), (2, 1))):
        cases.append(dict(c=64, out=10, padding=SAME, pad=pad, s=stride, d=dilation, h=9, w=7))
    cases += [dict(c=256, out=12, groups=2, padding=SAME, pad=p) for p in (0, 1)]
    cases += [dict(c=128, out=8, groups=4, padding=VALID)]
    cases += [dict(c=64, out=6, padding=VALID, act=a) for a in (1, 2, 3)]
    cases += [dict(c=32, out=6, padding=SAME, pad=1, act=1, k=(2, 4), s=(3, 2))]
    done = []
    for i, case in enumerate(cases):
        for kind in ("float32", "int32", "int8"):
            c, out, groups = case["c"], case["out"], case.get("groups", 1)
            k, s, d = case.get("k", (3, 3)), case.get("s", (1, 1)), case.get("d", (1, 1))
            h, w, pad, act = case.get("h", 6), case.get("w", 7), case.get("pad", 0), case.get("act", 0)
            zeros = case["padding"] == SAME and pad == 0
            if kind == "int32" and (act or zeros) or kind != "float32" and case.get("numbers"):
                continue  # LCE refuses it, or crashes
            taps = k[0] * k[1] * c // groups
            x, weights = packed((1, h, w, c), r), packed((out, *k, c // groups), r)
            mul = (r.uniform(0.01, 2, out) * np.where(r.random(out) < 0.3, -1, 1)).astype(np.float32)
            bias = (r.standard_normal(out) * np.sqrt(taps) * abs(mul)).astype(np.float32)
            mul[0], bias[-1] = 0, 0
            # Near the middle, but for always, never and the ends.
            thresholds = (taps // 2 + r.integers(-5, 6, out)).astype(np.int32)
            thresholds[:5] = (-(2**31), 2**31 - 1, -1, taps - 1, taps)
            shape = (1, size(h, k[0], s[0], d[0], case["padding"]), size(w, k[1], s[1], d[1], case["padding"]))
            quant = None
            if kind == "int8":
                # Sums reach beyond the range; halves occur where the steps are even.
                quant = (float(r.choice([0.25, 0.5, np.sqrt(taps) / 40])), int(r.integers(-128, 128)))
                if i % 2:
                    mul, bias = np.sign(mul).astype(np.float32) * np.float32(0.125), np.round(bias)
            options = dict(
                channels_in=c, dilation_height_factor=d[0], dilation_width_factor=d[1], fused_activation_function=act,
                pad_values=pad, padding=case["padding"], stride_height=s[0], stride_width=s[1])
            constants = [weights, None, None, thresholds] if kind == "int32" else [weights, mul, bias, None]
            last = (out + 31) // 32 if kind == "int32" else out
            name = f"op_bconv_{i:02}_{kind}"
            done.append((name, operator("LceBconv2d", [x, *constants], (*shape, last), kind, options, out_quant=quant), x))
    return done


def others(r):
    """(name, file, input) of the other operators."""
    done = []
    for c in (1, 32, 33, 70):
        x = r.integers(-1, 2, (1, 3, 4, c)).astype(np.float32) * np.float32(0.5)
        x.flat[0] = -0.0
        words = (1, 3, 4, (c + 31) // 32)
        done.append((f"op_quantize_{c}", operator("LceQuantize", [x], words, "int32"), x))
        for zero in (-128, -3, 0, 127):
            q = r.integers(-128, 128, x.shape).astype(np.int8)
            done.append((f"op_quantize_{c}_int8_{zero + 128}", operator("LceQuantize", [q], words, "int32", in_quant=(0.1, zero)), q))
        b = packed(x.shape, r)
        done.append((f"op_dequantize_{c}", operator("LceDequantize", [b], x.shape, "float32"), b))
        for scale, zero in ((0.01, 100), (1.0, 0), (0.3, -128), (2.5, 5)):
            done.append((f"op_dequantize_{c}_int8_{zero + 128}",
                         operator("LceDequantize", [b], x.shape, "int8", out_quant=(scale, zero)), b))
    for scale, zero in ((0.5, 0), (0.1, -7), (0.037, 90), (1e-3, -128)):
        x = (r.integers(-400, 400, (1, 5, 8, 3)) * 0.5 * scale).astype(np.float32)  # with halves
        x[0, 0] = r.standard_normal((8, 3)) * 100 * scale
        for kind, z in (("int8", zero), ("uint8", zero + 128)):
            done.append((f"op_to_{kind}_{zero + 128}", operator("QUANTIZE", [x], x.shape, kind, out_quant=(scale, z)), x))
            q = r.integers(0, 256, x.shape).astype(np.uint8).view(kind)
            done.append((f"op_from_{kind}_{zero + 128}", operator("DEQUANTIZE", [q], x.shape, "float32", in_quant=(scale, z)), q))
    for i, (k, s, padding) in enumerate(itertools.product(((2, 2), (3, 2), (1, 4)), ((1, 1), (2, 3)), (0, 1))):
        c = (1, 64, 130)[i % 3]
        x = packed((1, 7, 8, c), r)
        shape = (1, size(7, k[0], s[0], 1, padding), size(8, k[1], s[1], 1, padding), (c + 31) // 32)
        options = dict(filter_height=k[0], filter_width=k[1], padding=padding, stride_height=s[0], stride_width=s[1])
        done.append((f"op_bmaxpool_{i:02}", operator("LceBMaxPool2d", [x], shape, "int32", options), x))
    return done


def qconv(out, k=3, **args):
    return lq.layers.QuantConv2D(
        out, k, input_quantizer="ste_sign", kernel_quantizer="ste_sign", kernel_constraint="weight_clip", use_bias=False, **args)


def networks():
    """Keras networks by name."""
    def net(shape, f):
        x = keras.Input(shape)
        return keras.Model(x, f(x))

    def residual(x):
        x = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(x)
        for pad in (0.0, 1.0):
            y = qconv(32, padding="same", pad_values=pad)(x)
            y = layers.BatchNormalization()(y)
            x = layers.add([x, y])
        x = layers.ReLU()(x)
        x = layers.AveragePooling2D(2, padding="same")(x)
        x = layers.GlobalAveragePooling2D()(x)
        return layers.Dense(5, activation="softmax")(x)

    def chain(x):  # thresholds, and a pool of bits
        x = qconv(40, padding="same", pad_values=1.0)(x)
        x = layers.BatchNormalization()(x)
        x = qconv(33)(x)
        x = layers.MaxPool2D(2)(x)
        x = layers.BatchNormalization()(x)
        x = qconv(7, 2)(x)
        return layers.BatchNormalization(scale=False)(x)

    def activations(x):
        x = layers.Conv2D(8, 1)(x)
        x = layers.PReLU(shared_axes=(1, 2))(x)
        x = layers.DepthwiseConv2D(3, padding="same", depth_multiplier=2, activation="relu6")(x)
        x = layers.LeakyReLU(0.3)(x)
        x = layers.MaxPool2D(3, 2, padding="same")(x)
        x = layers.ReLU(6.0)(x)
        x = qconv(12, 1)(x)
        x = layers.ReLU()(x)
        x = layers.BatchNormalization()(x)
        x = layers.Flatten()(x)
        return layers.Dense(4)(x)

    def joined(x):  # as BinaryDenseNet, MeliusNet
        for dilation in (1, 2):
            y = layers.BatchNormalization()(x)
            y = qconv(8, padding="same", dilation_rate=dilation)(y)
            x = layers.concatenate([x, y])
        y = layers.BatchNormalization()(x)
        y = qconv(8, padding="same")(y)
        x = tf.pad(y, ((0, 0), (0, 0), (0, 0), (x.shape[-1] - 8, 0))) + x
        parts = tf.split(x, 4, axis=-1)
        x = layers.concatenate([layers.Conv2D(3, 1)(p) for p in parts])
        x = tf.pad(x, ((0, 0), (1, 2), (2, 0), (0, 0)))
        return layers.Conv2D(4, 3, strides=2)(x)

    def arithmetic(x):
        y = tf.abs(x) * 0.5 - 0.25
        z = tf.nn.relu(2.0 - x)
        x = y - z
        x = tf.minimum(tf.maximum(x, -0.75), 1.5)
        gate = layers.GlobalAveragePooling2D(keepdims=True)(x)
        x = x * gate
        x = -x[:, ::2, ::2, 1:5]
        x = tf.reduce_max(x, axis=(1, 2))
        return layers.Dense(3, activation="relu")(x)

    def weights(x):  # ±1 on real values, ±α on signs, dense layers of bits
        x = lq.layers.QuantConv2D(16, 5, strides=2, padding="same", kernel_quantizer="ste_sign", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = lq.layers.QuantConv2D(
            24, 3, padding="same", input_quantizer="ste_sign", kernel_quantizer="magnitude_aware_sign", use_bias=False)(x)
        x = layers.MaxPool2D(2)(x)
        x = layers.Flatten()(x)
        x = layers.BatchNormalization()(x)
        x = lq.layers.QuantDense(20, input_quantizer="ste_sign", kernel_quantizer="ste_sign", use_bias=False)(x)
        return layers.BatchNormalization()(x)

    def levels(x):  # {0, 1} by ste_heaviside, three values by a sign, and their pools
        x = layers.Conv2D(12, 3)(x)
        x = layers.BatchNormalization()(x)
        x = lq.layers.QuantConv2D(10, 3, padding="same", input_quantizer="ste_heaviside", kernel_quantizer="ste_sign", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.MaxPool2D(2)(tf.sign(x))
        x = layers.Conv2D(4, 1)(lq.layers.QuantConv2D(9, 3, kernel_quantizer="ste_sign", use_bias=False)(x))
        x = layers.Flatten()(layers.BatchNormalization()(x))
        return lq.layers.QuantDense(6, input_quantizer="ste_heaviside", kernel_quantizer="ste_sign", use_bias=False)(x)

    def dorefa(x):  # of 2 bits, with weights of 1 and 2, in a residual block and through a pool
        bits, quant = lq.quantizers.DoReFa, lq.layers.QuantConv2D
        x = layers.BatchNormalization()(layers.Conv2D(8, 3)(x))
        y = quant(8, 3, padding="same", input_quantizer=bits(2), kernel_quantizer=bits(1, mode="weights"), use_bias=False)(x)
        x = layers.add([layers.BatchNormalization()(y), x])
        y = layers.MaxPool2D(2)(bits(2)(x))
        x = layers.BatchNormalization()(quant(12, 3, kernel_quantizer=bits(2, mode="weights"), use_bias=False)(y))
        x = lq.layers.QuantDepthwiseConv2D(2, input_quantizer=bits(1), depthwise_quantizer="ste_sign", use_bias=False)(x)
        x = layers.Flatten()(layers.BatchNormalization()(x))
        return lq.layers.QuantDense(6, input_quantizer=bits(2), kernel_quantizer="ste_sign", use_bias=False)(x)

    def bytes(x):  # of 4 and 8 bits, whose sums are of bytes
        bits, quant = lq.quantizers.DoReFa, lq.layers.QuantConv2D
        x = quant(24, 1, input_quantizer=bits(8), kernel_quantizer=bits(4, mode="weights"), use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        return quant(5, 3, input_quantizer=bits(4), kernel_quantizer=bits(4, mode="weights"), use_bias=False)(x)

    def roundings(x):  # on values of which many lie in the middle of two levels, clipped before and behind
        def conv(q):
            return lq.layers.QuantConv2D(3, 2, kernel_quantizer="ste_sign", use_bias=False)(q)

        forms = [
            tf.round(tf.clip_by_value(x, -2.0, 1.0)), tf.floor(tf.clip_by_value(x, -1.5, 2.0)), tf.math.ceil(tf.clip_by_value(x, -1.0, 1.5)),
            tf.clip_by_value(tf.round(x), -2.0, 1.0) * 0.5, tf.nn.relu6(tf.floor(x * 2.0)), tf.minimum(tf.nn.relu(tf.round(x)), 3.0) * 0.25,
            tf.round(tf.sigmoid(x) * 3.0)]
        return layers.concatenate([conv(q) for q in forms] + [q[:, 1:, :-1] for q in (forms[0], forms[3])])

    def parts(x):  # levels of several scales and signs, side by side
        bits, quant = lq.quantizers.DoReFa, lq.layers.QuantConv2D
        x = layers.BatchNormalization()(layers.Conv2D(8, 1)(x))
        q = layers.concatenate([bits(2)(x), bits(3)(x), lq.quantizers.SteHeaviside()(x), lq.quantizers.SteSign()(x)])
        y = quant(6, 3, padding="same", kernel_quantizer="magnitude_aware_sign", use_bias=False)(q)
        z = quant(6, 3, padding="same", kernel_quantizer=bits(2, mode="weights"))(q)
        x = layers.concatenate([layers.BatchNormalization()(y), z])
        return layers.Conv2D(4, 1)(layers.concatenate([bits(2)(x), x]))

    def sequence(x):  # MaxPool1D, which reshapes
        x = layers.BatchNormalization()(layers.Conv1D(16, 3, padding="same")(x))
        for pad in (0.0, 1.0):
            x = lq.layers.QuantConv1D(
                16, 3, padding="same", pad_values=pad, input_quantizer="ste_sign", kernel_quantizer="ste_sign", use_bias=False)(x)
            x = layers.BatchNormalization()(layers.MaxPool1D(2)(x))
        return layers.Dense(4)(layers.GlobalMaxPool1D()(x))

    def cropped(x):  # Cropping2D, also behind ZeroPadding2D, and PADV2
        x = layers.Cropping2D(((1, 0), (2, 1)))(layers.ZeroPadding2D(((2, 1), (0, 1)))(x))
        x = layers.BatchNormalization()(layers.Conv2D(12, 3)(x))
        x = layers.BatchNormalization()(qconv(12, padding="same", pad_values=1.0)(layers.Cropping2D(1)(x)))
        x = tf.pad(x, ((0, 0), (1, 0), (0, 2), (0, 0)), constant_values=-0.5)
        x = lq.layers.QuantConv2D(
            9, 3, padding="same", pad_values=1.0, input_quantizer="ste_sign", kernel_quantizer=lq.quantizers.DoReFa(2, mode="weights"),
            use_bias=False)(x)
        return layers.Conv2D(3, 1)(x)

    def ternary(x):  # ternary weights, behind signs and {0, 1}
        x = layers.BatchNormalization()(layers.Conv2D(16, 3)(x))
        for quantizer in ("ste_sign", "ste_heaviside"):
            x = lq.layers.QuantConv2D(
                16, 3, input_quantizer=quantizer, kernel_quantizer=lq.quantizers.SteTern(ternary_weight_networks=True), use_bias=False)(x)
            x = layers.BatchNormalization()(x)
        return layers.Dense(5)(layers.Flatten()(x))

    return {
        "net_activations": net((7, 6, 3), activations), "net_arithmetic": net((6, 5, 8), arithmetic),
        "net_chain": net((8, 9, 64), chain), "net_joined": net((9, 8, 16), joined),
        "net_residual": net((13, 12, 3), residual), "net_weights": net((12, 12, 3), weights),
        "net_levels": net((10, 11, 3), levels),
        "net_dorefa": net((13, 12, 3), dorefa), "net_bytes": net((8, 9, 6), bytes), "net_roundings": net((6, 7, 4), roundings),
        "net_parts": net((7, 6, 5), parts), "net_sequence": net((24, 6), sequence), "net_cropped": net((9, 10, 3), cropped),
        "net_ternary": net((12, 10, 3), ternary),
    }


def randomise(model, r):
    """Batch norms with gammas of both signs, and biases that are not 0."""
    for layer in model.layers:
        new = []
        for v, a in zip(layer.weights, layer.get_weights()):
            name = v.name.split("/")[-1]
            if name.startswith("gamma"):
                a = r.uniform(0.5, 1.5, a.shape) * np.where(r.random(a.shape) < 0.3, -1, 1)
            elif name.startswith("moving_variance"):
                a = r.uniform(0.5, 4, a.shape)
            elif name.startswith(("beta", "moving_mean", "bias", "alpha")):
                a = r.standard_normal(a.shape) * 0.5
            else:
                a = r.uniform(-0.5, 0.5, a.shape)
            new.append(a.astype(np.float32))
        layer.set_weights(new)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("out", help="the archive, bcnn/tflite/testdata/lce.zip")
    args = p.parse_args()
    r = np.random.default_rng(args.seed)
    cases = bconvs(r) + others(r)
    tf.random.set_seed(args.seed)
    for name, model in networks().items():
        randomise(model, r)
        x = r.standard_normal((1, *model.input_shape[1:])).astype(np.float32)
        if name == "net_roundings":
            x = np.round(x * 4) / 4
        cases.append((name, lce.convert_keras_model(model), x))
    with zipfile.ZipFile(args.out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        def write(name, data):
            z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)

        for name, file, x in cases:
            answers = []
            for reference in (False, True):  # some cases only one of the two kinds of kernels takes
                try:
                    answers.append(np.array(Interpreter(file, num_threads=1, use_reference_bconv=reference).predict(x)))
                except RuntimeError:
                    continue
            y = answers[0]
            if y.dtype != np.float32:
                assert all(np.array_equal(y, other) for other in answers), name
            write(f"{name}.tflite", file)
            for suffix, a in (("in", x), ("out", y)):
                b = io.BytesIO()
                np.save(b, a)
                write(f"{name}.{suffix}.npy", b.getvalue())


if __name__ == "__main__":
    main()
