"""Coroutines that wait for descriptors."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

_waiters: Dict[Tuple[int, int], List[Any]] = {}


async def wait_readable(fd: int) -> None:
    """Waits until a descriptor is readable. Several coroutines may wait for one descriptor."""
    import asyncio  # which takes 30 ms to import

    loop = asyncio.get_running_loop()
    key = (id(loop), fd)
    future = loop.create_future()
    futures = _waiters.setdefault(key, [])
    futures.append(future)
    if len(futures) == 1:
        loop.add_reader(fd, _wake, loop, fd)
    try:
        await future
    finally:
        if future in futures:
            futures.remove(future)
        if not futures and _waiters.get(key) is futures:
            del _waiters[key]
            loop.remove_reader(fd)


def _wake(loop: Any, fd: int) -> None:
    """Ends all waits for a descriptor: each coroutine tries again."""
    loop.remove_reader(fd)
    for future in _waiters.pop((id(loop), fd), []):
        if not future.done():
            future.set_result(None)
