#!/usr/bin/env python3
"""Write bcnn/tflite/testdata/int8.zip: small files with 8-bit tensors between layers,
with answers.

The archive holds for each case NAME.tflite, its inputs NAME.in0.npy, …, and what Larq
Compute Engine's interpreter makes of them, NAME.out.npy. Cases named op_* are single
operators, some on floats; those named net_* are Keras networks with fake-quantisation nodes that LCE's
converter has converted.

Needs what lce_files.py needs.
"""

import argparse
import io
import zipfile

import numpy as np

from lce_files import Interpreter, keras, layers, lce, operator, qconv, randomise, size, tf


def scaled(r, low=0.005, high=0.05):
    return np.float32(r.uniform(low, high)), int(r.integers(-128, 128))


def integers(r, *shape):
    return r.integers(-128, 128, shape).astype(np.int8)


def weighted(r):
    """(name, file, inputs) of layers with weights."""
    done = []
    for i, (c, out, k, pad, s, d, act, single) in enumerate((
            (3, 8, 3, 0, 2, 1, 1, False), (17, 5, 1, 1, 1, 1, 0, False), (8, 19, 3, 1, 1, 2, 3, True), (4, 4, 3, 0, 1, 1, 2, False))):
        for depthwise in (False, True):
            x = integers(r, 1, 9, 8, c)
            o = c * (1 + i % 2) if depthwise else out
            w = r.integers(-127, 128, (1, k, k, o) if depthwise else (o, k, k, c)).astype(np.int8)
            taps = k * k * (1 if depthwise else c)
            in_quant = scaled(r)
            ws = r.uniform(0.001, 0.02, 1 if single else o).astype(np.float32)
            out_quant = (np.float32(in_quant[0] * ws.mean() * np.sqrt(taps) * r.uniform(30, 80)), int(r.integers(-20, 20)))
            b = r.integers(-3000, 3000, o).astype(np.int32)
            fields = dict(padding=pad, strideW=s, strideH=s, dilationWFactor=d, dilationHFactor=d, fusedActivationFunction=act)
            if depthwise:
                fields["depthMultiplier"] = o // c
            name, table = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if depthwise else ("CONV_2D", "Conv2DOptions")
            quants = [(ws, [0] * len(ws), 3 if depthwise else 0), (in_quant[0] * ws, [0] * len(ws))]
            shape = (1, size(9, k, s, d, pad), size(8, k, s, d, pad), o)
            done.append((f"op_{name.lower()}_{i}", operator(
                name, [x, w, b], shape, "int8", (table, fields), in_quant, out_quant, quants), [x]))
    for i, single in enumerate((True, False)):
        x, w = integers(r, 1, 40), r.integers(-127, 128, (23, 40)).astype(np.int8)
        in_quant = scaled(r)
        ws = r.uniform(0.001, 0.02, 1 if single else 23).astype(np.float32)
        b = r.integers(-3000, 3000, 23).astype(np.int32)
        out_quant = (np.float32(in_quant[0] * ws.mean() * 300), 5)
        done.append((f"op_fully_connected_{i}", operator(
            "FULLY_CONNECTED", [x, w, b], (1, 23), "int8", ("FullyConnectedOptions", dict(fusedActivationFunction=i)), in_quant, out_quant,
            [(ws, [0] * len(ws), 0), (in_quant[0] * ws, [0] * len(ws))]), [x]))
    return done


def others(r):
    """(name, file, inputs) of operators without weights."""
    done = []
    for i, name in enumerate(("ADD", "SUB", "MUL")):
        for k, shape in enumerate(((1, 16, 16, 16), (1, 3, 3, 3), (1, 16, 16, 16))):
            x, y = integers(r, *shape), integers(r, *(shape if i < 2 or k < 2 else (1, 1, 1, 16)))
            a, b = scaled(r), scaled(r)
            if i < 2 and k == 2:
                b = (a[0], b[1])
            whole = a[0] * b[0] * 60 if name == "MUL" else (a[0] + b[0]) * r.uniform(0.4, 0.8)
            done.append((f"op_{name.lower()}_{k}", operator(
                name, [x, y], shape, "int8", (name.capitalize() + "Options", dict(fusedActivationFunction=k % 2)), a, (np.float32(whole), int(r.integers(-50, 50))),
                [b], computed=2), [x, y]))
    for k, shape in enumerate(((1, 9, 8, 5), (1, 1, 1, 19), (1, 16, 4, 4))):
        x, a, b = integers(r, *shape), scaled(r), scaled(r)
        if k == 0:
            b = (np.float32(a[0] * 1.7), b[1])
        done.append((f"op_requantize_{k}", operator("QUANTIZE", [x], shape, "int8", None, a, b), [x]))
        done.append((f"op_relu_{k}", operator(("RELU", "RELU6", "RELU_N1_TO_1")[k], [x], shape, "int8", None, a, b), [x]))
        for keep in (False, True):
            done.append((f"op_mean_{k}_{int(keep)}", operator(
                "MEAN", [x, np.array([1, 2], np.int32)], (1, 1, 1, shape[3]) if keep else (1, shape[3]), "int8",
                ("ReducerOptions", dict(keepDims=keep)), a, (np.float32(a[0] * 0.3), b[1])), [x]))
    for k, (n, s, pad, act) in enumerate(((2, 2, 1, 0), (3, 2, 0, 1), (3, 1, 0, 0))):
        x, a = integers(r, 1, 9, 8, 5), scaled(r)
        shape = (1, size(9, n, s, 1, pad), size(8, n, s, 1, pad), 5)
        fields = dict(padding=pad, strideW=s, strideH=s, filterHeight=n, filterWidth=n, fusedActivationFunction=act)
        for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            done.append((f"op_{name.lower()}_{k}", operator(name, [x], shape, "int8", ("Pool2DOptions", fields), a, a), [x]))
    x, y, a = integers(r, 1, 4, 5, 6), integers(r, 1, 4, 5, 3), scaled(r)
    done.append(("op_concatenation", operator(
        "CONCATENATION", [x, y], (1, 4, 5, 9), "int8", ("ConcatenationOptions", dict(axis=3)), a, a, [a], computed=2), [x, y]))
    done.append(("op_pad", operator(
        "PAD", [x, np.array([[0, 0], [0, 0], [0, 0], [1, 2]], np.int32)], (1, 4, 5, 9), "int8", None, a, a), [x]))
    done.append(("op_softmax", operator(
        "SOFTMAX", [y[:, 0, 0]], (1, 3), "int8", ("SoftmaxOptions", dict(beta=1.0)), a, (1 / 256, -128)), [y[:, 0, 0]]))
    return done


def functions(r):
    """(name, file, inputs) of functions of one 8-bit value, of all 256 values that it can have."""
    done = []
    every = np.arange(-128, 128).astype(np.int8)

    def add(name, k, inputs, shape, options, a, b, quants=None):
        done.append((f"op_{name.lower()}_{k}", operator(name, inputs, shape, "int8", options, a, b, quants), inputs[:1]))

    x = every.reshape(1, 4, 64, 1)
    for k, (scale, zero) in enumerate(((0.02, -100), (0.047, 11), (0.11, 127))):
        a = (np.float32(scale), zero)
        add("LOGISTIC", k, [x], x.shape, None, a, (1 / 256, -128))
        add("TANH", k, [x], x.shape, None, a, (1 / 128, 0))
        add("HARD_SWISH", k, [x], x.shape, None, a, (np.float32(scale * (0.7, 1.0, 0.9)[k]), (-50, -120, 3)[k]))
        add("ELU", k, [x], x.shape, None, a, (np.float32(scale * 0.6), -20))
        add("GELU", k, [x], x.shape, ("GeluOptions", dict(approximate=k == 1)), a, (np.float32(scale * 0.7), -50))
        add("EXP", k, [x], x.shape, None, a, (np.float32(np.exp(scale * (127 - zero) * 0.8) / 255), -128))
        add("LEAKY_RELU", k, [x], x.shape, ("LeakyReluOptions", dict(alpha=(0.1, 1.3, -0.4)[k])), a, (np.float32(scale * 0.8), -3))
    # A row for each channel, of which vectors make 16 at once and leave the others.
    channels = 19
    x = np.repeat(every.reshape(1, 16, 16, 1), channels, 3)
    for k, shape in enumerate(((channels,), (1, 1, 1, 1), (1, 16, 16, channels))):
        c = np.broadcast_to(integers(r, *shape[-1:]), shape).copy()
        a, b = scaled(r), scaled(r)
        add("PRELU", k, [x, c], x.shape, None, a, (np.float32(a[0] * 0.9), 7), [(np.float32(0.02), int(r.integers(-128, 128)))])
        for name in ("ADD", "SUB", "MUL"):
            whole = a[0] * b[0] * 60 if name == "MUL" else (a[0] + b[0]) * r.uniform(0.4, 0.8)
            options = (name.capitalize() + "Options", dict(fusedActivationFunction=k % 2))
            add(name, k + 3, [x, c], x.shape, options, a, (np.float32(whole), int(r.integers(-50, 50))), [b])
    return done


def large(r):
    """(name, file, inputs) of layers whose sums float32 does not hold, with outputs that change near 0 and far from it."""
    done = []
    for k, scale in enumerate((500.0, 60000.0, 100000.0)):
        x = r.integers(60, 128, (1, 1500)).astype(np.int8)
        w = r.integers(90, 128, (9, 1500)).astype(np.int8)
        w *= np.array([1, -1, 1, -1, 1, 1, 1, -1, 1], np.int8)[:, None]
        w[4:] *= r.choice(np.array([-1, 1], np.int8), (5, 1500))
        w[6, :700], w[7, :600] = np.abs(w[6, :700]), np.abs(w[7, :600])
        a, ws = (np.float32(0.02), -128), r.uniform(0.009, 0.011, 9).astype(np.float32)
        b = r.integers(-3000, 3000, 9).astype(np.int32)
        quants = [(ws, [0] * 9, 0), (a[0] * ws, [0] * 9)]
        done.append((f"op_large_{k}", operator(
            "FULLY_CONNECTED", [x, w, b], (1, 9), "int8", ("FullyConnectedOptions", dict(fusedActivationFunction=0)), a, (np.float32(a[0] * 0.01 * scale), 5), quants), [x]))
    x, w = r.integers(40, 128, (1, 4, 5, 300)).astype(np.int8), r.integers(-127, 128, (7, 3, 3, 300)).astype(np.int8)
    w[:3] = np.abs(w[:3])
    w[1] *= -1
    a, ws = (np.float32(0.02), -100), r.uniform(0.009, 0.011, 7).astype(np.float32)
    done.append(("op_large_conv", operator(
        "CONV_2D", [x, w, np.zeros(7, np.int32)], (1, 4, 5, 7), "int8", ("Conv2DOptions", dict(padding=0, strideW=1, strideH=1, dilationWFactor=1, dilationHFactor=1)),
        a, (np.float32(a[0] * 0.01 * 90000), -3), [(ws, [0] * 7, 0), (a[0] * ws, [0] * 7)]), [x]))
    return done


def more(r):
    """(name, file, inputs) of further operators without weights."""
    done = []
    a = scaled(r)
    for k, name in enumerate(("MAXIMUM", "MINIMUM")):
        for i, shape in enumerate(((1, 4, 5, 3), (1, 1, 1, 3))):
            x, y = integers(r, 1, 4, 5, 3), integers(r, *shape)
            done.append((f"op_{name.lower()}_{i}", operator(name, [x, y], x.shape, "int8", ("MaximumMinimumOptions", {}), a, a, [a], computed=2), [x, y]))
        c = integers(r, *((3,), (1,))[k])
        done.append((f"op_{name.lower()}_constant", operator(name, [x, c], x.shape, "int8", ("MaximumMinimumOptions", {}), a, a, [a]), [x]))
    every = np.arange(-128, 128).astype(np.int8).reshape(1, 4, 64, 1)
    for k, (b, c) in enumerate((((0.02, -100), (0.03, -128)), ((0.047, 11), (0.047, 11)), ((0.11, 127), (0.09, -20)))):
        b, c = (np.float32(b[0]), b[1]), (np.float32(c[0]), c[1])
        done.append((f"op_abs_{k}", operator("ABS", [every], every.shape, "int8", ("AbsOptions", {}), b, c), [every]))
    for k, (h, w, corners, half) in enumerate(((8, 10, False, True), (8, 10, False, False), (7, 9, True, False), (2, 3, False, False), (12, 5, False, True))):
        x = integers(r, 1, 4, 5, 3)
        done.append((f"op_resize_bilinear_{k}", operator(
            "RESIZE_BILINEAR", [x, np.array([h, w], np.int32)], (1, h, w, 3), "int8", ("ResizeBilinearOptions", dict(alignCorners=corners, halfPixelCenters=half)), a, a), [x]))
    x = integers(r, 1, 10)
    done.append(("op_log_softmax", operator("LOG_SOFTMAX", [x], x.shape, "int8", ("LogSoftmaxOptions", {}), a, (16 / 256, 127)), [x]))
    x = r.standard_normal((1, 10)).astype(np.float32)
    done.append(("op_log_softmax_float32", operator("LOG_SOFTMAX", [x], x.shape, "float32", ("LogSoftmaxOptions", {})), [x]))
    return done


def joined(r):
    """(name, file, inputs) of joins of rows and columns, and of transposed convolutions, of 8-bit values and of floats."""
    done = []
    a = scaled(r)
    for kind in ("int8", "float32"):
        def values(*shape):
            return integers(r, *shape) if kind == "int8" else r.standard_normal(shape).astype(np.float32)

        for axis in (1, 2, -3):
            shapes = [[1, 4, 3, 5] for _ in range(3)]
            for s, n in zip(shapes, (2, 5, 1)):
                s[axis] = n
            total = list(shapes[0])
            total[axis] = 8
            xs = [values(*s) for s in shapes]
            quant = a if kind == "int8" else None
            done.append((f"op_join_{axis % 4}_{'last' if axis < 0 else 'first'}_{kind}", operator(
                "CONCATENATION", xs, total, kind, ("ConcatenationOptions", dict(axis=axis)), quant, quant,
                [quant] * 2, computed=3), xs))
        for i, (c, out, kh, kw, sh, sw, pad, more, act, bias, single) in enumerate((
                (3, 19, 3, 3, 2, 2, 0, 0, 0, True, False), (5, 4, 2, 3, 2, 1, 1, 0, 1, True, True), (4, 6, 3, 3, 1, 1, 0, 0, 0, False, False),
                (2, 3, 1, 2, 3, 2, 1, 1, 3, True, False), (3, 2, 5, 4, 2, 3, 0, 0, 0, True, True), (7, 33, 3, 3, 2, 2, 0, 1, 0, True, False))):
            h, w = 4, 5
            if pad == 0:
                shape = [1, h * sh - more, w * sw - more, out]
            else:
                shape = [1, (h - 1) * sh + kh + more, (w - 1) * sw + kw, out]
            x = values(1, h, w, c)
            fields = ("TransposeConvOptions", dict(padding=pad, strideH=sh, strideW=sw, fusedActivationFunction=act))
            inputs, quant = [np.array(shape, np.int32)], a if i < 5 else (np.float32(0.5), a[1])
            if kind == "int8":
                weights, b = integers(r, out, kh, kw, c), r.integers(-3000, 3000, out).astype(np.int32)
                ws = r.uniform(0.001, 0.02, 1 if single else out).astype(np.float32)
                inputs += [weights, x] + [b] * bias
                if i == 5:  # sums over 32, of which one in 32 is a half
                    ws[:] = 0.25
                out_quant = (np.float32(quant[0] * ws.mean() * np.sqrt(kh * kw * c) * 60 if i < 5 else 4), int(r.integers(-20, 20)))
                quants = [None, (ws, [0] * len(ws), 0), quant] + [(quant[0] * ws, [0] * len(ws))] * bias
            else:
                inputs += [values(out, kh, kw, c), x] + [values(out)] * bias
                out_quant, quants = None, [None] * (3 + bias)
            done.append((f"op_transpose_conv_{i}_{kind}", operator(
                "TRANSPOSE_CONV", inputs, shape, kind, fields, quants[0], out_quant, quants[1:], first=2), [x]))
    return done


def quantised(low, high):
    return layers.Lambda(lambda x: tf.quantization.fake_quant_with_min_max_vars(x, low, high, 8))


def networks():
    """Keras networks by name, with the ranges that training would have found."""
    def quick(x):  # as QuickNet
        x = quantised(-2.0, 2.0)(x)
        x = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(x)
        x = quantised(0.0, 3.0)(x)
        x = quantised(-1.4, 1.9)(layers.DepthwiseConv2D(3, strides=2, padding="same")(x))
        x = quantised(-1.1, 1.3)(layers.Conv2D(32, 1)(x))
        for k in range(2):
            y = qconv(32, padding="same", pad_values=1.0, activation="relu")(x)
            y = quantised(-2.9, 14.3)(layers.BatchNormalization()(y))
            x = quantised(-4.1, 15.2 + k)(layers.add([x, y]))
        x = quantised(0.0, 12.0)(layers.ReLU()(x))
        x = layers.MaxPool2D(2, strides=1)(x)
        x = quantised(-9.0, 9.2)(layers.DepthwiseConv2D(3, strides=2, padding="same")(x))
        x = quantised(0.0, 7.1)(layers.Conv2D(40, 1, activation="relu")(x))
        x = quantised(0.0, 4.0)(layers.GlobalAveragePooling2D()(x))
        x = quantised(-6.0, 7.0)(layers.Dense(10)(x))
        return layers.Activation("softmax")(x)

    def bireal(x):  # as Bi-Real Net
        x = quantised(-2.0, 2.0)(x)
        x = layers.Conv2D(16, 7, strides=2, padding="same", use_bias=False)(x)
        x = quantised(-4.0, 3.7)(layers.BatchNormalization()(x))
        x = layers.MaxPool2D(3, 2, padding="same")(x)
        for k, (c, s) in enumerate(((16, 1), (32, 2), (32, 1))):
            short = x
            if s == 2:
                short = quantised(-4.3, 5.1)(layers.AvgPool2D(2)(short))
                short = layers.Conv2D(c, 1, use_bias=False)(short)
                short = quantised(-5.7, 6.0)(layers.BatchNormalization()(short))
            y = qconv(c, strides=s, padding="same")(x)
            y = quantised(-20.3, 19.6)(layers.BatchNormalization()(y))
            x = quantised(-21.0, 22.5 + k)(layers.add([y, short]))
        x = quantised(-9.0, 11.0)(layers.AveragePooling2D(4)(x))
        return quantised(-6.0, 7.0)(layers.Dense(10)(layers.Flatten()(x)))

    done = {}
    for name, side, f in (("quick", 24, quick), ("bireal", 32, bireal)):
        x = keras.Input((side, side, 3))
        done[name] = keras.Model(x, f(x))
    return done


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("out", help="the archive, bcnn/tflite/testdata/int8.zip")
    args = p.parse_args()
    r = np.random.default_rng(args.seed)
    cases = weighted(r) + others(r)
    separate = np.random.default_rng(args.seed + 1)
    cases += functions(separate) + joined(separate)
    cases += large(np.random.default_rng(21)) + more(np.random.default_rng(22))
    tf.random.set_seed(args.seed)
    for name, model in networks().items():
        randomise(model, r)
        for io_type in (tf.int8, tf.float32):
            file = lce.convert_keras_model(model, inference_input_type=io_type, inference_output_type=io_type)
            shape = (1, *model.input_shape[1:])
            x = integers(r, *shape) if io_type == tf.int8 else r.standard_normal(shape).astype(np.float32)
            cases.append((f"net_{name}_{io_type.name}", file, [x]))
    with zipfile.ZipFile(args.out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        def write(name, data):
            z.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)

        for name, file, xs in cases:
            # Only the reference kernel pads with zeros where the output is INT8.
            it = Interpreter(file, num_threads=1, use_reference_bconv="bireal" in name)
            y = np.array(it.predict(xs[0] if len(xs) == 1 else xs))
            write(f"{name}.tflite", file)
            for suffix, a in [*((f"in{i}", x) for i, x in enumerate(xs)), ("out", y)]:
                b = io.BytesIO()
                np.save(b, a)
                write(f"{name}.{suffix}.npy", b.getvalue())


if __name__ == "__main__":
    main()
