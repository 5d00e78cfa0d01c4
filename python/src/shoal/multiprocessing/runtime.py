"""The library in this process: loading, the domain, errors, forks and the end of the process.

A process gets its domain with its first object. It joins the domain that the environment variable
SHOAL_DOMAIN names, which is ``address`` and a key in hexadecimal, separated by a space. Otherwise it
makes one, and sets the variable for its children.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import sys
import threading
from multiprocessing import util as _util
from typing import Any, Callable, Optional

VARIABLE = "SHOAL_DOMAIN"
_PREFIX = "@shoal-python-"  # of the addresses that this module makes
JOIN_TIMEOUT = 30.0  # seconds to join a domain or to import an object
TOKEN_LIFETIME = 600.0  # seconds in which a started process must import its objects

# The codes of libshoal/shoal.h.
OK, CLOSED, TIMEOUT, EMPTY, FULL, LOCKED, INTERRUPTED, OWNER_DIED, NOT_OWNER, BROKEN, RELEASED, PEER_DIED = range(12)
(TOO_LARGE, NO_MEMORY, VERSION, KEY, PERMISSION, NAME_TAKEN, NOT_FOUND, ARGUMENT, HANDLE, FORKED, TYPE, DOMAIN,
 SYSTEM, INTERNAL, UNSUPPORTED) = range(12, 27)

# Kinds of objects.
(TENSOR, MESSAGE, QUEUE, JOINABLE, SENDER, RECEIVER, PIPE, LATEST, MUTEX, RMUTEX, SEMAPHORE, COND, EVENT, BARRIER,
 MEMORY) = range(1, 16)
SENDING, RECEIVING = 1, 2


class ShoalError(RuntimeError):
    """An error of shared memory. ``code`` is the library's code."""

    code = INTERNAL


class PeerDiedError(ShoalError):
    """A process died before it completed its work. ``pid`` is its process id, or 0."""

    pid = 0


class OwnerDiedError(PeerDiedError):
    """The process that held a lock died, so that the data that it guards may be inconsistent.

    It is raised once, by the ``acquire`` that came next, which does not hold the lock. The caller
    should repair the data, and may acquire the lock again.
    """


class LostError(PeerDiedError):
    """A process died before it called ``task_done`` for the tasks that it had received."""


class DomainFullError(ShoalError, MemoryError):
    """The shared memory is used up. The message names the processes that hold it."""


_TYPES: dict = {
    CLOSED: EOFError, OWNER_DIED: OwnerDiedError, PEER_DIED: LostError, NO_MEMORY: DomainFullError,
    TOO_LARGE: ValueError, VERSION: ShoalError, KEY: PermissionError, PERMISSION: PermissionError,
    NAME_TAKEN: FileExistsError, NOT_FOUND: FileNotFoundError, ARGUMENT: ValueError, HANDLE: ValueError,
    TYPE: TypeError, SYSTEM: OSError, TIMEOUT: TimeoutError, RELEASED: ValueError, NOT_OWNER: ValueError,
}


def error(code: int, text: str, pid: int = 0) -> Exception:
    """Returns the exception for a code of the library."""
    e = _TYPES.get(code, ShoalError)(text)
    if isinstance(e, ShoalError):
        e.code = code
        if isinstance(e, PeerDiedError):
            e.pid = pid
    return e


def _check_python() -> None:
    """Raises ImportError on a Python that the extension does not support."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or sys.abiflags.startswith("t"):
        raise ImportError("shoal.multiprocessing does not support free-threaded Python: use a Python with the GIL, "
                          f"not {sys.executable}")


_check_python()
try:
    from shoal import _native as native
except ImportError as _e:
    raise ImportError(f"shoal.multiprocessing needs the extension shoal._native: {_e}; install a wheel of shoal for "
                      "CPython 3.9 or later on Linux (pip install --force-reinstall shoal), or build it with "
                      "scripts/native") from _e
native.check_interpreter()


def library_path() -> str:
    """Returns the path of libshoal.so: beside the extension, or as SHOAL_LIBRARY says."""
    path = os.environ.get("SHOAL_LIBRARY") or os.path.join(os.path.dirname(native.__file__), "libshoal.so")
    if not os.path.exists(path):
        raise ImportError(f"{path} is missing: install a wheel of shoal (pip install --force-reinstall shoal), build "
                          "it with scripts/native, or set SHOAL_LIBRARY to the file")
    return path


def _copy_library() -> str:
    """Returns the path of a copy of the library in memory, which the loader takes for another library."""
    path = library_path()
    size = os.stat(path).st_size
    fd = os.memfd_create("libshoal.so", os.MFD_CLOEXEC)
    with open(path, "rb") as f:
        done = 0
        while done < size:
            n = os.sendfile(fd, f.fileno(), done, size - done)
            if n == 0:
                raise ImportError(f"{path} has been truncated: install shoal again")
            done += n
    return f"/proc/self/fd/{fd}"


_lock = threading.RLock()
_forked = False  # this process was forked after the library was loaded, and has not loaded its own copy yet
_loaded = False
_listener: Any = None


def _load() -> None:
    """Loads the library, and imports the objects that this process has inherited by fork."""
    global _forked, _loaded
    with _lock:
        if not _forked:
            native.load(library_path())
        else:
            path = _copy_library()
            try:
                native.load(path)
            finally:
                os.close(int(path.rsplit("/", 1)[1]))
            _forked = False
            native.fork_import(JOIN_TIMEOUT)
        _loaded = True
        _register_exit()
        _name_child()


def ensure_domain() -> None:
    """Joins the domain of the environment, or makes one that children can join."""
    if _listener is not None or native.joined():
        return
    with _lock:
        if _listener is None and not native.joined() and not _join_inherited():
            _make_domain()


def _join_inherited() -> bool:
    """Joins the domain that the environment names. It returns False if there is none any more."""
    value = os.environ.get(VARIABLE)
    if not value:
        return False
    address, _, key = value.rpartition(" ")
    try:
        secret = bytes.fromhex(key)
    except ValueError:
        secret = b""
    if not address or not secret:
        raise ValueError(f"{VARIABLE}={value!r}: want an address, a space, and a key in hexadecimal")
    try:
        native.join(address, secret, JOIN_TIMEOUT)
    except FileNotFoundError:
        if not address.startswith(_PREFIX):
            raise
        return False  # the program that set the variable has ended
    return True


def _make_domain() -> None:
    """Makes a domain, and lets the children of this process join it."""
    global _listener
    budget = os.environ.get("SHOAL_BUDGET")
    native.create(int(budget) if budget else 0)
    address, key = f"{_PREFIX}{os.getpid()}-{os.urandom(8).hex()}", os.urandom(32)
    _listener = native.listen(address, key)
    os.environ[VARIABLE] = f"{address} {key.hex()}"


def _before_fork() -> None:
    _lock.acquire()
    try:
        native.fork_before()
    except Exception as e:
        sys.stderr.write(f"shoal: the child that is forked now cannot use shared objects: {e}\n")


def _after_fork_parent() -> None:
    try:
        native.fork_parent()
    finally:
        _lock.release()


def _after_fork_child() -> None:
    global _lock, _forked, _listener
    _lock = threading.RLock()
    _forked, _listener = _forked or _loaded, None
    native.fork_child()
    for hook in _fork_hooks:
        hook()


_fork_hooks: list = []


def after_fork(hook: Callable[[], None]) -> None:
    """Registers a function that resets the state of a module in a forked child."""
    _fork_hooks.append(hook)


def _register_exit() -> None:
    """Makes this process leave the domain in an orderly way when it ends as multiprocessing's children do.

    Children under fork and forkserver end by os._exit after the finalizers. All others leave the
    domain when the interpreter has ended. A child of multiprocessing drops the finalizers that it
    has when it begins, and then runs the functions that are registered to run after a fork.
    """
    _util.Finalize(None, _leave_child, args=(os.getpid(),), exitpriority=-100)


def _leave_child(pid: int) -> None:
    child = multiprocessing.parent_process() is not None
    if pid == os.getpid() and child and type(multiprocessing.current_process())._start_method != "spawn":
        native.leave(0)


def _name_child() -> None:
    """Gives a child of multiprocessing its name, under which ``shoal ps`` shows it."""
    process = multiprocessing.current_process()
    if multiprocessing.parent_process() is not None or getattr(process, "_inheriting", False):  # unpickled just now
        name = "".join(c for c in process.name if c.isprintable())
        try:
            native.set_process_name(name.encode()[:15].decode(errors="ignore") or "python")
        except (ValueError, OSError):
            pass  # without /proc


class _Exit:
    """The owner of a registration, which lives as long as this module."""


_exit = _Exit()
_util.register_after_fork(_exit, lambda _: _register_exit())


def _refuse(t: Any) -> bool:
    from . import tensors

    return tensors.refuse(t)


def _need(kind: str) -> None:
    from . import tensors

    tensors.need(kind)


def _dumps(obj: Any, persistent_id: Callable) -> bytes:
    from . import values

    return values.dumps(obj, persistent_id)


def _loads(data: bytes, persistent_load: Callable) -> Any:
    from . import values

    return values.loads(data, persistent_load)


native.register(reload=_load, error=error, empty=queue.Empty, full=queue.Full, dumps=_dumps, loads=_loads,
                refuse=_refuse, need=_need)
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_parent, after_in_child=_after_fork_child)


def import_object(token: bytes) -> Any:
    """Returns a handle of the object of a token that another process has exported."""
    return native.import_token(token, JOIN_TIMEOUT)


def export_object(handle: Any, uses: int = 1, lifetime: float = TOKEN_LIFETIME) -> bytes:
    """Returns a token of an object, for one process."""
    return handle.export(uses, lifetime)


def check(code: int) -> None:
    """Raises the error of a code, with the text of the last error of this thread."""
    if code:
        native.raise_code(code)


def seconds(timeout: Optional[float]) -> Optional[float]:
    """Returns a timeout of the library: None is forever, and a negative number is 0."""
    return None if timeout is None else max(0.0, timeout)


def set_process_name(name: str) -> None:
    """Sets the name under which ``shoal ps``, ``top`` and ``doctor`` show this process."""
    native.set_process_name(name)


def stats() -> dict:
    """Returns figures of the domain: processes, bytes, blocks, limits."""
    return native.stats()


def leave(timeout: float = 0.0) -> None:
    """Leaves the domain. No object or tensor of it may be used afterwards.

    Objects that were sent to processes that have not started yet are kept for ``timeout`` seconds.
    """
    native.leave(timeout)
