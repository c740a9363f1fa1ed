"""python -m bitcnn is the command bcnn that the wheel brings."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

NAME = "bcnn.exe" if os.name == "nt" else "bcnn"


def command() -> Path:
    """The path of the command.

    It is the one that was installed with this package, whatever else is called bcnn. An
    installation with `pip install --target` notes another place than that where it is.
    """
    try:
        noted = [f.locate() for f in metadata.files("bitcnn") or [] if f.name == NAME]
    except metadata.PackageNotFoundError:
        noted = []
    places = [Path(str(f)) for f in noted] + [Path(__file__).parents[1] / "bin" / NAME]
    for path in places:
        if path.is_file():
            return path.resolve()
    sys.exit("the command bcnn is missing; 'pip install' of the bitcnn wheel installs it")


if __name__ == "__main__":
    path = command()
    if os.name == "nt":  # where exec would end this process at once, and the shell would go on
        sys.exit(subprocess.run([path, *sys.argv[1:]]).returncode)
    os.execv(path, ["bcnn", *sys.argv[1:]])
