"""Blocks of shared memory as buffers of Python."""

from __future__ import annotations

import ctypes
from typing import Any


def buffer(handle: Any) -> memoryview:
    """Returns the bytes of a block. They stay valid while the memoryview, or one made from it, exists."""
    address, size = handle.memory()
    array = (ctypes.c_ubyte * size).from_address(address)
    array._handle = handle  # type: ignore[attr-defined]
    return memoryview(array).cast("B")
