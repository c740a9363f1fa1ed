"""The command bcnn that the wheel brings, and python -m bitcnn."""

import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest

import bitcnn
from bitcnn import __main__ as main

SCRIPT = [str(Path(sysconfig.get_path("scripts")) / main.NAME)]
MODULE = [sys.executable, "-P", "-m", "bitcnn"]
DIGIT = Path(__file__).parents[2] / "internal/samples/digit-7.png"


def run(command, *arguments, **options):
    return subprocess.run([*command, *arguments], capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("command", [SCRIPT, MODULE])
def test_version(command):
    done = run(command, "version")
    assert done.stdout.startswith(f"bcnn {bitcnn.version()} "), done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("command", [SCRIPT, MODULE])
def test_arguments_input_and_output(command):
    with DIGIT.open("rb") as image:
        done = run(command, "classify", "--device", "cpu", "--model", "digits", "--json", "-", stdin=image)
    assert '"label":"7"' in done.stdout, done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("command", [SCRIPT, MODULE])
def test_exit_code(command):
    done = run(command, "clasify")
    assert 'unknown command "clasify"; did you mean "classify"?' in done.stderr
    assert done.returncode == 2


def test_gpus_are_built_in():
    assert "this build" not in run(SCRIPT, "devices").stdout


def test_command_beside_the_package(monkeypatch, tmp_path):
    """Where pip notes another place: pip install --target."""
    monkeypatch.setattr(main, "__file__", str(tmp_path / "bitcnn/__main__.py"))
    monkeypatch.setattr(metadata, "files", lambda _: [metadata.PackagePath("../../bin/nothing")])
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / main.NAME).touch()
    assert main.command() == tmp_path / "bin" / main.NAME


def test_without_command(monkeypatch, tmp_path):
    def absent(_):
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(main, "__file__", str(tmp_path / "bitcnn/__main__.py"))
    monkeypatch.setattr(metadata, "files", absent)
    with pytest.raises(SystemExit, match="the command bcnn is missing"):
        main.command()
