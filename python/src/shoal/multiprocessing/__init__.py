"""torch.multiprocessing's queues, pipes, locks and values over shared memory that survives crashes.

A script needs one changed line, ``import shoal.multiprocessing as mp``. Names, signatures and
exceptions are those of :mod:`torch.multiprocessing` and :mod:`multiprocessing`. Tensors and numpy
arrays within values are shared, not copied, and a process that is killed blocks no other process and
loses no memory. ``Process``, ``Pool`` and ``spawn`` are those of PyTorch or of the standard library.

Additions: :class:`Latest`, :func:`get_many`, ``Queue.get_async``, ``Queue.put_async``, and the
functions of :mod:`shoal.multiprocessing.names`. See docs/multiprocessing.md.
"""

from __future__ import annotations

import importlib
import multiprocessing as _std
import sys as _sys
from typing import Any

from . import context as _context
from . import names
from .context import (ForkContext, ForkServerContext, Process, SpawnContext, get_context,
                      get_start_method, set_start_method)
from .latest import Latest
from .runtime import LostError, OwnerDiedError, PeerDiedError

_default = _context.default

active_children = _std.active_children
cpu_count = _std.cpu_count
current_process = _std.current_process
parent_process = _std.parent_process
freeze_support = _std.freeze_support
get_all_start_methods = _std.get_all_start_methods
get_logger = _std.get_logger
log_to_stderr = _std.log_to_stderr
set_executable = _std.set_executable
set_forkserver_preload = _std.set_forkserver_preload
allow_connection_pickling = _std.allow_connection_pickling
AuthenticationError = _std.AuthenticationError
BufferTooShort = _std.BufferTooShort
ProcessError = _std.ProcessError
TimeoutError = _std.TimeoutError

Array = _default.Array
Barrier = _default.Barrier
BoundedSemaphore = _default.BoundedSemaphore
Condition = _default.Condition
Event = _default.Event
JoinableQueue = _default.JoinableQueue
Lock = _default.Lock
Manager = _default.Manager
Pipe = _default.Pipe
Pool = _default.Pool
Queue = _default.Queue
RLock = _default.RLock
RawArray = _default.RawArray
RawValue = _default.RawValue
Semaphore = _default.Semaphore
SimpleQueue = _default.SimpleQueue
Value = _default.Value

__all__ = [
    "Array", "AuthenticationError", "Barrier", "BoundedSemaphore", "BufferTooShort", "Condition",
    "Event", "ForkContext", "ForkServerContext", "JoinableQueue", "Latest", "Lock", "LostError",
    "Manager", "OwnerDiedError", "PeerDiedError", "Pipe", "Pool", "Process", "ProcessError", "Queue",
    "RLock", "RawArray", "RawValue", "Semaphore", "SimpleQueue", "SpawnContext", "TimeoutError",
    "Value", "active_children", "allow_connection_pickling", "cpu_count", "current_process",
    "freeze_support", "get_all_start_methods", "get_context", "get_logger", "get_start_method",
    "log_to_stderr", "names", "parent_process", "set_executable", "set_forkserver_preload",
    "set_start_method"]

_LAZY = ("shared_memory", "connection", "queues", "sharedctypes", "synchronize", "tensors")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for parent in _parents(name):
        if hasattr(parent, name):
            return getattr(parent, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_TORCH = ("spawn", "start_processes", "SpawnContext", "ProcessContext", "ProcessExitedException",
          "ProcessRaisedException", "reductions", "get_all_sharing_strategies",
          "get_sharing_strategy", "set_sharing_strategy", "init_reductions")


def _parents(name: str) -> list:
    """Returns the modules that may have a name that this module lacks."""
    found: list = [_std]
    if "torch" in _sys.modules or name in _TORCH:
        try:
            found.insert(0, importlib.import_module("torch.multiprocessing"))
        except ModuleNotFoundError as e:
            if e.name != "torch":
                raise
    if name not in _TORCH and importlib.util.find_spec(f"multiprocessing.{name}"):
        found.append(type("_", (), {name: importlib.import_module(f"multiprocessing.{name}")}))
    return found
