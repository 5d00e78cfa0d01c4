"""Locks, semaphores, conditions, events and barriers that survive the death of their holders."""

from __future__ import annotations

import os
import threading
import time
from multiprocessing import process as _process
from threading import BrokenBarrierError
from typing import Any, Callable, Optional

from . import runtime
from .objects import Shared
from .runtime import native

__all__ = ["Barrier", "BoundedSemaphore", "BrokenBarrierError", "Condition", "Event", "Lock", "RLock", "Semaphore"]

MAX_PERMITS = 1048575  # of a semaphore of libshoal


_pid = os.getpid()


def _renew_pid() -> None:
    global _pid
    _pid = os.getpid()


runtime.after_fork(_renew_pid)


def _me() -> tuple:
    """Returns the identity of this thread, without a system call."""
    return _pid, threading.get_ident()


def _wait_seconds(block: bool, timeout: Optional[float]) -> Optional[float]:
    if block and timeout is None:
        return None
    return runtime.seconds(timeout) if block else 0.0


class _Owned(Shared):
    """A mutex, and the thread of this process that holds it."""

    def __init__(self, *, ctx: Any = None) -> None:
        runtime.ensure_domain()
        self._set_handle(native.mutex_new())

    def _set_handle(self, handle: Any) -> None:
        super()._set_handle(handle)
        self._owner: Any = None
        self._count = 0

    def _is_mine(self) -> bool:
        return self._owner == _me()

    def _lock(self, timeout: Optional[float]) -> bool:
        code = self._handle.lock(timeout)
        if not code:
            return True
        if code in (runtime.LOCKED, runtime.TIMEOUT):
            return False
        if code == runtime.OWNER_DIED:
            try:
                native.raise_code(code)
            finally:
                self._handle.mark_consistent()
                self._handle.unlock()
        native.raise_code(code)
        return False

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *args: Any) -> None:
        self.release()

    def acquire(self, block: bool = True, timeout: Optional[float] = None) -> bool:
        raise NotImplementedError

    def release(self) -> None:
        raise NotImplementedError

    def locked(self) -> bool:
        """Reports whether a process holds the lock."""
        return self._handle.holder() != 0

    def _owner_name(self) -> str:
        """Returns the name of the holder, as multiprocessing's repr does."""
        try:
            holder = self._handle.holder()
        except (RuntimeError, ValueError):
            return "unknown"
        if holder == 0:
            return "None"
        if holder != _pid:
            return "SomeOtherProcess"
        if not self._is_mine():
            return "SomeOtherThread"
        name = _process.current_process().name
        thread = threading.current_thread().name
        return name if thread == "MainThread" else f"{name}|{thread}"


class Lock(_Owned):
    """A lock of processes, as :func:`multiprocessing.Lock`.

    If the process that holds it dies, the next ``acquire`` raises :class:`OwnerDiedError` and
    leaves it unlocked. Only the process that acquired it may release it.
    """

    def acquire(self, block: bool = True, timeout: Optional[float] = None) -> bool:
        if not self._lock(_wait_seconds(block, timeout)):
            return False
        self._owner, self._count = _me(), 1
        return True

    def release(self) -> None:
        owner, self._owner, self._count = self._owner, None, 0
        code = self._handle.unlock()
        if code == runtime.NOT_OWNER:
            raise ValueError("semaphore or lock released too many times, or by a process that does not hold it")
        if code:
            self._owner = owner
        runtime.check(code)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}(owner={self._owner_name()})>"


class RLock(_Owned):
    """A lock that its holder, a thread, may acquire repeatedly, as :func:`multiprocessing.RLock`."""

    def acquire(self, block: bool = True, timeout: Optional[float] = None) -> bool:
        me = _me()
        if self._owner != me:
            if not self._lock(_wait_seconds(block, timeout)):
                return False
            self._owner, self._count = me, 0
        self._count += 1
        return True

    def release(self) -> None:
        if not self._is_mine():
            raise AssertionError("attempt to release recursive lock not owned by thread")
        self._count -= 1
        if self._count == 0:
            self._owner = None
            runtime.check(self._handle.unlock())

    def __repr__(self) -> str:
        name = self._owner_name()
        count: Any = self._count
        if not self._is_mine():
            count = {"None": 0, "unknown": "unknown"}.get(name, "nonzero")
        return f"<{type(self).__name__}({name}, {count})>"


class _Permits:
    """The part of multiprocessing's SemLock that its own classes read."""

    def __init__(self, semaphore: Semaphore) -> None:
        self._semaphore = semaphore

    def _get_value(self) -> int:
        return self._semaphore.get_value()

    def _is_zero(self) -> bool:
        return self._get_value() == 0


class Semaphore(Shared):
    """A semaphore of processes, as :func:`multiprocessing.Semaphore`. The permits of a process that
    dies are returned."""

    _bounded = False

    def __init__(self, value: int = 1, *, ctx: Any = None) -> None:
        runtime.ensure_domain()
        if value < 0:
            raise ValueError(f"semaphore of {value} permits, want at least 0")
        self._maxvalue = value
        self._set_handle(native.semaphore_new(min(value, MAX_PERMITS), self._bounded))

    def _state(self) -> Any:
        return self._maxvalue

    def _set_state(self, state: Any) -> None:
        self._maxvalue = state

    @property
    def _semlock(self) -> _Permits:
        return _Permits(self)

    def acquire(self, block: bool = True, timeout: Optional[float] = None) -> bool:
        code = self._handle.acquire(_wait_seconds(block, timeout))
        if code == runtime.OK:
            return True
        if code in (runtime.LOCKED, runtime.TIMEOUT):
            return False
        native.raise_code(code)
        return False

    def release(self) -> None:
        code = self._handle.release()
        if code == runtime.RELEASED:
            raise ValueError("semaphore or lock released too many times")
        runtime.check(code)

    def get_value(self) -> int:
        return self._handle.permits()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *args: Any) -> None:
        self.release()

    def _value_text(self) -> str:
        try:
            return str(self.get_value())
        except (RuntimeError, ValueError):
            return "unknown"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}(value={self._value_text()})>"


class BoundedSemaphore(Semaphore):
    """A semaphore that refuses a release beyond its first value."""

    _bounded = True

    def __repr__(self) -> str:
        return f"<{type(self).__name__}(value={self._value_text()}, maxvalue={self._maxvalue})>"


class Condition(Shared):
    """A condition of processes, as :func:`multiprocessing.Condition`.

    If the holder of the lock dies, ``wait`` raises :class:`OwnerDiedError`, with the lock held.
    """

    def __init__(self, lock: Any = None, *, ctx: Any = None) -> None:
        if lock is None:
            lock = RLock()
        if not isinstance(lock, _Owned):
            raise TypeError(f"Condition of a {type(lock).__name__}, want a Lock or RLock of shoal.multiprocessing")
        self._set_lock(lock)
        self._set_handle(native.cond_new(lock._handle))

    def _set_lock(self, lock: _Owned) -> None:
        self._lock = lock
        self.acquire, self.release = lock.acquire, lock.release

    def _state(self) -> Any:
        return self._lock

    def _set_state(self, state: Any) -> None:
        self._set_lock(state)

    @classmethod
    def _of(cls, handle: Any) -> Any:
        o = super()._of(handle)
        o._set_lock(Lock._of(handle))  # the handle of a condition also locks its mutex
        return o

    def __enter__(self) -> bool:
        return self._lock.__enter__()

    def __exit__(self, *args: Any) -> None:
        self._lock.__exit__(*args)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}({self._lock})>"

    def _check_owner(self, what: str) -> None:
        if not self._lock._is_mine():
            raise AssertionError(f"{what}: must acquire() the condition first")

    def wait(self, timeout: Optional[float] = None) -> bool:
        self._check_owner("wait")
        lock = self._lock
        owner, count = lock._owner, lock._count
        lock._owner, lock._count = None, 0
        held = True
        try:
            code = self._handle.cond_wait(runtime.seconds(timeout))
            held = code in (runtime.OK, runtime.TIMEOUT, runtime.OWNER_DIED, runtime.EMPTY)
            if code == runtime.OWNER_DIED:
                try:
                    native.raise_code(code)
                finally:
                    self._handle.notify(-1)
                    lock._handle.mark_consistent()
            if not held:
                native.raise_code(code)
            return code == runtime.OK
        finally:
            if held:
                lock._owner, lock._count = owner, count

    def notify(self, n: int = 1) -> None:
        self._check_owner("notify")
        runtime.check(self._handle.notify(min(n, 2**31 - 1)))

    def notify_all(self) -> None:
        self._check_owner("notify_all")
        runtime.check(self._handle.notify(-1))

    def wait_for(self, predicate: Callable[[], Any], timeout: Optional[float] = None) -> Any:
        end = None if timeout is None else time.monotonic() + timeout
        result = predicate()
        while not result:
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                break
            self.wait(left)
            result = predicate()
        return result


class Event(Shared):
    """A flag of processes, as :func:`multiprocessing.Event`."""

    def __init__(self, *, ctx: Any = None) -> None:
        runtime.ensure_domain()
        self._set_handle(native.event_new())

    def is_set(self) -> bool:
        return bool(self._handle.is_set())

    def set(self) -> None:
        runtime.check(self._handle.set())

    def clear(self) -> None:
        runtime.check(self._handle.clear())

    def wait(self, timeout: Optional[float] = None) -> bool:
        code = self._handle.event_wait(runtime.seconds(timeout))
        if code in (runtime.TIMEOUT, runtime.EMPTY, runtime.LOCKED):
            return False
        runtime.check(code)
        return True

    def fileno(self) -> int:
        """Returns a descriptor that is readable while the flag is set. See ``multiprocessing.connection.wait``."""
        return self._handle.ready_fd()

    def __repr__(self) -> str:
        state = "set" if self.is_set() else "unset"
        return f"<{type(self).__qualname__} at {id(self):#x} {state}>"


class Barrier(Shared):
    """A barrier of processes, as :func:`multiprocessing.Barrier`. The death of a process that has it
    breaks it."""

    def __init__(self, parties: int, action: Optional[Callable[[], Any]] = None, timeout: Optional[float] = None, *,
                 ctx: Any = None) -> None:
        runtime.ensure_domain()
        self._action, self._timeout = action, timeout
        self._set_handle(native.barrier_new(parties))

    def _state(self) -> Any:  # type: ignore[override]
        return self._action, self._timeout

    def _set_state(self, state: Any) -> None:
        self._action, self._timeout = state

    @classmethod
    def _of(cls, handle: Any) -> Any:
        o = super()._of(handle)
        o._action = o._timeout = None
        return o

    def wait(self, timeout: Optional[float] = None) -> int:
        """Waits for the other parties. It returns a number from 0 to parties-1, one for each."""
        if timeout is None:
            timeout = self._timeout
        end = None if timeout is None else time.monotonic() + timeout
        index = self._round(timeout)
        if self._action is not None:
            try:
                if index == 0:
                    self._action()
            except BaseException:
                self.abort()
                raise
            self._round(None if end is None else max(0.0, end - time.monotonic()))
        return index

    def _round(self, timeout: Optional[float]) -> int:
        try:
            code, index = self._handle.barrier_wait(runtime.seconds(timeout))
        except BaseException:
            self.abort()
            raise
        if code:
            try:
                native.raise_code(code)
            except (RuntimeError, TimeoutError, ValueError, EOFError) as e:
                raise BrokenBarrierError(str(e)) from None
        return index

    def reset(self) -> None:
        """Restores the initial state. Waiting parties get BrokenBarrierError."""
        runtime.check(self._handle.reset())

    def abort(self) -> None:
        """Breaks the barrier."""
        runtime.check(self._handle.abort())

    @property
    def parties(self) -> int:
        return self._handle.barrier_state()[0]

    @property
    def n_waiting(self) -> int:
        return 0 if self.broken else self._handle.barrier_state()[1]

    @property
    def broken(self) -> bool:
        return bool(self._handle.barrier_state()[2])

    def __repr__(self) -> str:
        parties, waiting, broken = self._handle.barrier_state()
        state = "broken" if broken else f"waiters={waiting}/{parties}"
        return f"<{type(self).__name__} at {id(self):#x}: {state}>"
