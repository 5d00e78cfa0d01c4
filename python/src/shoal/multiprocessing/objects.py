"""The base of all shared objects: a handle, which is passed to processes that are being started."""

from __future__ import annotations

from multiprocessing import context as _context
from typing import Any

from . import runtime


class Shared:
    """An object of shared memory.

    It can be an argument of a process, under every start method. Like the objects of
    multiprocessing, it cannot be pickled otherwise; to hand it to a process that runs already, bind
    a name to it. See :mod:`shoal.multiprocessing.names`.
    """

    _handle: Any

    def _set_handle(self, handle: Any) -> None:
        """Sets the handle, and the bound methods that depend on it."""
        self._handle = handle

    @classmethod
    def _of(cls, handle: Any) -> Any:
        """Returns an object with a handle."""
        o = cls.__new__(cls)
        o._set_handle(handle)
        return o

    def _state(self) -> Any:
        """Returns the local state, beside the handle, that another process needs."""
        return None

    def _set_state(self, state: Any) -> None:
        pass

    def __getstate__(self) -> Any:
        _context.assert_spawning(self)
        return runtime.export_object(self._handle), self._state()

    def __setstate__(self, state: Any) -> None:
        token, local = state
        self._set_handle(runtime.import_object(token))
        self._set_state(local)
