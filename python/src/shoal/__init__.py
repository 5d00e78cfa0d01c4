"""Data sets and data loaders for PyTorch whose samples are read by Go, and shared memory for tensors.

A data set such as :class:`ImageFolder` can be passed to any ``DataLoader`` of PyTorch: its workers
are then processes of a Go program that this package contains. :class:`DataLoader` has PyTorch's
arguments and can also resume in the middle of an epoch. PyTorch is imported when the first name of
this package is used, and not by ``import shoal``. :mod:`shoal.multiprocessing` has the queues, locks
and values of :mod:`torch.multiprocessing`; :func:`empty`, :func:`zeros` and :func:`empty_array` make
tensors and arrays that they pass without a copy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

from ._programs import check_platform, version

if TYPE_CHECKING:
    from .context import get_context
    from .datasets import (Dataset, ImageFolder, JSONLines, Npy, Parquet, Stream, Tokens,
                           WebDataset)
    from .loader import DataLoader
    from .multiprocessing.tensors import empty, empty_array, is_shared, zeros

    __version__: str

__all__ = ["DataLoader", "Dataset", "ImageFolder", "JSONLines", "Npy", "Parquet", "Stream",
           "Tokens", "WebDataset", "__version__", "empty", "empty_array", "get_context", "is_shared",
           "zeros"]

check_platform()
_MODULES = {"DataLoader": "loader", "get_context": "context",
            **dict.fromkeys(("empty", "empty_array", "is_shared", "zeros"), "multiprocessing.tensors")}


if not TYPE_CHECKING:  # a type checker would take it for a module with any name

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            found = version() if name == "__version__" else getattr(
                importlib.import_module("." + _MODULES.get(name, "datasets"), __name__), name)
        except ModuleNotFoundError as e:
            if e.name != "torch":
                raise
            raise ImportError(f"shoal.{name} needs PyTorch: pip install torch") from e
        globals()[name] = found  # the next use does not come here
        return found


def __dir__() -> List[str]:
    return [*globals(), *__all__]
