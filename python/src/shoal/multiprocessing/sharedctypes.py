"""Values and arrays of ctypes in shared memory, with the interface of multiprocessing.sharedctypes."""

from __future__ import annotations

import ctypes
from multiprocessing import sharedctypes as _std
from multiprocessing.context import assert_spawning
from multiprocessing.reduction import ForkingPickler
from typing import Any

from . import runtime
from .runtime import native
from .synchronize import RLock

Synchronized, SynchronizedArray = _std.Synchronized, _std.SynchronizedArray
SynchronizedBase, SynchronizedString = _std.SynchronizedBase, _std.SynchronizedString
synchronized = _std.synchronized
typecode_to_type = _std.typecode_to_type

__all__ = ["Array", "RawArray", "RawValue", "Value", "copy", "synchronized"]


def _of_handle(type_: Any, handle: Any) -> Any:
    """Returns an object of ctypes over a block, which it keeps."""
    address, size = handle.memory()
    if size < ctypes.sizeof(type_):
        raise ValueError(f"a block of {size} bytes for {type_}, want {ctypes.sizeof(type_)}")
    obj = type_.from_address(address)
    obj._shoal_handle = handle
    return obj


def _new(type_: Any) -> Any:
    runtime.ensure_domain()
    handle = native.memory_new(None, max(ctypes.sizeof(type_), 1))
    ForkingPickler.register(type_, _reduce)
    if issubclass(type_, ctypes.Array):
        ForkingPickler.register(type_, _reduce)
    return _of_handle(type_, handle)


def _reduce(obj: Any) -> Any:
    handle = getattr(obj, "_shoal_handle", None)
    if handle is None:
        return _std.reduce_ctype(obj)
    assert_spawning(obj)
    token = runtime.export_object(handle)
    if isinstance(obj, ctypes.Array):
        return _rebuild, (obj._type_, obj._length_, token)
    return _rebuild, (type(obj), None, token)


def _rebuild(type_: Any, length: Any, token: bytes) -> Any:
    if length is not None:
        type_ = type_ * length
    ForkingPickler.register(type_, _reduce)
    return _of_handle(type_, runtime.import_object(token))


def RawValue(typecode_or_type: Any, *args: Any) -> Any:
    """Returns an object of ctypes in shared memory, without a lock."""
    obj = _new(typecode_to_type.get(typecode_or_type, typecode_or_type))
    obj.__init__(*args)
    return obj


def RawArray(typecode_or_type: Any, size_or_initializer: Any) -> Any:
    """Returns an array of ctypes in shared memory, without a lock."""
    type_ = typecode_to_type.get(typecode_or_type, typecode_or_type)
    if isinstance(size_or_initializer, int):
        return _new(type_ * size_or_initializer)
    result = _new(type_ * len(size_or_initializer))
    result.__init__(*size_or_initializer)
    return result


def _with_lock(obj: Any, lock: Any, ctx: Any) -> Any:
    if lock is False:
        return obj
    if lock in (True, None):
        lock = RLock()
    if not hasattr(lock, "acquire"):
        raise AttributeError(f"{lock!r} has no method 'acquire'")
    return synchronized(obj, lock, ctx=ctx)


def Value(typecode_or_type: Any, *args: Any, lock: Any = True, ctx: Any = None) -> Any:
    """Returns an object of ctypes in shared memory, with a lock unless ``lock`` is False."""
    return _with_lock(RawValue(typecode_or_type, *args), lock, ctx)


def Array(typecode_or_type: Any, size_or_initializer: Any, *, lock: Any = True, ctx: Any = None) -> Any:
    """Returns an array of ctypes in shared memory, with a lock unless ``lock`` is False."""
    return _with_lock(RawArray(typecode_or_type, size_or_initializer), lock, ctx)


def copy(obj: Any) -> Any:
    """Returns a copy of an object of ctypes in shared memory."""
    result = _new(type(obj))
    ctypes.pointer(result)[0] = obj
    return result
