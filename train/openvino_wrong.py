#!/usr/bin/env python3
"""Write small networks that OpenVINO's CPU plugin computes otherwise than its operators are defined, with what
NumPy computes of them, NAME.xml, NAME.bin and NAME.npz, for bcnn check; and print what OpenVINO makes of them.

Needs openvino.
"""

import argparse
import os
import pathlib

import numpy as np
import openvino as ov
import openvino.opset13 as ops

r = np.random.default_rng(1)


def number(v):
    return ops.constant(np.float32(v))


def binary(channels):
    """A BinaryConvolution of 1x1 of an image, whose signs are not in doubt."""
    image = r.choice(np.float32([-1, 1]), [1, channels, 4, 4])
    signs = r.choice([-1, 1], [8, channels])
    x = ops.parameter(image.shape, np.float32)
    packed = ov.Tensor(ov.Type.u1, ov.Shape([8, channels, 1, 1]))
    packed.data.reshape(-1).view(np.uint8)[:] = np.packbits(signs.ravel() > 0, bitorder="little")
    bits = ops.fake_quantize(x, number(0), number(0), number(0), number(1), 2)
    weights = ov.op.Constant(packed, shared_memory=False)
    y = ops.binary_convolution(bits, weights, [1, 1], [0, 0], [0, 0], [1, 1], "xnor-popcount", 0.0)
    return x, y, image, np.einsum("oc,ncyx->noyx", signs, image)


def quantised(low, high):
    """A FakeQuantize of two levels that no BinaryConvolution reads."""
    image = r.choice(np.float32([-1, 1]), [1, 8, 4, 4])
    x = ops.parameter(image.shape, np.float32)
    y = ops.fake_quantize(x, number(0), number(0), number(low), number(high), 2)
    return x, y, image, np.where(image > 0, high, low)


def nearest(size, wanted):
    """Rows of an image, from corner to corner."""
    image = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
    x = ops.parameter(image.shape, np.float32)
    sizes, axes = ops.constant(np.int64([wanted])), ops.constant(np.int64([3]))
    y = ops.interpolate(x, sizes, "nearest", "sizes", None, None, "align_corners", "floor", False, -0.75, axes)
    return x, y, image, image[..., np.arange(wanted) * (size - 1) // (wanted - 1)]


def computed(path, image):
    """What OpenVINO computes, in a process of its own, which may die."""
    file = path.with_suffix(".npy")
    child = os.fork()
    if child == 0:
        np.save(file, ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([image])[0])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return np.load(file) if status == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(exist_ok=True)
    for name, (x, y, image, want) in {
        "channels16": binary(16),
        "channels12": binary(12),
        "levels01": quantised(0, 1),
        "levels11": quantised(-1, 1),
        "nearest": nearest(15, 24),
    }.items():
        x.output(0).set_names({"x"})
        y.output(0).set_names({"y"})
        path = args.out / f"{name}.xml"
        ov.save_model(ov.Model([ops.result(y)], [x], name), path, compress_to_fp16=False)
        np.savez(path.with_suffix(".npz"), x=image, y=want.astype(np.float32))
        got = computed(path, image)
        say = "it dies" if got is None else f"{(got != want).sum()} of {want.size} values are wrong"
        print(f"{name}: {say}", flush=True)


if __name__ == "__main__":
    main()
