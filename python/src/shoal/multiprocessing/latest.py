"""The latest value of a producer, for example model weights."""

from __future__ import annotations

from queue import Empty
from typing import Any, Optional, Tuple

from . import runtime
from .objects import Shared
from .runtime import native
from .waiters import wait_readable


class Latest(Shared):
    """One value, which any process may replace while others still use the previous one.

    A loaded value keeps its tensors: a later ``store`` does not change them, and never waits for a
    reader. A value outlives the process that stored it. Versions start at 1 and only grow. Tensors
    of a value should not be written after ``store``.
    """

    def __init__(self, value: Any = None, *, ctx: Any = None) -> None:
        runtime.ensure_domain()
        self._set_handle(native.latest_new(value))

    def store(self, value: Any, timeout: Optional[float] = None) -> int:
        """Replaces the value, and returns its version. It waits only while another process stores."""
        return self._handle.store(value, timeout)

    def load(self) -> Any:
        """Returns the newest value."""
        return self._handle.load()[0]

    def load_version(self) -> Tuple[Any, int]:
        """Returns the newest value and its version."""
        return self._handle.load()

    @property
    def version(self) -> int:
        """The version of the newest value."""
        return self._handle.version()

    def wait(self, after: int = 0, timeout: Optional[float] = None) -> Tuple[Any, int]:
        """Waits for a version greater than ``after``. It returns the newest value and its version.

        It raises TimeoutError if there is none in time.
        """
        try:
            return self._handle.wait_newer(after, timeout)
        except Empty:
            raise TimeoutError(f"waited {timeout} s for a version after {after}: none was stored") from None

    async def wait_async(self, after: int = 0) -> Tuple[Any, int]:
        """Waits in a coroutine, without a thread."""
        while True:
            try:
                return self._handle.wait_newer(after, 0.0)
            except Empty:
                await wait_readable(self._handle.ready_fd(after))

    def close(self) -> None:
        """Closes it in this process. Values that were loaded stay valid."""
        self._handle.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}: version {self.version}>"
