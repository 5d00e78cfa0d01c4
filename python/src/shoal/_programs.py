"""The Go programs that the distribution contains."""

from __future__ import annotations

import errno
import os
import sys
from typing import NoReturn

SUPPORTED = "shoal runs on Linux, on x86_64 and aarch64"


def version() -> str:
    """Returns the version of the distribution."""
    from importlib import metadata  # which takes 30 ms to import

    try:
        return metadata.version("shoal")
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        return "0.0.0.dev0"


def check_platform() -> None:
    """Raises ImportError on a system for which there are no programs."""
    if sys.platform != "linux" or os.uname().machine not in ("x86_64", "aarch64"):
        import platform  # which takes 5 ms to import

        raise ImportError(f"{SUPPORTED}, but this is {platform.system()} on {platform.machine()}")


def find(name: str) -> str:
    """Returns the path of a program of the distribution.

    The environment variable SHOAL_PROGRAMS may name another folder that has the programs.
    """
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")
    path = os.path.join(os.environ.get("SHOAL_PROGRAMS") or own, name)
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"the program {path} is missing or not executable: install a wheel of "
                           f"shoal (pip install --force-reinstall shoal); {SUPPORTED}")
    return path


def cannot_run(program: str, error: OSError) -> RuntimeError:
    """Returns the error for a program that the system refuses to execute."""
    hint = f"; {SUPPORTED}" if error.errno == errno.ENOEXEC else ""
    return RuntimeError(f"cannot execute {program}: {error.strerror}{hint}")


def run() -> NoReturn:
    """Replaces the process by the program that has the name of the console script."""
    name = os.path.basename(sys.argv[0])
    try:
        path = find(name)
        os.execv(path, [path, *sys.argv[1:]])
    except (RuntimeError, OSError) as e:
        sys.exit(f"{name}: {e}")
