"""The client of the runner, which converts and runs models: see protocol.go."""

import json
import os
import select
import struct
import subprocess
import tempfile

import numpy as np

CHECKS = ("roundtrip", "isas", "batch", "threads", "reference")


class Answer:
    """What became of a request.

    status is "ok", "refused" or "failed" (protocol.go), or "died" where the process ended
    without an answer. outputs are arrays by name, in the order of the model.
    """

    def __init__(self, header, outputs):
        self.status = header["status"]
        self.stage = header.get("stage", "")
        self.message = header.get("message", "")
        self.obstacles = [(o["op"], o["reason"]) for o in header.get("obstacles") or []]
        self.differences = header.get("differences") or []
        self.report = header.get("report") or []
        self.outputs = outputs


class Runner:
    """A process of the runner. It is started again after one that has ended."""

    def __init__(self, program, wait=120):
        self.program = program
        self.wait = wait  # seconds without an answer after which the process is ended
        self.process = None
        self.errors = None
        self.requests = 0

    def start(self):
        self.errors = tempfile.TemporaryFile()
        # The collector runs less often than it would: a request is short.
        env = dict(os.environ, GOGC=os.environ.get("GOGC", "400"))
        self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, env=env, bufsize=0)

    def close(self):
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.errors):
            try:
                pipe.close()
            except OSError:  # what a process that has died has not read
                pass
        self.process = None

    def run(self, model, inputs, checks=(), options=None, seconds=0):
        """Converts a model (bytes) and runs it on inputs (arrays by name)."""
        if self.process is None:
            self.start()
        self.requests += 1
        arrays = [np.ascontiguousarray(a) for a in inputs.values()]
        header = json.dumps({
            "id": self.requests, "model_bytes": len(model), "options": options or {}, "checks": list(checks),
            "seconds": seconds,
            "inputs": [{"name": n, "dtype": str(a.dtype), "dims": list(np.shape(v))}
                       for (n, v), a in zip(inputs.items(), arrays)],
        }).encode()
        try:
            request = b"".join([struct.pack("<I", len(header)), header, model, *(a.tobytes() for a in arrays)])
            while request:
                request = request[self.process.stdin.write(request):]
            return self._answer()
        except (OSError, EOFError) as e:
            return self._died(e)

    def _answer(self):
        length, = struct.unpack("<I", self._read(4))
        header = json.loads(self._read(length))
        if header["id"] != self.requests:
            raise EOFError("the answer to another request")
        outputs = {}
        for a in header["outputs"] or []:
            dtype = np.dtype(a["dtype"])
            dims = a["dims"] or []
            data = self._read(dtype.itemsize * int(np.prod(dims, dtype=np.int64)))
            outputs[a["name"]] = np.frombuffer(data, dtype).reshape(dims)
        if header["last"]:
            self.close()
        return Answer(header, outputs)

    def _read(self, size):
        stdout = self.process.stdout
        parts = []
        while size > 0:
            ready = select.select([stdout], [], [], self.wait)[0]
            if not ready:
                raise EOFError("no answer in %d seconds" % self.wait)
            part = os.read(stdout.fileno(), size)
            if not part:
                raise EOFError("the process has ended")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _died(self, error):
        self.process.kill()
        self.process.wait()
        self.errors.seek(0)
        text = self.errors.read()[:20000].decode(errors="replace")
        self.close()
        return Answer({"status": "died", "message": "%s\n%s" % (error, text)}, {})
