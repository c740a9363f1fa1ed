"""What examples/ has in Python. Ray's is in test_engines.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SEVEN = ROOT / "capi" / "testdata" / "digit-7.pgm"


def example(name: str) -> ModuleType:
    """An example as a module; names are below examples/."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / "examples" / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    digit = example("python/digit.py")
    again = tmp_path / "again.pgm"
    again.write_bytes(SEVEN.read_bytes())
    assert digit.main(["--device", "cpu", str(SEVEN), str(again)]) == 0
    assert capsys.readouterr().out == f"{SEVEN} 7\n{again} 7\n"
    # VehicleNet's input, all black.
    photo = tmp_path / "black.ppm"
    photo.write_bytes(b"P6\n96 96\n255\n" + bytes(96 * 96 * 3))
    assert digit.main(["--device", "cpu", "--model", "vehiclenet", str(photo)]) == 0
    assert capsys.readouterr().out.startswith(f"{photo} ")


@pytest.mark.parametrize(
    "content", [b"", b"P5 28 28 255\n", b"P5 27 28 255\n" + bytes(784), b"P6 28 28 255\n" + bytes(784)]
)
def test_digit_of_what_is_no_image(capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes) -> None:
    photo = tmp_path / "photo.pgm"
    photo.write_bytes(content)
    digit = example("python/digit.py")
    assert digit.main(["--device", "cpu", str(photo)]) == 1
    assert capsys.readouterr().err == f"{photo}: want a binary PGM file of 28 by 28 pixels\n"
    assert digit.main(["--device", "cpu", str(tmp_path / "none")]) == 1
    assert "none" in capsys.readouterr().err
    assert digit.main(["--device", "cpu", "--model", str(photo), str(SEVEN)]) == 1
    assert str(photo) in capsys.readouterr().err
