"""Pipes of values, tensors and bytes, with the interface of multiprocessing.connection."""

from __future__ import annotations

from multiprocessing import connection as _std
from multiprocessing.context import BufferTooShort
from queue import Empty
from typing import Any, Optional, Tuple

from . import runtime
from .runtime import native
from .waiters import wait_readable

Client, Listener, wait = _std.Client, _std.Listener, _std.wait

__all__ = ["Client", "Connection", "Listener", "Pipe", "wait"]


class Connection:
    """An end of a pipe. ``multiprocessing.connection.wait`` accepts it.

    ``recv`` raises EOFError when all processes have closed the other end, or have died, and ``send``
    raises BrokenPipeError. Unlike multiprocessing's, it can be pickled into a queue or a pipe.
    """

    def __init__(self, handle: Any, readable: bool = True, writable: bool = True) -> None:
        self._handle: Any = handle
        self._readable, self._writable = readable, writable

    def __reduce__(self) -> Any:
        self._check(True, True)
        return _rebuild, (runtime.export_object(self._handle), self._readable, self._writable)

    def _check(self, readable: bool = False, writable: bool = False) -> Any:
        """Returns the handle if the connection is open. At least one of the given directions must be possible."""
        if self._handle is None:
            raise OSError("handle is closed")
        if not ((readable and self._readable) or (writable and self._writable)):
            raise OSError("connection is write-only" if readable else "connection is read-only")
        return self._handle

    @property
    def closed(self) -> bool:
        return self._handle is None

    @property
    def readable(self) -> bool:
        return self._readable

    @property
    def writable(self) -> bool:
        return self._writable

    def fileno(self) -> int:
        """Returns a descriptor that is readable while recv would not wait. It must not be read or closed."""
        return self._check(True, True).ready_fd()

    def close(self) -> None:
        """Closes the end in this process."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()

    def send(self, obj: Any) -> None:
        """Sends a value. Tensors within it are shared."""
        handle = self._check(writable=True)
        try:
            handle.put(obj)
        except EOFError as e:
            raise BrokenPipeError(32, str(e)) from None

    def recv(self) -> Any:
        """Receives a value."""
        return self._check(readable=True).get()

    async def recv_async(self) -> Any:
        """Receives a value in a coroutine, without a thread."""
        while True:
            handle = self._check(readable=True)
            try:
                return handle.get_within(0.0)
            except Empty:
                await wait_readable(handle.ready_fd())

    def send_bytes(self, buf: Any, offset: int = 0, size: Optional[int] = None) -> None:
        """Sends bytes, which recv_bytes receives."""
        handle = self._check(writable=True)
        m = memoryview(buf).cast("B")
        if offset < 0:
            raise ValueError("offset is negative")
        if len(m) < offset:
            raise ValueError("buffer length < offset")
        if size is None:
            size = len(m) - offset
        if size < 0:
            raise ValueError("size is negative")
        if offset + size > len(m):
            raise ValueError("buffer length < offset + size")
        try:
            handle.put_bytes(bytes(m[offset:offset + size]), None)
        except EOFError as e:
            raise BrokenPipeError(32, str(e)) from None

    def recv_bytes(self, maxlength: Optional[int] = None) -> bytes:
        """Receives bytes. A longer message than maxlength raises OSError, and closes this direction."""
        handle = self._check(readable=True)
        if maxlength is not None and maxlength < 0:
            raise ValueError("negative maxlength")
        data = handle.get_bytes(None)
        if maxlength is not None and len(data) > maxlength:
            if self._writable:
                self._readable = False
            else:
                self.close()
            raise OSError("bad message length")
        return data

    def recv_bytes_into(self, buf: Any, offset: int = 0) -> int:
        """Receives bytes into a buffer, and returns their number. It raises BufferTooShort with the bytes."""
        handle = self._check(readable=True)
        with memoryview(buf) as view, view.cast("B") as m:
            if offset < 0:
                raise ValueError("negative offset")
            if offset > len(m):
                raise ValueError("offset too large")
            data = handle.get_bytes(None)
            if len(m) < offset + len(data):
                raise BufferTooShort(data)
            m[offset:offset + len(data)] = data
            return len(data)

    def poll(self, timeout: Optional[float] = 0.0) -> bool:
        """Reports whether recv would not wait, after at most timeout seconds; None waits forever."""
        code = self._check(readable=True).poll(runtime.seconds(timeout))
        if code in (runtime.EMPTY, runtime.TIMEOUT):
            return False
        if code != runtime.CLOSED:
            runtime.check(code)
        return True

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *args: Any) -> None:
        self.close()


def _rebuild(token: bytes, readable: bool, writable: bool) -> Connection:
    return Connection(runtime.import_object(token), readable, writable)


def of_handle(handle: Any) -> Connection:
    """Returns the connection of a handle: a pipe, or an end of a queue."""
    kind = handle.kind
    return Connection(handle, kind != runtime.SENDER, kind != runtime.RECEIVER)


def Pipe(duplex: bool = True) -> Tuple[Connection, Connection]:
    """Returns two connections. If duplex is false, the first only receives and the second only sends."""
    runtime.ensure_domain()
    a, b = native.pipe_new(duplex)
    return Connection(a, True, bool(duplex)), Connection(b, bool(duplex), True)
