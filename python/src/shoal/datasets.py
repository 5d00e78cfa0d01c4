"""Data sets that Go reads: each is an object for PyTorch's DataLoader, or for shoal.DataLoader.

In the workers of a loader Go makes the samples and the batches; see :mod:`shoal.context`. In every
other process a helper program makes the samples, so ``dataset[3]`` works anywhere.
"""

from __future__ import annotations

import functools
import json
import operator
import os
import sys
import types
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

import torch
import torch.utils.data

from . import _programs, _samples, context

PathLike = Union[str, "os.PathLike[str]"]
Paths = Union[PathLike, Iterable[PathLike]]
Columns = Union[Sequence[str], Mapping[str, Any], None]
Size = Union[int, Sequence[int], None]


class _Served:
    """The attributes that Go workers read from the pickle, and the helper program of this process."""

    shoal_dataset: str
    shoal_args: dict
    shoal_len: Optional[int] = None  # of a data set with numbered samples; Go refuses another length
    classes: Optional[List[str]] = None
    _kind = _samples.MAP
    _program: Optional[str] = None  # None is the program of the distribution
    _helper: Optional[_samples.Helper] = None
    _seed: Optional[int] = None  # of the samples in this process; None is PyTorch's

    def __init__(self, name: str, program: Optional[PathLike] = None, **options: Any) -> None:
        self._set_up(name, options, program)
        self._describe()

    def _set_up(self, name: str, options: Mapping[str, Any], program: Optional[PathLike] = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name of a data set: got {type(name).__name__}, want a str")
        context.install()
        given = {k: v for k, v in options.items() if v is not None}
        self.shoal_dataset, self.shoal_args = name, json.loads(json.dumps(given, default=_plain))
        if program is not None:
            self._program = os.path.abspath(os.fspath(program))

    def _describe(self) -> None:
        """Lets Go open the data set, which checks the options and the files, and say what it has."""
        helper = self._start_helper()
        try:
            told = helper.ask("describe", 0, "transform" in self.shoal_args)
        except RuntimeError as e:
            raise _samples.error_for(str(e), ValueError) from e
        finally:
            helper.close()
        self.shoal_len, self.classes = told["len"], told["classes"]

    def __getstate__(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k not in ("_helper", "samples")}

    def __repr__(self) -> str:
        args = ", ".join(f"{k}={v!r}" for k, v in self.shoal_args.items())
        return f"{type(self).__name__}({args})"

    @property
    def program(self) -> str:
        """The path of the Go program that reads the samples."""
        return self._program or _programs.find("shoal-loader")

    def _connect(self) -> _samples.Helper:
        """Returns the helper program of this process. It starts one if there is none."""
        if self._helper is None or not self._helper.usable:
            self._helper = None
            self._helper = self._start_helper()
        return self._helper

    def _start_helper(self) -> _samples.Helper:
        sent = types.SimpleNamespace(shoal_dataset=self.shoal_dataset, shoal_args=self.shoal_args,
                                     shoal_len=self.shoal_len)
        return _samples.Helper(self.program, sent, self._kind, self._seed)

    def _finish(self, sample: Any) -> Any:
        """Makes a sample of Go the sample of this data set."""
        return sample


class _Images(_Served):
    """Images and their classes, with a transform that Go or Python applies."""

    _transform: Optional[Callable] = None
    _refusal: Optional[str] = None  # why Python applies the transform

    @property
    def transform(self) -> Optional[Callable]:
        """The transform. A new one also replaces the options such as ``resize``."""
        return self._transform

    @transform.setter
    def transform(self, transform: Optional[Callable]) -> None:
        for name in _STEPS:
            self.shoal_args.pop(name, None)
        self._use_transform(transform)

    def _use_transform(self, transform: Optional[Callable]) -> None:
        """Gives a transform to Go if Go knows it. Otherwise Python applies it."""
        if transform is not None and not callable(transform):
            raise TypeError(f"transform: got {type(transform).__name__}, want a transform of torchvision")
        steps = sorted(_STEPS & self.shoal_args.keys())
        if transform is not None and steps:
            raise ValueError(f"transform and {', '.join(steps)}: put them into the transform, or leave it out")
        self._transform, self._refusal, self._helper = transform, None, None
        self.shoal_args.pop("transform", None)
        if transform is not None:
            self.shoal_args["transform"] = transform
            try:
                return self._describe()
            except Exception as e:  # also a transform that cannot be pickled
                self._refusal = str(e).rpartition("unsupported value: ")[2]
            del self.shoal_args["transform"]
            self.shoal_args["dtype"] = "uint8"
        self._describe()

    def _finish(self, sample: Any) -> Any:
        image, label = sample
        if self._refusal is not None and self._transform is not None:
            from PIL import Image  # a transform gets what torchvision's ImageFolder gives it

            pixels = image.permute(1, 2, 0).numpy()
            image = self._transform(Image.fromarray(pixels if image.shape[0] > 1 else pixels[..., 0]))
        return image, label


class Dataset(_Served, torch.utils.data.Dataset[Any]):
    """A map-style data set by its registered name: one of shoal-loader, or of a Go program.

    ``options`` are the keyword arguments of the Go data set. ``program`` is the path of a Go program
    that calls ``torch.Child.Main``; the default is the shoal-loader of this package. The constructor
    raises FileNotFoundError, ValueError or TypeError with the program's text if it cannot open the
    data set. ``classes`` is the list of class names, or None.
    """

    def __len__(self) -> int:
        return self.shoal_len or 0

    @property
    def class_to_idx(self) -> Dict[str, int]:
        """The number of each class by its name."""
        return {name: i for i, name in enumerate(self.classes or ())}

    def __getitem__(self, index: Any) -> Any:
        return self._read("get", [index])[0]

    def __getitems__(self, indices: Sequence[Any]) -> list:
        """Returns the samples of a batch, padded if ``pad`` was given. A DataLoader collates them."""
        if type(self).__getitem__ is not Dataset.__getitem__:
            return [self[i] for i in indices]  # a subclass makes other samples
        return self._read("batch", indices)

    def _read(self, what: str, indices: Iterable[Any]) -> list:
        numbers, n = [], len(self)
        for index in indices:
            try:
                i = operator.index(index)
            except TypeError as e:
                raise TypeError(f"index of a data set: got {type(index).__name__}, want an int; "
                                "torch.utils.data.Subset selects several samples") from e
            if not -n <= i < n:
                raise IndexError(f"sample {i} of a data set of {n} samples")
            numbers.append(i % n)
        draws = self._program is not None or not _RANDOM.isdisjoint(self.shoal_args)
        # The random part of a request is of PyTorch's generator, as that of transforms in Python.
        epoch = int(torch.empty((), dtype=torch.int64).random_(1 << 31)) if draws else 0
        return [self._finish(s) for s in self._connect().ask(what, epoch, numbers)]

    def __iter__(self) -> Iterator[Any]:
        if type(self).__getitem__ is not Dataset.__getitem__:
            yield from map(self.__getitem__, range(len(self)))
            return
        for start in range(0, len(self), 16):
            yield from self._read("get", range(start, min(start + 16, len(self))))


class Stream(_Served, torch.utils.data.IterableDataset[Any]):
    """A stream by its registered name, with the arguments of :class:`Dataset`.

    Each worker reads a part of the stream. The constructor reads one sample.
    """

    _kind = _samples.STREAM
    _iterations = 0

    def __iter__(self) -> Iterator[Any]:
        helper, epoch = self._start_helper(), self._iterations
        self._iterations += 1
        try:
            helper.ask("begin", epoch)
            n = 1
            while True:
                samples = helper.ask("next", epoch, n)
                if not samples:
                    return
                for s in samples:
                    yield self._finish(s)
                n = min(2 * n, 16)
        finally:
            helper.close()


class ImageFolder(_Images, Dataset):
    """Images in a folder for each class: torchvision's ImageFolder, read by Go.

    A sample is an image of shape (C, H, W) and the number of its class. ``transform`` is a transform
    of torchvision, which Go executes if it ends with a float32 tensor; if Go does not know it,
    Python workers call it with a Pillow image, and a warning says so. In its place the options
    may be given, which are applied in this order: ``resize`` (the shorter side, or height and
    width), ``crop`` (the middle), ``random_crop``, ``random_resized_crop``, ``flip`` and
    ``vertical_flip`` (probabilities), ``mean`` and ``std``. Images are float32 from 0 to 1, or bytes
    with ``dtype="uint8"``. ``channels=1`` makes them grey. With ``skip`` a batch leaves out
    images that cannot be read, after ``retries`` further attempts.
    """

    def __init__(self, root: PathLike, transform: Optional[Callable] = None, *, resize: Size = None,
                 crop: Size = None, random_crop: Size = None, random_resized_crop: Size = None,
                 flip: Optional[float] = None, vertical_flip: Optional[float] = None,
                 mean: Optional[Sequence[float]] = None, std: Optional[Sequence[float]] = None,
                 dtype: Any = None, channels: Optional[int] = None, skip: bool = False,
                 retries: Optional[int] = None) -> None:
        self._set_up("images", _given(locals()))
        self._use_transform(transform)
        self.root = self.shoal_args["root"]

    @functools.cached_property
    def samples(self) -> List[tuple]:
        """The path and the class of each image, as torchvision's ImageFolder lists them."""
        paths, numbers = self._connect().ask("list", 0)
        return [(os.path.join(self.root, path), number) for path, number in zip(paths, numbers)]

    @property
    def imgs(self) -> List[tuple]:
        """The same as ``samples``."""
        return self.samples

    @property
    def targets(self) -> List[int]:
        """The class of each image."""
        return [number for _, number in self.samples]


class WebDataset(_Images, Stream):
    """Tar files in the layout of WebDataset, with an image and ``.cls`` for each sample.

    ``paths`` is a path, a pattern such as ``"train-{000..012}.tar"``, or a list. Each worker of each
    rank (``rank`` of ``world``) reads a part of the files; with ``equal`` each reads the same number
    of samples. ``shuffle`` is the size of the buffer from which each worker draws; ``seed`` and
    ``epoch`` choose the order. The other arguments are those of :class:`ImageFolder`.
    """

    def __init__(self, paths: Paths, transform: Optional[Callable] = None, *,
                 shuffle: Union[bool, int] = False, seed: Optional[int] = None, epoch: int = 0,
                 rank: int = 0, world: int = 1, equal: bool = False, resize: Size = None,
                 crop: Size = None, random_crop: Size = None, random_resized_crop: Size = None,
                 flip: Optional[float] = None, vertical_flip: Optional[float] = None,
                 mean: Optional[Sequence[float]] = None, std: Optional[Sequence[float]] = None,
                 dtype: Any = None, channels: Optional[int] = None, skip: bool = False) -> None:
        self._set_up("shards", _given(locals()))
        self._use_transform(transform)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which chooses the order of the next iteration."""
        self.shoal_args["epoch"] = int(epoch)


class Parquet(Dataset):
    """Rows of Parquet files. A sample is a dict.

    ``paths`` is a path, a pattern, or a list. ``columns`` is a list of names, or a dict of names and
    dtypes. ``pad`` fills up lists of different lengths in a batch: a number, or a dict of columns.
    ``cache`` and ``spill`` are the bytes of rows that each worker keeps in memory and in a temporary
    file.
    """

    def __init__(self, paths: Paths, columns: Columns = None, *, pad: Any = None,
                 cache: Optional[int] = None, spill: Optional[int] = None, skip: bool = False,
                 retries: Optional[int] = None) -> None:
        super().__init__("parquet", **_given(locals()))


class JSONLines(Dataset):
    """Lines of JSON files. A sample is the value of a line: a dict, if it is an object.

    The arguments are those of :class:`Parquet`.
    """

    def __init__(self, paths: Paths, columns: Columns = None, *, pad: Any = None, skip: bool = False,
                 retries: Optional[int] = None) -> None:
        super().__init__("jsonl", **_given(locals()))


class Tokens(Dataset):
    """Windows of a file of tokens (``.bin`` or ``.npy``), or the token lists of a ``.jsonl`` file.

    A sample of a file of tokens is a window of ``length`` tokens, and the window one token later;
    windows begin ``stride`` tokens apart. ``dtype`` is the dtype of a ``.bin``: uint16 by default.
    A sample of a ``.jsonl`` is the list of a line (of its ``column``, if the line is an object), cut or
    filled up with ``pad`` to ``length``, and the number of its tokens. A token of ``vocabulary`` or
    more is an error.
    """

    def __init__(self, path: PathLike, length: int, *, stride: Optional[int] = None, dtype: Any = None,
                 vocabulary: Optional[int] = None, column: Optional[str] = None,
                 pad: Optional[int] = None, skip: bool = False, retries: Optional[int] = None) -> None:
        super().__init__("tokens", **_given(locals()))


class Npy(Dataset):
    """Arrays in files of numpy. Sample i is a tuple of row i of each file."""

    def __init__(self, paths: Paths, *, skip: bool = False, retries: Optional[int] = None) -> None:
        super().__init__("npy", **_given(locals()))


# The options that a transform replaces, and those by which samples are random.
_STEPS = {"resize", "crop", "random_crop", "random_resized_crop", "flip", "vertical_flip", "mean", "std", "dtype"}
_RANDOM = {"transform", "flip", "vertical_flip", "random_crop", "random_resized_crop"}


def _given(arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the options that differ from None and False, from the local variables of a constructor."""
    options = {k: v for k, v in arguments.items()
               if v is not None and v is not False and k not in ("self", "__class__", "transform")}
    for name in {"root", "path", "paths"} & options.keys():
        options[name] = _path(options[name])
    return options


def _path(v: Any) -> Any:
    if isinstance(v, (str, bytes, os.PathLike)):
        return os.path.expanduser(os.fsdecode(v))
    return [_path(item) for item in v]


def _plain(v: Any) -> Any:
    """Converts a path, a dtype, an array, a scalar or a mapping to a value that JSON can represent."""
    numpy: Any = sys.modules.get("numpy")
    if isinstance(v, os.PathLike):
        return os.fsdecode(v)
    if isinstance(v, torch.dtype):
        return str(v)[len("torch."):]
    if numpy and (isinstance(v, numpy.dtype) or isinstance(v, type) and issubclass(v, numpy.generic)):
        return numpy.dtype(v).name
    if isinstance(v, Mapping):
        return dict(v)
    if hasattr(v, "tolist"):
        return v.tolist()
    raise TypeError(f"option {v!r}: want a value that JSON can represent")
