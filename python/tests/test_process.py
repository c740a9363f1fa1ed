"""Processes: forks, signals, exits, memory."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, run_python

FORK = """
import os, sys, warnings
import numpy as np
import bitcnn
warnings.simplefilter("ignore")
x = np.zeros((28, 28, 1), np.uint8)
if {used}:
    model = bitcnn.load("digits", device="cpu")
    want = model(x)
pid = os.fork()
if pid == 0:
    try:
        if {used}:
            model(x)
        else:
            assert bitcnn.load("digits", device="cpu")(x).shape == (10,)
    except RuntimeError as e:
        sys.stdout.write(str(e))
        sys.stdout.flush()
    del x
    sys.exit(7)
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
assert bitcnn.load("digits", device="cpu")(x).shape == (10,)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_fork() -> None:
    assert run_python(FORK.format(used=False)) == ""
    assert run_python(FORK.format(used=True)).startswith("the process was forked after bitcnn had been used")


def test_multiprocessing(tmp_path: Path) -> None:
    script = tmp_path / "pool.py"
    script.write_text("""
import multiprocessing as mp
import numpy as np
import bitcnn

def scores(seed):
    x = np.random.default_rng(seed).integers(0, 256, (28, 28, 1), np.uint8)
    return bitcnn.load("digits", device="cpu")(x)

if __name__ == "__main__":
    want = [scores(i) for i in range(4)]
    for method in {"spawn", "forkserver"}.intersection(mp.get_all_start_methods()):
        with mp.get_context(method).Pool(2) as pool:
            np.testing.assert_array_equal(pool.map(scores, range(4)), want)
    print("same")
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout == "same\n", done.stderr


# Ctrl-C while a model runs is an exception, as ever.
def test_interrupt() -> None:
    run_python("""
import os, signal, threading, time
import numpy as np
import bitcnn
model = bitcnn.load("vehiclenet", device="cpu", threads=1)
x = np.zeros(model.inputs[0].shape, np.uint8)
interrupt = signal.raise_signal if os.name == "nt" else lambda s: os.kill(os.getpid(), s)
for _ in range(5):
    threading.Timer(0.05, interrupt, (signal.SIGINT,)).start()
    try:
        while True:
            model(x)
    except KeyboardInterrupt:
        pass
""")


# Threads and models that are there when the interpreter ends are no matter.
def test_exit() -> None:
    run_python("""
import threading
import numpy as np
import bitcnn
model = bitcnn.load("digits", device="cpu")
def run():
    while True:
        model(np.zeros((28, 28, 1), np.uint8))
for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
model(np.zeros((28, 28, 1), np.uint8))
""")


# BCNN_DEVICE may be set when the package has been imported.
def test_environment() -> None:
    out = run_python("""
import os
import bitcnn
os.environ["BCNN_DEVICE"] = "nothing:3"
try:
    bitcnn.load("digits")
except (ValueError, RuntimeError) as e:
    print(e)
""")
    assert "nothing" in out


LEAK = """
import ctypes as c
import gc
import os
import numpy as np
import bitcnn

def resident():
    if os.name != "nt":
        return int(open("/proc/self/statm").read().split()[1]) * 4096
    counters = (c.c_size_t * 10)()  # PROCESS_MEMORY_COUNTERS, the third of which is the working set
    process = c.c_void_p(c.windll.kernel32.GetCurrentProcess())
    assert c.windll.kernel32.K32GetProcessMemoryInfo(process, counters, 72)
    return counters[2]

model = bitcnn.load("digits", device="cpu", threads=1)
x = np.zeros((28, 28, 1), np.uint8)
wrong = np.zeros((28, 28, 2), np.uint8)
more = None
for part in range(2):
    before = resident()
    for i in range({calls}):
        model(x)
        if i % 100 == 0:
            try:
                model(wrong)
            except ValueError:
                pass
            model.run({{"input": wrong[:, :, :1]}})
    for _ in range({loads}):
        with bitcnn.load("digits", device="cpu", threads=1) as other:
            other(x)
        bitcnn.load("digits", device="cpu", threads=1)
    gc.collect()
    more = resident() - before
print(more)
"""


# The second half takes no more memory than the first one has left. 1,000 models take 130 MB.
@pytest.mark.long
def test_leak() -> None:
    assert int(run_python(LEAK.format(calls=100_000, loads=1000))) < 8 << 20


def test_leak_short() -> None:
    assert int(run_python(LEAK.format(calls=5_000, loads=50))) < 8 << 20


# The Python code of README.md, in one process; that for PyTorch is in test_torch.py.
def test_readme(tmp_path: Path) -> None:
    text, _, _ = (ROOT / "python" / "README.md").read_text("utf-8").partition("## PyTorch")
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    assert "bitcnn.load" in code
    sample = ROOT / "internal" / "samples" / "digit-7.png"
    (tmp_path / "digit.png").write_bytes(sample.read_bytes())
    run_python(f"import os; os.chdir({str(tmp_path)!r})\n" + code)


# A model that outlives the package says nothing.
@pytest.mark.parametrize("keeper", ["sys", "numpy", "threading"])
def test_exit_with_models(keeper: str) -> None:
    code = f"import {keeper}, bitcnn; {keeper}.keep = bitcnn.load('digits', device='cpu')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
