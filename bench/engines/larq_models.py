#!/usr/bin/env python3
"""Makes the files that Larq Compute Engine is timed with: DIR/NAME.tflite.

Networks of larq-zoo with seeded random weights, whose batch normalisations get the
statistics that three images have, disturbed, so that signs are balanced as in trained
networks. And 3x3 convolutions of ±1 with batch normalisation, one (conv2.1.x1) and five
in a row (conv2.1.x5), between which only bits are passed on: a quarter of the difference
is the time of one, from bits to bits.

    larq_models.py DIR
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import larq
import larq_compute_engine
import larq_zoo
import numpy as np
import tensorflow as tf

from shapes import LAYERS, ZOO

keras = tf.keras
SEED = 2026


def images():
    """Three images: noise, smooth areas, and blocks."""
    rng = np.random.default_rng(SEED + 1)
    smooth = np.kron(rng.standard_normal((7, 7, 3)), np.ones((32, 32, 1)))
    blocks = np.kron(rng.integers(0, 256, (28, 28, 3)), np.ones((8, 8, 1))) / 127.5 - 1
    noise = rng.standard_normal((224, 224, 3))
    return np.stack([noise, smooth + 0.3 * rng.standard_normal(smooth.shape), blocks]).astype(np.float32)


def randomise(model):
    """Draws all weights."""
    rng = np.random.default_rng(SEED)
    norms = [l for l in model.layers if isinstance(l, keras.layers.BatchNormalization)]
    for layer in model.layers:
        if layer in norms:
            continue
        drawn = []
        for value in layer.get_weights():
            if value.ndim < 2:
                drawn.append(value)
            elif any(getattr(layer, q, None) is not None for q in ("kernel_quantizer", "depthwise_quantizer", "pointwise_quantizer")):
                drawn.append(rng.uniform(-1, 1, value.shape))
            else:
                drawn.append(rng.standard_normal(value.shape) * np.sqrt(2 / np.prod(value.shape[:-1])))
        layer.set_weights(drawn)
    momentum = [n.momentum for n in norms]
    for n in norms:
        n.momentum = 0  # the statistics of the next pass are taken as they are
    model(images(), training=True)
    for n, m in zip(norms, momentum):
        n.momentum = m
        weights = {v.name.split("/")[-1].split(":")[0]: v for v in n.weights}
        spread = np.sqrt(weights["moving_variance"].numpy() + 1e-6)
        for name, v in weights.items():
            a = v.numpy()
            if name == "gamma":
                a = rng.uniform(0.5, 1.5, a.shape) * np.where(rng.random(a.shape) < 0.25, -1, 1)
            elif name == "beta":
                a = 0.3 * rng.standard_normal(a.shape)
            elif name == "moving_mean":
                a = a + 0.3 * spread * rng.standard_normal(a.shape)
            else:
                a = np.maximum(a, 1e-3) * rng.uniform(0.6, 1.6, a.shape)
            v.assign(a)


def network(name):
    for module in (larq_zoo.sota, larq_zoo.literature):
        if hasattr(module, name):
            model = getattr(module, name)(input_shape=(224, 224, 3), weights=None, num_classes=1000)
            randomise(model)
            return model
    raise ValueError(f"larq-zoo has no {name}")


def layers(size, inputs, outputs, count):
    """So many convolutions in a row."""
    rng = np.random.default_rng(SEED)
    x = first = keras.layers.Input((size, size, inputs), batch_size=1)
    for i in range(count):
        x = larq.layers.QuantConv2D(
            inputs if i % 2 else outputs, 3, padding="same", pad_values=1.0, use_bias=False,
            input_quantizer="ste_sign", kernel_quantizer="ste_sign")(x)
        x = keras.layers.BatchNormalization()(x)
    model = keras.Model(first, x)
    for layer in model.layers:
        shapes = [w.shape for w in layer.get_weights()]
        if len(shapes) == 1:
            layer.set_weights([rng.uniform(-1, 1, shapes[0])])
        elif shapes:
            layer.set_weights([rng.uniform(0.5, 1.5, shapes[0]), rng.normal(0, 0.3, shapes[1]),
                               rng.normal(0, 10, shapes[2]), rng.uniform(100, 2000, shapes[3])])
    return model


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: larq_models.py DIR")
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    makers = {name: lambda name=name: network(name) for name in ZOO}
    for name, (size, inputs, outputs) in LAYERS.items():
        for count in (1, 5):
            makers[f"{name}.x{count}"] = lambda args=(size, inputs, outputs, count): layers(*args)
    for name, make in makers.items():
        path = os.path.join(out, name + ".tflite")
        if os.path.exists(path):
            continue
        with open(path + ".part", "wb") as f:
            f.write(larq_compute_engine.convert_keras_model(make()))
        os.replace(path + ".part", path)
        print(path, file=sys.stderr, flush=True)


main()
