"""Archives of known answers: exact graphs on which the engine and bcnn agree, for the tests of the
importers, which then need no engine. Of many graphs those are kept that have something new: an
attribute with another value, or an operator behind another one."""

import collections
import io
import zipfile

import numpy as np

OFTEN = 2  # how many graphs have each
EPOCH = (1980, 1, 1, 0, 0, 0)  # the same graphs make the same bytes


class Archive:
    def __init__(self, path, most):
        self.zip, self.most = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9), most
        self.seen, self.bytes, self.graphs = collections.Counter(), 0, 0

    def full(self):
        return self.bytes >= self.most

    def add(self, number, model, features, inputs, outputs):
        """Keeps a graph, if it is new and small."""
        size = len(model) + sum(a.nbytes for a in (*inputs.values(), *outputs.values()))
        if all(self.seen[f] >= OFTEN for f in features) or size > 8192 or self.full():
            return
        self.seen.update(features)
        self.graphs += 1
        self._write("%d/model" % number, model)
        for folder, arrays in (("in", inputs), ("out", outputs)):
            for name, a in arrays.items():
                b = io.BytesIO()
                np.lib.format.write_array(b, np.ascontiguousarray(a).reshape(np.shape(a)), (1, 0))
                self._write("%d/%s/%s.npy" % (number, folder, name), b.getvalue())

    def _write(self, name, data):
        info = zipfile.ZipInfo(name, EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        self.bytes += self.zip.getinfo(name).compress_size + 2 * len(name) + 76

    def close(self):
        self.zip.close()
        print("%d graphs kept, %d bytes" % (self.graphs, self.bytes))


def agree(expected, got):
    """Whether all values are the same finite numbers; 0 has two signs."""
    return expected.keys() == got.keys() and all(
        np.isfinite(e).all() and np.array_equal(np.asarray(e, np.float64).ravel(), np.asarray(got[n], np.float64).ravel())
        for n, e in expected.items())
