"""Data sets that Go reads: each is an object for PyTorch's DataLoader, or for shoal.DataLoader.

In the workers of a loader Go makes the samples and the batches; see :mod:`shoal.context`. In every
other process a helper program makes the samples, so ``dataset[3]`` works anywhere.
"""

from __future__ import annotations

import operator
import os
import sys
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
    _kind = _samples.MAP
    _program: Optional[str] = None  # None is the program of the distribution
    _helper: Optional[_samples.Helper] = None

    def _open(self, name: str, options: Mapping[str, Any], program: Optional[PathLike]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name of a data set: got {type(name).__name__}, want a str")
        context.install()
        self.shoal_dataset = name
        self.shoal_args = {k: _plain(v) for k, v in options.items() if v is not None}
        if program is not None:
            self._program = os.path.abspath(os.fspath(program))

    def __getstate__(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k != "_helper"}

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
        sent = _Sent(self.shoal_dataset, self.shoal_args)
        if self.shoal_len is not None:
            sent.shoal_len = self.shoal_len
        return _samples.Helper(self.program, sent, self._kind, getattr(self, "_seed", None))

    def _epoch_of_request(self) -> int:
        """Draws the random part of a request from PyTorch's generator, as transforms in Python do."""
        if not self._draws:
            return 0
        return int(torch.empty((), dtype=torch.int64).random_(1 << 31).item())

    @property
    def _draws(self) -> bool:
        steps = ("transform", "flip", "vertical_flip", "random_crop", "random_resized_crop")
        return self._program is not None or any(step in self.shoal_args for step in steps)

    def _finish(self, sample: Any) -> Any:
        """Makes a sample of Go the sample of this data set."""
        return sample

    def _close(self) -> None:
        if self._helper is not None:
            self._helper.close()
            self._helper = None


class _Images(_Served):
    """Images and their classes, with a transform that Go or Python applies."""

    _transform: Optional[Callable] = None
    _refusal: Optional[str] = None  # why Python applies the transform
    _try_one: Callable[[], None]

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
        self._close()
        self._transform, self._refusal = transform, None
        self.shoal_args.pop("transform", None)
        if transform is None:
            return
        self.shoal_args["transform"] = transform
        try:
            self._try_one()
            return
        except Exception as e:  # also a transform that cannot be pickled
            self._refusal = str(e).rpartition("unsupported value: ")[2]
        del self.shoal_args["transform"]
        self.shoal_args["dtype"] = "uint8"
        self._close()
        try:
            self._try_one()
        except RuntimeError as e:
            raise _samples.error_for(str(e)) from e

    def _finish(self, sample: Any) -> Any:
        image, label = sample
        if self._refusal is not None and self._transform is not None:
            from PIL import Image  # a transform gets what torchvision's ImageFolder gives it

            pixels = image.permute(1, 2, 0).numpy()
            image = self._transform(Image.fromarray(pixels if image.shape[0] > 1 else pixels[..., 0]))
        return image, int(label)


class _Sent(_Served):
    """What a helper program needs of a data set."""

    def __init__(self, name: str, args: dict) -> None:
        self.shoal_dataset, self.shoal_args = name, args


class Dataset(_Served, torch.utils.data.Dataset[Any]):
    """A map-style data set by its registered name: one of shoal-loader, or of a Go program.

    ``options`` are the keyword arguments of the Go data set. ``program`` is the path of a Go program
    that calls ``torch.Child.Main``; the default is the shoal-loader of this package. The constructor
    raises FileNotFoundError, ValueError or TypeError with the program's text if it cannot open the
    data set. ``classes`` is the list of class names, or None.
    """

    classes: Optional[List[str]]

    def __init__(self, name: str, program: Optional[PathLike] = None, **options: Any) -> None:
        self._open(name, options, program)
        told = _samples.probe(self.program, name, self.shoal_args)
        self.shoal_len, self.classes = told["len"], told["classes"]

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

    def _try_one(self) -> None:
        self._read("get", [0])

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
        samples = self._connect().ask(what, self._epoch_of_request(), numbers)
        return [self._finish(s) for s in samples]

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
    _seed: Optional[int] = None  # of the iterations in this process; None is PyTorch's

    def __init__(self, name: str, program: Optional[PathLike] = None, **options: Any) -> None:
        self._open(name, options, program)
        self._try_one()

    def _try_one(self) -> None:
        sent = _Sent(self.shoal_dataset, {k: v for k, v in self.shoal_args.items()
                                          if k not in ("shuffle", "equal", "rank", "world")})
        helper = _samples.Helper(self.program, sent, self._kind)
        try:
            helper.ask("next", 0, 1)
        except RuntimeError as e:
            raise _samples.error_for(str(e)) from e
        finally:
            helper.close()

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
        super().__init__("images", **_given(locals()))
        self.root = self.shoal_args["root"]
        self._use_transform(transform)

    @property
    def samples(self) -> List[tuple]:
        """The path and the class of each image, as torchvision's ImageFolder lists them."""
        if "_samples" not in self.__dict__:
            ends = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
            found = []
            for name, number in self.class_to_idx.items():
                walk = os.walk(os.path.join(self.root, name), followlinks=True)
                for folder, _, files in sorted(walk):
                    found += [(os.path.join(folder, f), number) for f in sorted(files)
                              if f.lower().endswith(ends)]
            if len(found) != len(self):
                raise RuntimeError(f"{self.root} has {len(found)} images, and had {len(self)} before: "
                                   "construct the data set again")
            self._samples = found
        return self._samples

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
        options = _given(locals())
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} of world {world}: want a rank from 0 to world - 1")
        if not isinstance(shuffle, int) or shuffle < 0:
            raise ValueError(f"shuffle={shuffle!r}: want a bool, or the size of the buffer")
        super().__init__("shards", **options)
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


_STEPS = {"resize", "crop", "random_crop", "random_resized_crop", "flip", "vertical_flip", "mean", "std",
          "dtype"}  # the options that a transform replaces


def _given(arguments: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns the options that differ from None and False, from the local variables of a constructor."""
    options = {k: v for k, v in arguments.items()
               if v is not None and v is not False and k not in ("self", "__class__")}
    transform, steps = options.pop("transform", None), sorted(_STEPS & options.keys())
    if transform is not None and not callable(transform):
        raise TypeError(f"transform: got {type(transform).__name__}, want a transform of torchvision")
    if transform is not None and steps:
        raise ValueError(f"transform and {', '.join(steps)}: put them into the transform, or leave it out")
    for name in {"root", "path", "paths"} & arguments.keys():
        options[name] = _path(arguments[name], several=name == "paths")
    return options


def _path(v: Any, several: bool) -> Any:
    if several and hasattr(v, "__iter__") and not isinstance(v, (str, bytes)):
        return [_path(item, several=False) for item in v]
    return os.path.expanduser(os.fsdecode(v))


def _plain(v: Any) -> Any:
    """Converts an option to a value that JSON can represent: paths, dtypes, sequences, arrays and scalars."""
    numpy: Any = sys.modules.get("numpy")
    if isinstance(v, os.PathLike):
        return os.fspath(v)
    if isinstance(v, torch.dtype):
        return str(v)[len("torch."):]
    if numpy and (isinstance(v, numpy.dtype) or isinstance(v, type) and issubclass(v, numpy.generic)):
        return numpy.dtype(v).name
    if isinstance(v, Mapping):
        return {k: _plain(item) for k, item in v.items()}
    if isinstance(v, (list, tuple)):
        return [_plain(item) for item in v]
    return v.tolist() if hasattr(v, "tolist") else v
