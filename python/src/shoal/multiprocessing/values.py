"""Pickles of values that the extension does not write itself."""

from __future__ import annotations

import copyreg
import io
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any, Callable

from . import tensors

_tables: dict = {}


def _dispatch_table() -> dict:
    """Returns the reducers: those of copyreg and multiprocessing, and ours for tensors that require grad."""
    extra = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    version = (len(copyreg.dispatch_table), len(extra), tensors.torch is not None)
    if version not in _tables:
        _tables.clear()
        table = {**copyreg.dispatch_table, **extra}
        _tables[version] = tensors.replace_reducers(table)
    return _tables[version]


class _Pickler(pickle.Pickler):
    """A Pickler whose persistent_id is a function of the extension.

    The attribute must be set before __init__: from Python 3.13 on it is found there, and a Pickler
    itself has no attributes of its own.
    """

    def __init__(self, buffer: io.BytesIO, persistent_id: Callable[[Any], Any]) -> None:
        self.persistent_id = persistent_id  # type: ignore[method-assign]
        super().__init__(buffer, 5)


class _Unpickler(pickle.Unpickler):
    """An Unpickler whose persistent_load is a function of the extension."""

    def __init__(self, data: bytes, persistent_load: Callable[[Any], Any]) -> None:
        self.persistent_load = persistent_load  # type: ignore[method-assign]
        super().__init__(io.BytesIO(data))


def dumps(obj: Any, persistent_id: Callable[[Any], Any]) -> bytes:
    """Pickles an object. persistent_id returns the ids of tensors and arrays, and None for all else."""
    tensors.register()
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, persistent_id)
    pickler.dispatch_table = _dispatch_table()
    pickler.dump(obj)
    return buffer.getvalue()


def loads(data: bytes, persistent_load: Callable[[Any], Any]) -> Any:
    """Unpickles an object. persistent_load returns the tensor or array of an id."""
    return _Unpickler(data, persistent_load).load()
