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


def dumps(obj: Any, persistent_id: Callable[[Any], Any]) -> bytes:
    """Pickles an object. persistent_id returns the ids of tensors and arrays, and None for all else."""
    tensors.register()
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, 5)
    pickler.dispatch_table = _dispatch_table()
    pickler.persistent_id = persistent_id  # type: ignore[method-assign]
    pickler.dump(obj)
    return buffer.getvalue()


def loads(data: bytes, persistent_load: Callable[[Any], Any]) -> Any:
    """Unpickles an object. persistent_load returns the tensor or array of an id."""
    unpickler = pickle.Unpickler(io.BytesIO(data))
    unpickler.persistent_load = persistent_load  # type: ignore[method-assign]
    return unpickler.load()
