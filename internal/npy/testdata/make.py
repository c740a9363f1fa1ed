"""Writes numpy.npz and version*.npy: arrays of 2 x 3 x 2 that count from 0, of each
type, in both orders of bytes and of dimensions; NumPy 2.4 has made those that are here."""

import io
import zipfile

import numpy

here = __file__.rsplit("/", 1)[0]
arrays = {}
for kind in ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]:
    for byte_order in "<>":
        for order in "CF":
            a = numpy.arange(12).reshape(2, 3, 2).astype(byte_order + kind)
            arrays[f"{a.dtype.name} {byte_order} {order}"] = numpy.array(a, order=order)
arrays["scalar"] = numpy.float32(7)
arrays["vector"] = numpy.arange(5, dtype="f4")
arrays["empty"] = numpy.zeros((0, 3), "f4")
numpy.savez_compressed(here + "/numpy.npz", **arrays)
numpy.savez(here + "/stored.npz", x=numpy.arange(6, dtype="f4").reshape(2, 3), **{"a/b:0": numpy.arange(3)})
for version in (1, 0), (2, 0), (3, 0):
    with open(f"{here}/version{version[0]}.npy", "wb") as f:
        numpy.lib.format.write_array(f, numpy.arange(6, dtype="f4").reshape(2, 3), version=version)
