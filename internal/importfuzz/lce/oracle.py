"""The client of interpret.py, which restarts it when a model has crashed it."""

import importlib.util
import os
import pickle
import select
import struct
import subprocess
import sys
import tempfile

SECONDS = 20  # for one model


class NotRun(Exception):
    """The interpreter does not run a model."""


def wrapper():
    """The path of the interpreter's library. Its package is not imported, for it needs TensorFlow."""
    spec = importlib.util.find_spec("larq_compute_engine")
    return os.path.join(spec.submodule_search_locations[0], "tflite/python/interpreter_wrapper_lite.so")


class Oracle:
    def __init__(self):
        self.child, self.crashes, self.kernels = None, 0, ""
        self.log = tempfile.TemporaryFile()

    def start(self):
        program = os.path.join(os.path.dirname(__file__), "interpret.py")
        self.child = subprocess.Popen([sys.executable, program, wrapper()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=self.log, bufsize=0)

    def run(self, model, inputs):
        """The outputs of a model. NotRun says why there are none."""
        if self.child is None:
            self.start()
        self.log.seek(0)
        self.log.truncate()
        data = pickle.dumps((model, inputs), 5)
        try:
            self.child.stdin.write(struct.pack("<I", len(data)) + data)
            status, answer, self.kernels = pickle.loads(self._read(struct.unpack("<I", self._read(4))[0]))
        except (EOFError, BrokenPipeError, TimeoutError) as e:
            self.close()
            self.crashes += 1
            raise NotRun(f"the interpreter crashed or hung: {type(e).__name__}") from None
        if status != "ok":
            self.log.seek(0)
            lines = [line for line in self.log.read().decode(errors="replace").splitlines() if line.strip() and "INFO" not in line]
            raise NotRun((lines or [answer])[0])
        return answer

    def _read(self, n):
        data = b""
        while len(data) < n:
            if not select.select([self.child.stdout], [], [], SECONDS)[0]:
                raise TimeoutError
            part = os.read(self.child.stdout.fileno(), n - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def close(self):
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None
