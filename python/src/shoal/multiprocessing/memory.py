"""Blocks of shared memory as buffers of Python."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Tuple


def buffer(handle: Any) -> Tuple[memoryview, Any]:
    """Returns the bytes of a block, and a weak reference that is dead when no view of them exists.

    They stay valid while the memoryview, or one made from it, exists.
    """
    address, size = handle.memory()
    array = (ctypes.c_ubyte * size).from_address(address)
    array._handle = handle  # type: ignore[attr-defined]
    return memoryview(array).cast("B"), weakref.ref(array)
