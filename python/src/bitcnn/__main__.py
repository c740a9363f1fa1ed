"""python -m bitcnn is the command bcnn that the wheel brings."""

import os
import sys
from importlib import metadata
from pathlib import Path


def command() -> Path:
    """The path of the command.

    It is the one that was installed with this package, whatever else is called bcnn. An
    installation with `pip install --target` notes another place than that where it is.
    """
    try:
        noted = [f.locate() for f in metadata.files("bitcnn") or [] if f.name == "bcnn"]
    except metadata.PackageNotFoundError:
        noted = []
    places = [Path(str(f)) for f in noted] + [Path(__file__).parents[1] / "bin/bcnn"]
    for path in places:
        if path.is_file():
            return path.resolve()
    sys.exit("the command bcnn was not installed with the package bitcnn, which 'pip install' of its wheel does")


if __name__ == "__main__":
    path = command()
    os.execv(path, ["bcnn", *sys.argv[1:]])
