"""Adds the Go programs and the native parts to the wheel, and marks it with the platform that they run on."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = ("shoal", "shoal-loader")
NATIVE = ("libshoal.so", "_native.abi3.so")


class CustomBuildHook(BuildHookInterface):
    """Reads SHOAL_PROGRAMS and SHOAL_NATIVE, the folders of the programs and the native parts, and SHOAL_PLATFORM, their platform tag."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Chooses the files and the tag of the wheel."""
        if version == "editable":
            return
        folder, native, platform = (os.environ.get(f"SHOAL_{name}") for name in ("PROGRAMS", "NATIVE", "PLATFORM"))
        if not folder or not native or not platform:
            raise RuntimeError("SHOAL_PROGRAMS, SHOAL_NATIVE and SHOAL_PLATFORM are not set: build the wheel with scripts/wheel")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        for name in PROGRAMS:
            build_data["force_include"][os.path.join(folder, name)] = f"shoal/bin/{name}"
        for name in NATIVE:
            build_data["force_include"][os.path.join(native, name)] = f"shoal/{name}"
