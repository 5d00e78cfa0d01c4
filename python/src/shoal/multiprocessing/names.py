"""Names of objects and values, for all processes of a domain, Go programs included.

A name holds its object until :func:`unlink`, also when the process that bound it has ended.
"""

from __future__ import annotations

from typing import Any, List, Optional

from . import runtime
from .objects import Shared
from .runtime import native

__all__ = ["bind", "listing", "lookup", "unlink"]


def bind(name: str, value: Any) -> None:
    """Binds a name, 1 to 192 bytes of UTF-8, to a shared object or to a value.

    Tensors within a value are shared. It raises FileExistsError if the name is bound.
    """
    from .connection import Connection

    runtime.ensure_domain()
    if isinstance(value, (Shared, Connection)):
        value._handle.bind(name, runtime.JOIN_TIMEOUT)
    else:
        native.bind_value(name, value)


def _classes() -> dict:
    from . import connection, latest, queues, shared_memory, synchronize

    return {
        runtime.QUEUE: queues.Queue, runtime.JOINABLE: queues.JoinableQueue, runtime.LATEST: latest.Latest,
        runtime.MUTEX: synchronize.Lock, runtime.SEMAPHORE: synchronize.Semaphore,
        runtime.COND: synchronize.Condition, runtime.EVENT: synchronize.Event, runtime.BARRIER: synchronize.Barrier,
        runtime.MEMORY: shared_memory.SharedMemory, runtime.SENDER: connection, runtime.RECEIVER: connection,
        runtime.PIPE: connection,
    }


def lookup(name: str, cls: Optional[type] = None) -> Any:
    """Returns the object or the value of a name.

    An RLock is returned as a Lock, and a BoundedSemaphore as a Semaphore, unless ``cls`` says so. It
    raises FileNotFoundError if the name is not bound.
    """
    runtime.ensure_domain()
    found = native.lookup(name, 0)
    if type(found) is not native.Handle:
        return found
    kind = found.kind
    known = _classes().get(kind)
    if known is None:
        raise TypeError(f"the name {name!r} is bound to an object of kind {kind}, which Python lacks")
    if hasattr(known, "of_handle"):
        return known.of_handle(found)
    if kind == runtime.MEMORY:
        return known._of_name(found, name)
    if cls is not None and cls is not known and not (kind, cls.__name__) in (
            (runtime.MUTEX, "RLock"), (runtime.SEMAPHORE, "BoundedSemaphore")):
        raise TypeError(f"the name {name!r} is bound to a {known.__name__}, want a {cls.__name__}")
    return (cls or known)._of(found)  # type: ignore[attr-defined]


def unlink(name: str) -> None:
    """Removes a name. The object stays valid for the processes that have it. It raises FileNotFoundError."""
    runtime.ensure_domain()
    native.unlink(name)


def listing() -> List[str]:
    """Returns all names, sorted."""
    runtime.ensure_domain()
    return native.names()
