"""Writes bcnn/tflite/testdata/kinds.zip: small networks of Keras as TensorFlow Lite files, one or more
for each kind of operator, with inputs and what the interpreter makes of them.

    pip install tensorflow==2.21.0 ai-edge-litert==2.3.0
    python tflite_kinds.py ../bcnn/tflite/testdata/kinds.zip

Files take any number of images, and answers are image by image, of the interpreter without XNNPACK,
which rounds 8-bit values otherwise. With names as further arguments only the networks that begin so
are made.
"""

import io
import os
import sys
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from keras import layers as L

IMAGES = 3
IMAGE = (8, 8, 3)


def randomize(model):
    r = np.random.default_rng(0)
    for w in model.weights:
        v = r.normal(0, 0.4, w.shape)
        if "variance" in w.path or "gamma" in w.path:
            v = np.abs(v) + 0.5
        w.assign(v.astype(np.float32))


def convert(model, shape, kind, io):
    c = tf.lite.TFLiteConverter.from_keras_model(model)
    if kind == "int8":
        r = np.random.default_rng(5)
        c.optimizations = [tf.lite.Optimize.DEFAULT]
        c.representative_dataset = lambda: ([r.uniform(-2, 2, (1, *shape)).astype(np.float32)] for _ in range(20))
        c.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        c.inference_input_type, c.inference_output_type = io
    elif kind == "sparse":
        c.optimizations = [tf.lite.Optimize.EXPERIMENTAL_SPARSITY]
    return c.convert()


def answers(file):
    run = Interpreter(model_content=file, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    run.allocate_tensors()
    r = np.random.default_rng(1)
    x, y = {}, {}
    for i in run.get_input_details():
        shape = (IMAGES, *i["shape"][1:])
        if i["dtype"] == np.float32:
            x[i["name"]] = r.uniform(-2, 2, shape).astype(np.float32)
        else:
            limits = np.iinfo(i["dtype"])
            x[i["name"]] = r.integers(limits.min, limits.max + 1, shape).astype(i["dtype"])
    for k in range(IMAGES):
        for i in run.get_input_details():
            run.set_tensor(i["index"], x[i["name"]][k : k + 1])
        run.invoke()
        for o in run.get_output_details():
            y.setdefault(o["name"], []).append(np.atleast_1d(run.get_tensor(o["index"]).copy()))
    return x, {n: np.concatenate(v) for n, v in y.items()}


def prune(model, run=1):
    r = np.random.default_rng(3)
    for w in model.weights:
        if len(w.shape) > 1:
            kept = r.random((w.shape[0] // run, *w.shape[1:])) < 0.3
            w.assign(w.numpy() * np.repeat(kept, run, 0))


def conv(n, k=3, **more):
    return L.Conv2D(n, k, **more)


def of(f):
    return L.Lambda(f)


def networks():
    """Name, shape of the input, layers, and how to convert: as float32, int8 or sparse."""
    f, u = tf.float32, tf.uint8
    for tag, ends in ("u8", (u, u)), ("u8in", (u, f)), ("u8out", (f, u)):
        yield f"a-{tag}-conv", IMAGE, [conv(4, activation="relu"), L.GlobalAveragePooling2D(), L.Dense(5)], "int8", ends
        yield f"a-{tag}-dw", IMAGE, [L.DepthwiseConv2D(3, padding="same"), L.ReLU(6.0), conv(7, 1)], "int8", ends
        yield f"a-{tag}-sig", IMAGE, [conv(4), L.Flatten(), L.Dense(6, activation="sigmoid")], "int8", ends
    yield "a-u8-pool", IMAGE, [L.MaxPooling2D(2), conv(4)], "int8", (u, u)
    for tag, kind in ("f", "float"), ("q", "int8"):
        def net(name, shape, *layers):
            return f"{name}-{tag}", shape, list(layers), kind, (tf.int8, tf.int8)

        yield net("b-same", IMAGE, conv(4, dilation_rate=2, padding="same"))
        yield net("b-valid", IMAGE, conv(4, dilation_rate=2, activation="relu"), conv(3))
        yield net("b-dw", IMAGE, L.DepthwiseConv2D(3, dilation_rate=2, padding="same", depth_multiplier=2), conv(3, 1))
        yield net("b-three", (11, 9, 3), conv(8, dilation_rate=3, padding="same"), conv(4, dilation_rate=2, padding="same"))
        yield net("b-even", (7, 9, 4), conv(8, (2, 3), dilation_rate=2, padding="same"))
        yield net("b-causal", (16, 4), L.Conv1D(6, 3, dilation_rate=2, padding="causal"))
        yield net("b-row", (15, 4), L.Conv1D(6, 3, dilation_rate=4, padding="same"))
        yield net("c-same", IMAGE, L.Conv2DTranspose(4, 3, strides=2, padding="same"), conv(3))
        yield net("c-two", (5, 7, 3), L.Conv2DTranspose(4, 2, strides=2), L.Conv2DTranspose(4, 4, strides=2, padding="same"))
        yield net("d-depth", IMAGE, of(lambda x: tf.nn.space_to_depth(x, 2)), conv(4))
        for name, r in ("mean", tf.reduce_mean), ("max", tf.reduce_max), ("min", tf.reduce_min), ("sum", tf.reduce_sum):
            if name == "sum" and tag == "q":
                continue  # which is refused
            yield net(f"e-{name}-keep", IMAGE, conv(6), of(lambda x, r=r: x * r(tf.abs(x), axis=-1, keepdims=True)), conv(3))
            yield net(f"e-{name}-drop", IMAGE, conv(6), of(lambda x, r=r: r(x, axis=-1)))
            yield net(f"e-{name}-all", IMAGE, conv(6), of(lambda x, r=r: r(x, axis=[1, 2, 3])))
            yield net(f"e-{name}-rows", IMAGE, conv(6), of(lambda x, r=r: r(x, axis=[1, 3], keepdims=True)))
        yield net("h-gate", (8, 8, 8), conv(8), of(lambda x: x * tf.sigmoid(tf.reduce_mean(x, [1, 2], keepdims=True))), conv(4))
        yield net("h-larger", IMAGE, conv(4), L.UpSampling2D(2), conv(4))
    for name, shape, layers in (
        ("ln", IMAGE, [L.LayerNormalization(), conv(4)]),
        ("vector", (12,), [L.Dense(9), L.LayerNormalization(), L.Dense(4)]),
        ("rows", (10, 6), [L.Conv1D(8, 3), L.LayerNormalization(), L.Dense(4)]),
        ("all", IMAGE, [L.LayerNormalization(axis=[1, 2, 3]), conv(4)]),
        ("groups", (8, 8, 8), [L.GroupNormalization(4), conv(4)]),
        ("unit", IMAGE, [L.UnitNormalization(), conv(4)]),
        ("reshape", IMAGE, [conv(4), L.Reshape((9, 16)), L.Dense(4)]),
    ):
        yield f"g-{name}", shape, layers, "float", None
    for name, s in {
        "ge": lambda x: 2 * tf.cast(x >= 0, tf.float32) - 1,
        "gt": lambda x: 2 * tf.cast(x > 0, tf.float32) - 1,
        "where": lambda x: tf.where(x >= 0, 1.0, -1.0),
        "less": lambda x: tf.where(x < 0, -1.0, 1.0),
        "swapped": lambda x: tf.where(0.0 > x, -1.0, 1.0),
        "values": lambda x: tf.where(x > 0.5, x, 0.1 * x),
        "ones": lambda x: tf.where(x >= 0, tf.ones_like(x), -tf.ones_like(x)),
        "three": lambda x: tf.cast(x > 0.5, tf.float32) - tf.cast(x < -0.5, tf.float32),
        "and": lambda x: tf.cast(tf.logical_and(x > -1, x < 1), tf.float32),
        "equal": lambda x: tf.where(tf.equal(tf.sign(x), 0.0), 1.0, tf.sign(x)),
        "unequal": lambda x: tf.cast(tf.not_equal(tf.sign(x), -1.0), tf.float32),
        "through": lambda x: x + tf.stop_gradient(tf.where(x >= 0, 1.0, -1.0) - x),
        "two": lambda x: tf.where(x[..., :2] > x[..., 2:4], x[..., :2], x[..., 2:4]),
        "each": lambda x: tf.where(x > tf.constant([0.1, 0.2, -0.3, 0.4]), 1.0, -1.0),
    }.items():
        yield f"f-{name}", IMAGE, [conv(4), of(s), conv(3)], "float", None
        if name in ("ge", "where"):
            yield f"f-{name}-q", IMAGE, [conv(4), of(s), conv(3)], "int8", (tf.int8, tf.int8)
    yield "i-dense", (64,), [L.Dense(32, activation="relu"), L.Dense(16)], "sparse", None
    yield "i-blocks", (64,), [L.Dense(32, activation="relu"), L.Dense(16)], "sparse", 4


def main():
    with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def add(name, data):
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)

        for name, shape, layers, kind, more in networks():
            if sys.argv[2:] and not name.startswith(tuple(sys.argv[2:])):
                continue
            first = x = keras.Input(shape)
            for layer in layers:
                x = layer(x)
            model = keras.Model(first, x)
            randomize(model)
            if kind == "sparse":
                prune(model, more or 1)
            file = convert(model, shape, kind, more)
            add(f"{name}/model", file)
            for folder, arrays in zip(("in", "out"), answers(file)):
                for tensor, array in arrays.items():
                    data = io.BytesIO()
                    np.save(data, array)
                    add(f"{name}/{folder}/{tensor.replace('/', '_')}.npy", data.getvalue())


main()
