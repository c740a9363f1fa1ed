"""The tag of the wheel, and the command: as scripts/wheel has put them there."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        package, commands = Path(self.root) / "src/bitcnn", Path(self.root) / "bin"
        built = [*package.glob("_core.abi3.so"), *package.glob("_core.pyd")]
        if not built or "BITCNN_WHEEL_PLATFORM" not in os.environ:
            raise RuntimeError("the wheel is built by 'make wheel', which compiles the extension module")
        build_data["shared_scripts"] |= {f"bin/{f.name}": f.name for f in commands.glob("bcnn*")}
        build_data["pure_python"] = False
        build_data["tag"] = "cp311-abi3-" + os.environ["BITCNN_WHEEL_PLATFORM"]
