"""Named blocks of shared memory, with the interface of multiprocessing.shared_memory.

The names are those of the domain, not of the system: no file is left in /dev/shm.
"""

from __future__ import annotations

import os
import types
from multiprocessing import context as _context
from multiprocessing import shared_memory as _std
from typing import Any, Optional

from . import runtime
from .memory import buffer
from .runtime import native

__all__ = ["ShareableList", "SharedMemory"]


class SharedMemory:
    """A block of bytes with a name. ``unlink`` removes the name, and the last ``close`` the block."""

    _handle: Any = None
    _buffer: Optional[memoryview] = None

    def __init__(self, name: Optional[str] = None, create: bool = False, size: int = 0, *, track: bool = True) -> None:
        runtime.ensure_domain()
        if size < 0:
            raise ValueError("'size' must be a positive integer")
        if not create:
            if name is None:
                raise ValueError("'name' can only be None if create=True")
            self._open(native.lookup(name, runtime.MEMORY), name)
            return
        if size == 0:
            raise ValueError("'size' must be a positive number different from zero")
        name = name or f"psm_{os.urandom(8).hex()}"
        self._open(native.memory_new(name, size), name)

    def _open(self, handle: Any, name: str) -> None:
        self._handle, self._name = handle, name
        self._buffer, self._views = buffer(handle)
        self._size = len(self._buffer)

    @classmethod
    def _of_name(cls, handle: Any, name: str) -> SharedMemory:
        m = cls.__new__(cls)
        m._open(handle, name)
        return m

    def __reduce__(self) -> Any:
        if _context.get_spawning_popen() is not None and self._buffer is not None:
            return _rebuild, (runtime.export_object(self._handle), self._name)
        return type(self), (self._name, False, 0)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r}, size={self._size})"

    @property
    def buf(self) -> Any:
        """A memoryview of the bytes, or None after close."""
        return self._buffer

    @property
    def name(self) -> str:
        return self._name

    @property
    def size(self) -> int:
        return self._size

    def close(self) -> None:
        """Closes the block in this process. It raises BufferError while slices of buf are in use."""
        view, self._buffer = self._buffer, None
        if view is not None:
            view.release()
            del view
            array = self._views()
            if array is not None:
                self._buffer = memoryview(array).cast("B")
                raise BufferError("cannot close the block: slices of buf exist; release them first")
        self._handle = None

    def unlink(self) -> None:
        """Removes the name. It raises FileNotFoundError if that has been done."""
        native.unlink(self._name)


def _rebuild(token: bytes, name: str) -> SharedMemory:
    return SharedMemory._of_name(runtime.import_object(token), name)


class ShareableList(_std.ShareableList):
    """A list of fixed length of ints, floats, bools, strs, bytes and None, as multiprocessing's."""

    # The constructor is the standard library's, with SharedMemory of this module in its globals.
    __init__ = types.FunctionType(
        _std.ShareableList.__init__.__code__, {**vars(_std), "SharedMemory": SharedMemory}, "__init__",
        _std.ShareableList.__init__.__defaults__, _std.ShareableList.__init__.__closure__)
    __init__.__kwdefaults__ = _std.ShareableList.__init__.__kwdefaults__
