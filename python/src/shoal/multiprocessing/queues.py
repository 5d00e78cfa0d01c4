"""Queues of values and tensors.

A put is complete when it returns: there is no thread that sends later, and a value that cannot be
pickled raises in put. A value in a queue outlives the process that put it.
"""

from __future__ import annotations

import types
from queue import Empty, Full
from typing import Any, List, Optional

from . import runtime
from .connection import Pipe
from .objects import Shared
from .runtime import native
from .waiters import wait_readable

__all__ = ["Empty", "Full", "JoinableQueue", "Queue", "SimpleQueue"]

UNBOUNDED = -1


class Queue(Shared):
    """A queue of processes, as :func:`multiprocessing.Queue`."""

    _joinable = False

    def __init__(self, maxsize: int = 0, *, ctx: Any = None) -> None:
        runtime.ensure_domain()
        self._set_handle(native.queue_new(maxsize if maxsize > 0 else UNBOUNDED, self._joinable))

    def _set_handle(self, handle: Any) -> None:
        super()._set_handle(handle)
        self._closed = False
        self._get, self._put = handle.get, handle.put
        self._get_within, self._put_within = handle.get_within, handle.put_within

    def put(self, obj: Any, block: bool = True, timeout: Optional[float] = None) -> None:
        """Puts a value. It raises queue.Full if there is no room in time."""
        if block and timeout is None:
            return self._put(obj)
        return self._put_within(obj, timeout if block else 0.0)

    def get(self, block: bool = True, timeout: Optional[float] = None) -> Any:
        """Takes the oldest value. It raises queue.Empty if there is none in time."""
        if block and timeout is None:
            return self._get()
        return self._get_within(timeout if block else 0.0)

    def put_nowait(self, obj: Any) -> None:
        """Puts a value, or raises queue.Full at once."""
        return self._put_within(obj, 0.0)

    def get_nowait(self) -> Any:
        """Takes the oldest value, or raises queue.Empty at once."""
        return self._get_within(0.0)

    def get_many(self, n: int, timeout: Optional[float] = None) -> List[Any]:
        """Takes 1 to n values (at most 256), and waits only for the first. It raises queue.Empty."""
        return self._open().get_many(n, timeout)

    async def get_async(self) -> Any:
        """Takes the oldest value in a coroutine, without a thread."""
        while True:
            try:
                return self._get_within(0.0)
            except Empty:
                await wait_readable(self._open().ready_fd())

    async def put_async(self, obj: Any) -> None:
        """Puts a value in a coroutine. While the queue is full it tries again, at intervals of 0.1 to 10 ms."""
        import asyncio

        pause = 0.0001
        while True:
            try:
                return self._put_within(obj, 0.0)
            except Full:
                await asyncio.sleep(pause)
                pause = min(pause * 2, 0.01)

    def _open(self) -> Any:
        if self._closed:
            self._refuse()
        return self._handle

    def _refuse(self, *args: Any) -> Any:
        raise ValueError(f"Queue {self!r} is closed")

    def qsize(self) -> int:
        """Returns the number of values."""
        return self._handle.length()

    def empty(self) -> bool:
        return self._handle.length() == 0

    def full(self) -> bool:
        return self._handle.length() >= self._handle.capacity()

    def fileno(self) -> int:
        """Returns a descriptor that is readable while there is a value. See ``multiprocessing.connection.wait``."""
        return self._open().ready_fd()

    def close(self) -> None:
        """Closes the queue in this process. Values in it stay for the other processes."""
        if not self._closed:
            self._closed = True
            self._get = self._put = self._get_within = self._put_within = self._refuse
            self._handle.close()

    def join_thread(self) -> None:
        """Does nothing: values are in the queue when put returns."""
        assert self._closed, f"Queue {self!r} not closed"

    def cancel_join_thread(self) -> None:
        """Does nothing: the process never waits for its values to be received."""

    __class_getitem__ = classmethod(types.GenericAlias)


class JoinableQueue(Queue):
    """A queue that counts the tasks that are not done, as :func:`multiprocessing.JoinableQueue`."""

    _joinable = True

    def task_done(self) -> None:
        """Marks one received task as done. It raises ValueError if none is outstanding."""
        code = self._open().task_done()
        if code == runtime.RELEASED:
            raise ValueError("task_done() called too many times")
        runtime.check(code)

    def join(self) -> None:
        """Waits until all tasks are done. It raises LostError, when all others are done, if a process
        died before it had done its tasks."""
        runtime.check(self._open().task_join(None))


class _NoLock:
    """The lock of a SimpleQueue, which needs none, for callers that acquire it."""

    def acquire(self, block: bool = True, timeout: Optional[float] = None) -> bool:
        return True

    def release(self) -> None:
        pass

    __enter__ = acquire

    def __exit__(self, *args: Any) -> None:
        pass


class SimpleQueue:
    """A one-way pipe that several processes may use at both ends, as :func:`multiprocessing.SimpleQueue`."""

    def __init__(self, *, ctx: Any = None) -> None:
        self._reader, self._writer = Pipe(duplex=False)
        self._rlock = self._wlock = _NoLock()

    def __getstate__(self) -> Any:
        from multiprocessing import context

        context.assert_spawning(self)
        return self._reader, self._writer

    def __setstate__(self, state: Any) -> None:
        self._reader, self._writer = state
        self._rlock = self._wlock = _NoLock()

    def get(self) -> Any:
        """Takes the oldest value."""
        return self._reader.recv()

    def put(self, obj: Any) -> None:
        """Puts a value."""
        self._writer.send(obj)

    def empty(self) -> bool:
        return not self._reader.poll()

    def close(self) -> None:
        """Closes both ends in this process."""
        self._reader.close()
        self._writer.close()

    __class_getitem__ = classmethod(types.GenericAlias)


