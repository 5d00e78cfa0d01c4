"""Contexts: the start methods of multiprocessing, with the objects of this package."""

from __future__ import annotations

import multiprocessing
from multiprocessing import context as _std
from typing import Any, Callable, Optional

Process = multiprocessing.Process


class _Objects(_std.BaseContext):
    """The factories of shared objects. Modules are imported when their first object is made."""

    def Pipe(self, duplex: bool = True) -> Any:
        """Returns two connections."""
        from .connection import Pipe

        return Pipe(duplex)

    def Lock(self) -> Any:
        """Returns a lock."""
        from .synchronize import Lock

        return Lock(ctx=self)

    def RLock(self) -> Any:
        """Returns a lock that its holder may acquire repeatedly."""
        from .synchronize import RLock

        return RLock(ctx=self)

    def Condition(self, lock: Any = None) -> Any:
        """Returns a condition, with an RLock if there is no lock."""
        from .synchronize import Condition

        return Condition(lock, ctx=self)

    def Semaphore(self, value: int = 1) -> Any:
        """Returns a semaphore."""
        from .synchronize import Semaphore

        return Semaphore(value, ctx=self)

    def BoundedSemaphore(self, value: int = 1) -> Any:
        """Returns a semaphore that refuses a release beyond its first value."""
        from .synchronize import BoundedSemaphore

        return BoundedSemaphore(value, ctx=self)

    def Event(self) -> Any:
        """Returns a flag that processes can wait for."""
        from .synchronize import Event

        return Event(ctx=self)

    def Barrier(self, parties: int, action: Optional[Callable] = None, timeout: Optional[float] = None) -> Any:
        """Returns a barrier."""
        from .synchronize import Barrier

        return Barrier(parties, action, timeout, ctx=self)

    def Queue(self, maxsize: int = 0) -> Any:
        """Returns a queue."""
        from .queues import Queue

        return Queue(maxsize, ctx=self)

    def JoinableQueue(self, maxsize: int = 0) -> Any:
        """Returns a queue that counts the tasks that are not done."""
        from .queues import JoinableQueue

        return JoinableQueue(maxsize, ctx=self)

    def SimpleQueue(self) -> Any:
        """Returns a one-way pipe for any number of processes."""
        from .queues import SimpleQueue

        return SimpleQueue(ctx=self)

    def Latest(self, value: Any = None) -> Any:
        """Returns a value that processes replace and load."""
        from .latest import Latest

        return Latest(value, ctx=self)

    def RawValue(self, typecode_or_type: Any, *args: Any) -> Any:
        """Returns an object of ctypes without a lock."""
        from .sharedctypes import RawValue

        return RawValue(typecode_or_type, *args)

    def RawArray(self, typecode_or_type: Any, size_or_initializer: Any) -> Any:
        """Returns an array of ctypes without a lock."""
        from .sharedctypes import RawArray

        return RawArray(typecode_or_type, size_or_initializer)

    def Value(self, typecode_or_type: Any, *args: Any, lock: Any = True) -> Any:
        """Returns an object of ctypes with a lock."""
        from .sharedctypes import Value

        return Value(typecode_or_type, *args, lock=lock, ctx=self)

    def Array(self, typecode_or_type: Any, size_or_initializer: Any, *, lock: Any = True) -> Any:
        """Returns an array of ctypes with a lock."""
        from .sharedctypes import Array

        return Array(typecode_or_type, size_or_initializer, lock=lock, ctx=self)

    def get_context(self, method: Optional[str] = None) -> Any:
        """Returns this context, or the one of another start method."""
        return self if method is None else get_context(method)


class ForkContext(_Objects, _std.ForkContext):
    """Children are copies of the process. They load a library of their own at their first use."""


class SpawnContext(_Objects, _std.SpawnContext):
    """Children are new interpreters."""


class ForkServerContext(_Objects, _std.ForkServerContext):
    """Children are copies of a server process."""


class _DefaultContext(_Objects):
    """The default context, with the start method that multiprocessing has."""

    Process = Process

    def get_context(self, method: Optional[str] = None) -> Any:
        return get_context(method)

    def get_start_method(self, allow_none: bool = False) -> Any:
        return multiprocessing.get_start_method(allow_none)

    def set_start_method(self, method: Optional[str], force: bool = False) -> None:
        multiprocessing.set_start_method(method, force)


_contexts = {"fork": ForkContext(), "spawn": SpawnContext(), "forkserver": ForkServerContext()}
default = _DefaultContext()


def get_context(method: Optional[str] = None) -> Any:
    """Returns the context of a start method, or of the default one, which is fixed then."""
    if method is None:
        method = multiprocessing.get_start_method()
    if method not in _contexts:
        raise ValueError(f"cannot find context for {method!r}")
    context = _contexts[method]
    context._check_available()
    return context


get_start_method = default.get_start_method
set_start_method = default.set_start_method
