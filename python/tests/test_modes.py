"""Modes of the floating-point unit that a program has set."""

import platform

import pytest
from conftest import relu, run_python

# Values of the register that says how numbers are rounded, whether subnormal ones are 0, and
# which exceptions interrupt the program: of MXCSR and FPCR.
MODES = {
    "x86_64": {"up": 0x5F80, "down": 0x3F80, "toward zero": 0x7F80, "FTZ and DAZ": 0x9FC0, "unmasked": 0x0000},
    "aarch64": {"up": 1 << 22, "down": 2 << 22, "toward zero": 3 << 22, "FZ": 1 << 24},
}[platform.machine()]

CODE = """
import ctypes, platform, threading
import numpy as np
import bitcnn

x86 = platform.machine() == "x86_64"
libm = ctypes.CDLL("libm.so.6")
place = 7 if x86 else 0  # of the register in a fenv_t

def get():
    environment = (ctypes.c_uint32 * 8)()
    libm.fegetenv(environment)
    return environment

def set(mode):
    environment = get()
    environment[place] = mode
    libm.fesetenv(environment)

usual = 0x1f80 if x86 else 0
images = np.random.default_rng(1).integers(0, 256, (8, 28, 28, 1), np.uint8)
tiny = np.random.default_rng(1).integers(1, 1 << 23, (8, 2, 3, 4), np.uint32).view(np.float32)
found = []

def call(f, mode={mode}):
    set(mode)
    try:
        return f()
    finally:
        after = get()[place]
        set(usual)
        if x86:
            after &= ~0x3f
        if after != mode:
            found.append(f"mode {{after:#x}}, before {{mode:#x}}")

def scores(call):
    all = []
    for network, x in ("digits", images), ({relu!r}, tiny):
        # With exceptions unmasked, Python itself would end as it computes.
        model = call(lambda: bitcnn.load(network, device="cpu", max_batch=8, threads=2), **{load})
        all.append([call(lambda: model(x)).tobytes() for _ in range(10)])
    return all

def other():
    found.append(scores(call))

# The runtime starts in a thread that is in the mode, and ends.
thread = threading.Thread(target=other)
thread.start()
thread.join()
other()
want = scores(lambda f, mode=0: f())
assert all(len({{*runs}}) == 1 for runs in want)
assert found == [want, want], [f for f in found if isinstance(f, str)] or "other bits"
"""


# The outputs are those of the default mode, and the mode stays as it was.
@pytest.mark.parametrize("name", MODES)
def test_modes(name: str) -> None:
    load = {"mode": 0x1F80} if name == "unmasked" else {}
    run_python(CODE.format(mode=MODES[name], load=load, relu=relu()))
