"""Adds the Go programs to the wheel, and marks it with the platform that they run on."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = ("shoal", "shoal-loader")


class CustomBuildHook(BuildHookInterface):
    """Reads SHOAL_PROGRAMS, the folder of the programs, and SHOAL_PLATFORM, their platform tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Chooses the files and the tag of the wheel."""
        if version == "editable":
            return
        folder, platform = os.environ.get("SHOAL_PROGRAMS"), os.environ.get("SHOAL_PLATFORM")
        if not folder or not platform:
            raise RuntimeError("SHOAL_PROGRAMS and SHOAL_PLATFORM are not set: build the wheel with scripts/wheel")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        for name in PROGRAMS:
            build_data["force_include"][os.path.join(folder, name)] = f"shoal/bin/{name}"
