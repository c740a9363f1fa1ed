"""Modes of the floating-point unit that a program has set."""

import platform

import pytest
from conftest import relu, run_python

# Values of the register that says how numbers are rounded, whether subnormal ones are 0, and
# which exceptions interrupt the program: of MXCSR and FPCR, and as _controlfp of Windows has them.
MODES = {
    "AMD64": {"up": 0x8021F, "down": 0x8011F, "toward zero": 0x8031F, "FTZ and DAZ": 0x108001F, "unmasked": 0x80000},
    "x86_64": {"up": 0x5F80, "down": 0x3F80, "toward zero": 0x7F80, "FTZ and DAZ": 0x9FC0, "unmasked": 0x0000},
    "aarch64": {"up": 1 << 22, "down": 2 << 22, "toward zero": 3 << 22, "FZ": 1 << 24},
}[platform.machine()]
USUAL = {"AMD64": 0x8001F, "x86_64": 0x1F80, "aarch64": 0}[platform.machine()]

CODE = """
import ctypes, platform, threading
import numpy as np
import bitcnn

machine = platform.machine()
usual = {usual}
if machine == "AMD64":
    library = ctypes.CDLL("ucrtbase.dll")

    def get():
        return library._controlfp(0, 0)

    def set(mode):
        library._controlfp(mode, 0x308031f)
else:
    library = ctypes.CDLL("libm.so.6")
    place = 7 if machine == "x86_64" else 0  # of the register in a fenv_t

    def environment():
        e = (ctypes.c_uint32 * 8)()
        library.fegetenv(e)
        return e

    def get():
        mode = environment()[place]
        return mode & ~0x3f if machine == "x86_64" else mode  # which operations set

    def set(mode):
        e = environment()
        e[place] = mode
        library.fesetenv(e)

images = np.random.default_rng(1).integers(0, 256, (8, 28, 28, 1), np.uint8)
tiny = np.random.default_rng(1).integers(1, 1 << 23, (8, 2, 3, 4), np.uint32).view(np.float32)
found = []

def call(f, mode={mode}):
    set(mode)
    try:
        return f()
    finally:
        after = get()
        set(usual)
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
    load = {"mode": USUAL} if name == "unmasked" else {}
    run_python(CODE.format(mode=MODES[name], usual=USUAL, load=load, relu=relu()))
