"""Data sets and data loaders for PyTorch whose samples are read by Go.

A data set such as :class:`ImageFolder` can be passed to any ``DataLoader`` of PyTorch: its workers
are then processes of a Go program that this package contains. :class:`DataLoader` has PyTorch's
arguments and can also resume in the middle of an epoch. PyTorch is imported when the first name of
this package is used, and not by ``import shoal``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._programs import __version__, check_platform

if TYPE_CHECKING:
    from .context import get_context
    from .datasets import (Dataset, ImageFolder, JSONLines, Npy, Parquet, Stream, Tokens,
                           WebDataset)
    from .loader import DataLoader

__all__ = ["DataLoader", "Dataset", "ImageFolder", "JSONLines", "Npy", "Parquet", "Stream",
           "Tokens", "WebDataset", "__version__", "get_context"]

check_platform()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import context, datasets, loader
    except ModuleNotFoundError as e:
        if e.name != "torch":
            raise
        raise ImportError(f"shoal.{name} needs PyTorch: pip install torch") from e
    module: Any = {"DataLoader": loader, "get_context": context}.get(name, datasets)
    return getattr(module, name)
