"""Go worker processes for the loaders of PyTorch, without a global switch.

A context that :func:`get_context` returns starts DataLoader workers as processes of the Go program,
with the pickles and the command line of multiprocessing's spawn method. All other processes of the
context are those of the start method that it is based on. ``set_executable`` and
``set_start_method`` are not called. :func:`install` makes PyTorch's own loaders use such a context
for data sets of this package.
"""

from __future__ import annotations

import builtins
import dis
import errno
import functools
import importlib
import importlib.util
import io
import logging
import multiprocessing
import multiprocessing.context
import os
import sys
import types
import warnings
from multiprocessing import popen_spawn_posix, resource_tracker, spawn, util
from multiprocessing.context import BaseContext, SpawnContext, SpawnProcess, set_spawning_popen
from typing import Any, Iterator, Optional, Union

import torch
import torch.utils.data as data
from torch.utils.data._utils.collate import default_collate, default_convert

from . import _programs

_WORKER_LOOPS = ("torch.utils.data._utils.worker", "torchdata.stateful_dataloader.worker")
_LIBRARIES = {"shoal", "torch", "torchdata", "lightning", "pytorch_lightning", "accelerate", "transformers"}
_KNOWN = ("torchvision.datasets.", "datasets.arrow_dataset", "torch.utils.data.dataset")  # modules
_INIT = 9  # the position of worker_init_fn in the arguments of the worker loops


class _Popen(popen_spawn_posix.Popen):
    """A process that begins as a Go program in place of the interpreter."""

    def __init__(self, process_obj: Any, program: str) -> None:
        self._program = program
        super().__init__(process_obj)

    def _launch(self, process_obj: Any) -> None:
        # The same steps as in multiprocessing.popen_spawn_posix, which are equal from 3.9 to 3.14.
        tracker = resource_tracker.getfd()
        self._fds.append(tracker)
        prepared, pickles = spawn.get_preparation_data(process_obj._name), io.BytesIO()
        set_spawning_popen(self)
        try:
            multiprocessing.context.reduction.dump(prepared, pickles)
            multiprocessing.context.reduction.dump(process_obj, pickles)
        finally:
            set_spawning_popen(None)
        parent_r, child_w = os.pipe()
        ours, theirs = [parent_r], [child_w]
        try:
            child_r, parent_w = os.pipe()
            ours.append(parent_w)
            theirs.append(child_r)
            command = spawn.get_command_line(tracker_fd=tracker, pipe_handle=child_r)
            command[0] = self._program
            self._fds.extend(theirs)
            self.pid = util.spawnv_passfds(os.fsencode(self._program), command, self._fds)
            self.sentinel = parent_r
            while theirs:  # before the write, so that it fails if the program has ended
                os.close(theirs.pop())
            try:
                with open(parent_w, "wb", closefd=False) as f:
                    f.write(pickles.getbuffer())
            except BrokenPipeError as e:
                raise RuntimeError(f"{self._program} ended when it was started as a worker; "
                                   f"{_programs.SUPPORTED}") from e
        finally:
            self.finalizer = util.Finalize(self, util.close_fds, ours)
            for fd in theirs:
                os.close(fd)


class _Process(SpawnProcess):
    """A process of a :class:`Context`."""

    _shoal_context: Context

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        context, target = process_obj._shoal_context, process_obj._target
        args = process_obj._args
        if (getattr(target, "__name__", "") != "_worker_loop" or len(args) <= _INIT
                or target.__module__ not in _WORKER_LOOPS):
            return context.base.Process._Popen(process_obj)
        if is_harmless(args[_INIT]):
            process_obj._args = (*args[:_INIT], None, *args[_INIT + 1:])
        return _Popen(process_obj, context.program)

    def __getstate__(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k != "_shoal_context"}


class Context(SpawnContext):
    """A multiprocessing context: see :func:`get_context`."""

    def __init__(self, program: str, base: Optional[BaseContext]) -> None:
        self.program, self.named = program, base

    @property
    def base(self) -> BaseContext:
        """The context of the other processes. A default is only fixed when it is used."""
        return self.named or multiprocessing.get_context()

    def Process(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Returns a new process."""
        p = _Process(*args, **kwargs)
        p._shoal_context = self
        return p

    def Lock(self) -> Any:
        """Returns a new lock. Queues and events have locks, too."""
        try:
            return super().Lock()
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.EROFS, errno.EACCES, errno.ENOSPC):
                raise
            raise type(e)(e.errno, f"{e.strerror}: a lock of Python is a file in /dev/shm, which is missing, full or "
                          "not writable; mount a tmpfs there, or use num_workers=0") from e

    def get_start_method(self, allow_none: bool = False) -> str:  # type: ignore[override]
        """Returns "spawn", because the arguments of a worker are pickled."""
        return "spawn"

    def __reduce__(self) -> tuple:
        return Context, (self.program, self.named)


def get_context(method: Union[str, BaseContext, None] = None,
                program: Union[str, "os.PathLike[str]", None] = None) -> Context:
    """Returns a context for ``DataLoader(multiprocessing_context=…)`` with Go workers.

    It is needed only for data sets that are not of this package, such as torchvision's, and for Go
    programs of one's own (``program``). ``method`` is the start method of all other processes of the
    context: a name, a context, or None for the default.
    """
    if isinstance(method, Context):
        method = method.named
    base = multiprocessing.get_context(method) if isinstance(method, str) else method
    return Context(os.path.abspath(program) if program else _programs.find("shoal-loader"), base)


def leaves(dataset: Any) -> Iterator[Any]:
    """Yields the data sets within the containers of PyTorch."""
    if type(dataset) is data.Subset:
        yield from leaves(dataset.dataset)
    elif type(dataset) in (data.ConcatDataset, data.ChainDataset, getattr(data, "StackDataset", None)):
        inner = dataset.datasets
        for part in inner.values() if isinstance(inner, dict) else inner:
            yield from leaves(part)
    else:
        yield dataset


def programs_for(dataset: Any) -> set:
    """Returns the programs that read a data set, or the parts of it that are of this package."""
    from . import datasets

    return {s.program for s in leaves(dataset) if isinstance(s, datasets._Served)}


def why_python(dataset: Any, collate_fn: Any, init_fn: Any) -> Optional[str]:
    """Returns why Go workers cannot load a data set of this package, and the remedy, or None."""
    from . import datasets

    programs = programs_for(dataset)
    for s in leaves(dataset):
        cls = type(s)
        if not isinstance(s, datasets._Served):
            if cls is not data.TensorDataset:
                return f"the data set {cls.__qualname__}, which Go does not read: load it with a loader of its own"
        elif isinstance(s, datasets._Images) and s._refusal is not None:
            return f"the transform {_name(s.transform)}, which Go does not know: {s._refusal}"
        elif any(getattr(cls, m, None) is not getattr(base, m, None) for base in cls.__mro__
                 if base in (datasets.Dataset, datasets.Stream)
                 for m in ("__getitem__", "__getitems__", "__iter__")):
            return f"the methods of {cls.__qualname__}: use the data set itself, with its options"
    if len(programs) > 1:
        return f"data sets of {len(programs)} programs: register them in one program"
    if not any(getattr(s, "_program", None) for s in leaves(dataset)):  # such a program may know the collate_fn
        if collate_fn not in (None, default_collate, default_convert):
            return (f"collate_fn={_name(collate_fn)}: leave it out for PyTorch's default_collate, or use "
                    "the option pad of the data set")
        if not is_harmless(init_fn):
            return (f"worker_init_fn={_name(init_fn)}: leave it out, because workers and samples have "
                    "random numbers of their own")
    return None


def for_loader(loader: Any) -> BaseContext:
    """Returns a context with Go workers if Go may know the data set, and otherwise the loader's own."""
    ctx, parts = loader.multiprocessing_context, list(leaves(loader.dataset))
    if (not isinstance(ctx, Context) and not programs_for(loader.dataset)
            and all(type(part).__module__.startswith(_KNOWN) for part in parts)
            and why_python(loader.dataset, loader.collate_fn, loader.worker_init_fn) is None):
        return get_context(ctx)
    return ctx or multiprocessing.get_context()


def warn_python(reason: str) -> None:
    """Warns, at the line of the script, that the workers of a loader are Python processes, and why."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(f"the workers of this DataLoader are Python processes because of {reason}", stacklevel=level)


def install() -> None:
    """Makes the loaders of PyTorch, and of torchdata if there is one, use Go workers for our data sets."""
    _hook(data.DataLoader)
    if importlib.util.find_spec("torchdata") is not None:
        try:
            _hook(importlib.import_module("torchdata.stateful_dataloader").StatefulDataLoader)
        except (ImportError, AttributeError):  # a version without this loader, or for another PyTorch
            pass


def _hook(cls: type) -> None:
    """Replaces the getter of the property multiprocessing_context of a class, once."""
    original = cls.__dict__.get("multiprocessing_context")
    if not isinstance(original, property) or hasattr(original.fget, "_shoal"):
        return

    @functools.wraps(original.fget)  # type: ignore[arg-type]
    def getter(loader: Any) -> Any:
        named = original.fget(loader)  # type: ignore[misc]
        base = named.named if isinstance(named, Context) else named
        programs = programs_for(loader.dataset) if loader.num_workers > 0 else ()
        if not programs:
            return named
        reason = why_python(loader.dataset, loader.collate_fn, loader.worker_init_fn)
        if reason is None:
            return get_context(base, programs.pop())
        if not loader.__dict__.get("_shoal_warned"):
            loader.__dict__["_shoal_warned"] = True
            warn_python(reason)
        # This does not decide on a default. Workers that import PyTorch stay from the next epoch on.
        method = (base or multiprocessing).get_start_method(allow_none=True)
        if (method or multiprocessing.get_all_start_methods()[0]) != "fork":
            loader.__dict__["persistent_workers"] = True
        return base

    getter._shoal = True  # type: ignore[attr-defined]
    setattr(cls, "multiprocessing_context", original.getter(getter))


# What the functions that only seed generators use: modules and functions, attributes and local imports.
_SEEDING = frozenset("""
    torch numpy random torch.utils.data numpy.random torch.cuda
    builtins.int builtins.abs builtins.hash builtins.len builtins.range builtins.object
    torch.random.initial_seed torch.random.manual_seed torch.utils.data._utils.worker.get_worker_info
    lightning.fabric.utilities.seed._generate_seed_sequence lightning.fabric.utilities.rank_zero.rank_zero_only
    lightning_fabric.utilities.seed._generate_seed_sequence lightning_fabric.utilities.rank_zero.rank_zero_only
    lightning_utilities.core.rank_zero.rank_zero_only transformers.trainer_utils.set_seed
""".split())
_NAMES = frozenset("initial_seed manual_seed manual_seed_all seed random cuda utils data get_worker_info id "
                   "rank debug set_num_threads numpy num_workers SeedSequence generate_state spawn uint32 "
                   "uint64 astype sum".split())
_WRITES = ("STORE_GLOBAL", "STORE_ATTR", "STORE_SUBSCR", "DELETE_", "MAKE_FUNCTION", "LOAD_BUILD_CLASS",
           "LOAD_DEREF", "STORE_DEREF", "IMPORT_STAR", "YIELD_VALUE")


def is_harmless(init_fn: Any) -> bool:
    """Whether a worker_init_fn only seeds generators of Python, so that Go workers need not call it.

    The functions of Lightning, of Transformers and of PyTorch's documentation are of this kind. The
    instructions of the function decide: every name in them must be one that seeds, and nothing may
    be stored but local variables.
    """
    while isinstance(init_fn, functools.partial):
        if not all(v is None or isinstance(v, int) for v in (*init_fn.args, *init_fn.keywords.values())):
            return False
        init_fn = init_fn.func
    if not isinstance(init_fn, types.FunctionType):
        return init_fn is None
    return all(_seeds(init_fn, step.opname, step.argval) for step in dis.get_instructions(init_fn))


def _seeds(f: types.FunctionType, operation: str, name: Any) -> bool:
    """Whether seeding functions have such an instruction."""
    if operation in ("LOAD_GLOBAL", "LOAD_NAME"):
        v = f.__globals__.get(name, getattr(builtins, name, None))
        if isinstance(v, types.ModuleType):
            return v.__name__ in _SEEDING
        return (isinstance(v, (bool, int, logging.Logger)) or type(v).__name__ == "RequirementCache"
                or f"{getattr(v, '__module__', '')}.{getattr(v, '__qualname__', '')}" in _SEEDING)
    if operation == "IMPORT_NAME":
        return name in _SEEDING
    if operation in ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM"):
        return name in _NAMES
    return not operation.startswith(_WRITES)


def _name(f: Any) -> str:
    return getattr(f, "__qualname__", type(f).__name__)
