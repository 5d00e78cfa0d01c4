"""shoal.DataLoader: PyTorch's arguments, a state to resume from, and replacement of dead workers."""

from __future__ import annotations

import collections
import errno
import inspect
import itertools
import multiprocessing.connection
import os
import signal
import time
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional

import torch
import torch.utils.data as data
from torch._utils import ExceptionWrapper
from torch.utils.data import _DatasetKind
from torch.utils.data._utils import pin_memory as pinning
from torch.utils.data._utils import worker as loops

from . import context, datasets

_DEATHS = 5  # of workers without a batch between them, before the loader gives up
_MASK = (1 << 62) - 1


class _Order(data.Sampler):
    """The samples of one rank, in an order that depends on the seed and the epoch only.

    The positions of an epoch are dealt in rounds of one batch for each rank, and within a round in
    turn. After k batches of each of W ranks the first k·W·batch_size positions are consumed.
    """

    def __init__(self, length: int, shuffle: bool, batch: int, drop_last: bool, rank: int, world: int):
        self.length, self.shuffle, self.batch = length, shuffle, batch
        self.drop_last, self.rank, self.world = drop_last, rank, world
        self.seed, self.epoch = 0, 0

    def batches(self, start: int) -> Iterator[tuple]:
        """Yields the indices of each batch from a position on, and the position after its round."""
        if self.shuffle:
            g = torch.Generator()
            g.manual_seed(_mix(self.seed, self.epoch))
            order = torch.randperm(self.length, generator=g)
        else:
            order = torch.arange(self.length)
        step = self.batch * self.world
        for at in range(start, self.length, step):
            end = min(at + step, self.length)
            if self.drop_last and end - at < step:
                return
            mine = order[at + self.rank:end:self.world].tolist()
            if mine:
                yield mine, end

    def __iter__(self) -> Iterator[int]:
        for indices, _ in self.batches(0):
            yield from indices

    def __len__(self) -> int:
        whole, rest = divmod(self.length, self.batch * self.world)
        more = 0 if self.drop_last else max(0, -(-(rest - self.rank) // self.world))
        return whole * self.batch + more


def _mix(seed: int, epoch: int) -> int:
    return (seed * 0x9E3779B97F4A7C15 + epoch * 0xC2B2AE3D27D4EB4F) & _MASK


class DataLoader(data.DataLoader):
    """A DataLoader of PyTorch with Go workers and a state.

    The arguments are those of ``torch.utils.data.DataLoader``, and:

    - ``rank``, ``world_size``: the loader yields the share of one rank. Ranks of one epoch have
      together each sample once, without padding: at the end a rank may have one sample more than
      another, and therefore one batch. ``drop_last=True`` gives all ranks the same number of batches.
    - ``seed``: together with the epoch it chooses the order. By default it is drawn from PyTorch's
      generator (or ``generator``); with a ``world_size`` of 2 or more it is 0, the same in all ranks.

    Each iteration is an epoch; :meth:`set_epoch` sets the number of the next one. Data sets of this
    package, and those of torchvision and Hugging Face that Go knows, are read by Go workers. A worker
    that dies is replaced, and its batches are made again; each is yielded once, in order.

    :meth:`state_dict` may be called between any two batches, and :meth:`load_state_dict` before an
    iteration, also of a loader with another number of workers, ranks or another batch size.
    """

    def __init__(self, dataset: Any, batch_size: Optional[int] = 1, shuffle: Optional[bool] = None,
                 sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
                 collate_fn: Any = None, pin_memory: bool = False, drop_last: bool = False,
                 timeout: float = 0, worker_init_fn: Any = None, multiprocessing_context: Any = None,
                 generator: Any = None, *, prefetch_factor: Optional[int] = None,
                 persistent_workers: bool = False, in_order: bool = True, rank: Optional[int] = None,
                 world_size: Optional[int] = None, seed: Optional[int] = None) -> None:
        if not in_order:
            raise ValueError("in_order=False: the state of this loader needs an order; use "
                             "torch.utils.data.DataLoader")
        rank, world = rank or 0, 1 if world_size is None else world_size
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} of world_size {world}: want a rank from 0 to world_size - 1")
        self._order: Optional[_Order] = None
        self._kind = "stream" if isinstance(dataset, data.IterableDataset) else "sampler"
        if self._kind == "sampler" and sampler is None and batch_sampler is None:
            if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
                raise ValueError(f"batch_size={batch_size!r}: want an int of at least 1, or None")
            self._kind, self._order = "order", _Order(len(dataset), bool(shuffle), batch_size or 1, drop_last,
                                                      rank, world)
            sampler, shuffle = self._order, None
        elif world > 1 and isinstance(dataset, datasets.WebDataset):
            dataset.shoal_args.update(rank=rank, world=world)
        elif world > 1:
            raise ValueError("rank and world_size: a sampler or a stream must choose the samples of its rank "
                             "itself; leave out these arguments")
        super().__init__(dataset, batch_size, shuffle, sampler, batch_sampler, num_workers, collate_fn,
                         pin_memory, drop_last, timeout, worker_init_fn, multiprocessing_context,
                         generator, prefetch_factor=prefetch_factor,
                         persistent_workers=persistent_workers)
        context.install()
        self.rank, self.world_size, self.seed, self._epoch = rank, world, seed, 0
        self._state: Dict[str, Any] = {}  # of the last iteration, or a loaded one; empty after an epoch
        self._loaded = False  # the next iteration begins at the state
        self._pool: Optional[_Pool] = None  # of persistent workers

    def __getstate__(self) -> Dict[str, Any]:
        return dict(self.__dict__, _pool=None)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration, and that of the sampler if it has a set_epoch."""
        if self._loaded and self._state["epoch"] != epoch:
            self._state, self._loaded = {}, False
        self._epoch = int(epoch)
        for part in (self.sampler, self.batch_sampler, getattr(self.batch_sampler, "sampler", None)):
            if hasattr(part, "set_epoch"):
                part.set_epoch(epoch)
                break

    def state_dict(self) -> Dict[str, Any]:
        """Returns the position after the last batch that the script has got, as plain values."""
        return dict(self._state or self._first_state(self._draw_seed()))

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Makes the next iteration begin at the position of a state.

        It raises ValueError if the state is of another kind of loader or of another data set.
        """
        if not isinstance(state, dict) or state.get("shoal") != 1:
            raise ValueError("load_state_dict: this is no state of a shoal.DataLoader; a state of torchdata's "
                             "StatefulDataLoader must be loaded there")
        wanted = self._first_state(0)
        for key, remedy in (("kind", "construct the loader with the same sampler or data set"),
                            ("length", "the data set has changed: begin the epoch anew"),
                            ("shuffle", "construct the loader with the same shuffle"),
                            ("num_workers", "a stream can only resume with the same number of workers"),
                            ("ranks", "a stream can only resume with the same rank and number of ranks")):
            if state.get(key) != wanted.get(key):
                raise ValueError(f"load_state_dict: the state has {key} {state.get(key)!r}, and this loader "
                                 f"{wanted.get(key)!r}: {remedy}")
        for key in ("epoch", "seed", "position"):
            if not isinstance(state.get(key), int) or state[key] < 0:
                raise ValueError(f"load_state_dict: {key} is {state.get(key)!r}, want an integer of at least 0")
        self._state, self._loaded, self._epoch = dict(state), True, state["epoch"]

    def _first_state(self, seed: int) -> Dict[str, Any]:
        """Returns the state at the begin of the next epoch."""
        state = {"shoal": 1, "kind": self._kind, "epoch": self._epoch, "seed": seed, "position": 0}
        if self._order is not None:
            return dict(state, length=self._order.length, shuffle=self._order.shuffle)
        if self._kind == "sampler":
            return dict(state, sampler=None, rng=None)
        args = getattr(self.dataset, "shoal_args", {})
        return dict(state, num_workers=self.num_workers, ranks=[args.get("rank", 0), args.get("world", 1)])

    def _draw_seed(self) -> int:
        """Returns the seed of all epochs. It is drawn once."""
        if self.seed is None:
            drawn = torch.empty((), dtype=torch.int64).random_(generator=self.generator)
            self.seed = 0 if self.world_size > 1 else int(drawn.item()) & _MASK
        return self.seed

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        self._state = dict(self._state) if self._loaded else self._first_state(self._draw_seed())
        self._loaded, self.seed, self._epoch = False, self._state["seed"], self._state["epoch"] + 1
        return _Iterator(self, self._state)


class _Iterator:
    """One epoch of a loader. It changes the loader's state, which is empty after the last batch."""

    def __init__(self, loader: DataLoader, state: Dict[str, Any]) -> None:
        self.loader, self._state, seed = loader, state, _mix(state["seed"], state["epoch"])
        self._skip = state["position"] if loader._kind == "stream" else 0
        self._marks: collections.deque = collections.deque()  # the changes of the state, for each request
        self._fetcher = self._pool = None
        if loader._order is not None:
            loader._order.seed, loader._order.epoch = state["seed"], state["epoch"]
        if isinstance(loader.dataset, datasets.WebDataset):
            loader.dataset.set_epoch(state["epoch"])
        self._requests = _requests(loader, state)
        if loader.num_workers == 0:
            for part in context.leaves(loader.dataset):
                if isinstance(part, datasets.Stream):
                    part._seed, part._iterations = seed, 0
            self._fetcher = _DatasetKind.create_fetcher(
                loader._dataset_kind, loader.dataset, loader._auto_collation, loader.collate_fn, loader.drop_last)
            return
        self._pool = loader._pool
        if self._pool is None or not self._pool.next_epoch():
            self._pool = _Pool(loader, seed)
        # The order of a stream depends on the epoch in which its workers begin, so they do not stay.
        loader._pool = self._pool if loader.persistent_workers and loader._kind != "stream" else None

    def __iter__(self) -> "_Iterator":
        return self

    def __next__(self) -> Any:
        if self._fetcher is None and self._pool is None:
            raise StopIteration
        try:
            for _ in range(self._skip + 1):
                batch = self._fetcher.fetch(self._draw()) if self._fetcher else self._pool.take(self._draw)
                mark = self._marks.popleft()
            if self.loader.pin_memory and torch.cuda.is_available():
                batch = pinning.pin_memory(batch)
        except StopIteration:
            self._state.clear()
            self._close()
            raise
        except BaseException:
            self._close()
            raise
        self._skip = 0
        self._state.update(mark)
        if isinstance(batch, ExceptionWrapper):
            batch.reraise()
        return batch

    def _draw(self) -> Any:
        indices, mark = next(self._requests)
        self._marks.append(mark)
        return indices

    def _close(self) -> None:
        """Ends the workers, unless they are persistent and the epoch is over."""
        pool, self._pool, self._fetcher = self._pool, None, None
        if pool is not None and (self._state or pool is not self.loader._pool):
            self.loader._pool = None
            pool.close()


def _requests(loader: DataLoader, state: Dict[str, Any]) -> Iterator[tuple]:
    """Yields the requests to the workers, with the changes of the state after each."""
    if loader._order is not None:
        for indices, position in loader._order.batches(state["position"]):
            yield indices if loader._auto_collation else indices[0], {"position": position}
    elif loader._kind == "stream":
        for n in itertools.count(1):
            yield [None] * loader.batch_size if loader._auto_collation else None, {"position": n}
    else:
        yield from _sample(loader, state)


def _sample(loader: DataLoader, state: Dict[str, Any]) -> Iterator[tuple]:
    """Draws from a sampler of the script, which resumes by its own state_dict or by skipping."""
    stateful = [s for s in (loader._index_sampler, loader.sampler) if hasattr(s, "state_dict")][:1]
    generator = getattr(loader.sampler, "generator", None)
    if bool(stateful) != (state["sampler"] is not None) and state["rng"] is not None:
        raise ValueError("load_state_dict: the sampler of the state has a state_dict and that of the "
                         "loader does not, or the reverse: construct the loader with the same sampler")
    before, start, skip = torch.get_rng_state(), state["position"], state["position"]
    if state["rng"] is None:
        state.update(rng=before, generator=generator and generator.get_state())
    else:  # a RandomSampler draws its seed when it begins
        torch.set_rng_state(state["rng"])
        if generator is not None:
            generator.set_state(state["generator"])
    if state["sampler"] is not None:
        stateful[0].load_state_dict(state["sampler"])
        skip = 0
    batches = iter(loader._index_sampler)
    for n in itertools.count(start - skip + 1):
        indices = next(batches, None)
        if n == start - skip + 1 and state["rng"] is not before:
            torch.set_rng_state(before)
        if indices is None:
            return
        if n > start:
            yield indices, {"position": n, "sampler": stateful[0].state_dict() if stateful else None}


class _Worker:
    """A worker process, with queues of its own, because a killed process may hold a lock of a queue."""

    def __init__(self) -> None:
        self.sent: collections.deque = collections.deque()  # requests that are not answered
        self.arrived = 0  # the batches of this epoch
        self.process: Any = None

    def start(self, pool: _Pool, slot: int) -> None:
        """Starts a process, and requests again what the one before has not sent."""
        kind, dataset, collation, seed, init_fn = pool.args
        self.indices, self.batches, self.done = pool.ctx.Queue(), pool.ctx.Queue(), pool.ctx.Event()
        self.indices.cancel_join_thread()
        self.process = pool.ctx.Process(target=loops._worker_loop, daemon=True, args=(
            kind, [dataset] if pool.holder else dataset, self.indices, self.batches, self.done, *collation,
            seed, init_fn, slot, pool.size, pool.persistent, None))
        self.process.start()
        self.batches._writer.close()  # so that a message that a killed worker cut short is an EOFError
        for _ in range(pool.epochs):
            self.indices.put(loops._ResumeIteration(None))
        if kind == _DatasetKind.Iterable:
            for _ in range(self.arrived):  # the stream begins anew
                self.indices.put((-1, pool.like))
        for request in self.sent:
            self.indices.put(request)

    def say_end(self) -> None:
        """Tells the process that the loader has ended. It does not wait for a lock of a killed process."""
        if self.process.is_alive() and self.done._cond.acquire(timeout=1):
            self.done._flag.acquire(False)
            self.done._flag.release()
            self.done._cond.release()
            self.indices.put(None)

    def end(self, seconds: float) -> None:
        """Waits for the end of the process, and kills it after some time."""
        for stop in (lambda: None, self.process.terminate, self.process.kill):
            stop()
            self.process.join(max(seconds, 0.1))
            if self.process.exitcode is not None:
                break
        self.indices.close()
        self.batches.close()


# The errors of a message, or of a tensor in it, whose sender has ended.
_LOST = (EOFError, OSError, RuntimeError)


class _Pool:
    """The workers of a loader. The requests go to them in turn, and the batches are taken in the same order."""

    def __init__(self, loader: DataLoader, seed: int) -> None:
        self.ctx = context.for_loader(loader)  # which may make the workers persistent
        self.args = (loader._dataset_kind, loader.dataset,
                     (loader._auto_collation, loader.collate_fn, loader.drop_last), seed, loader.worker_init_fn)
        self.size, self.persistent, self.pid = loader.num_workers, loader.persistent_workers, os.getpid()
        self.holder = list(inspect.signature(loops._worker_loop).parameters)[1] == "dataset_holder"
        self.like = [None] * loader.batch_size if loader._auto_collation and loader.batch_size else None
        self.timeout, self.prefetch = loader.timeout or None, max(1, loader.prefetch_factor or 2)
        self.epochs = self._number = self._deaths = 0
        self._turns: Optional[collections.deque] = None  # the workers with batches; None before the first
        self.workers: List[_Worker] = []
        self.close = weakref.finalize(self, _end_workers, self.workers, self.pid)
        try:
            for slot in range(self.size):
                w = _Worker()
                w.start(self, slot)
                self.workers.append(w)
        except BaseException as e:
            self.close()
            if isinstance(e, OSError) and e.errno == errno.EMFILE:
                raise OSError(e.errno, f"too many open files for {self.size} workers: raise the limit "
                              "(ulimit -n), or use fewer workers") from e
            raise

    def next_epoch(self) -> bool:
        """Begins the next epoch of persistent workers. It returns False if there are none any more."""
        if not self.close.alive or self.pid != os.getpid():
            return False
        self.epochs += 1
        self._turns = None
        for w in self.workers:
            w.sent.clear()
            w.arrived = 0
            w.indices.put(loops._ResumeIteration(None))
        return True

    def take(self, draw: Callable[[], Any]) -> Any:
        """Returns the next batch. It raises StopIteration after the last one."""
        if self.pid != os.getpid():
            raise RuntimeError(f"this iterator belongs to process {self.pid}, of which this one is a fork: "
                               "call iter() of the loader in this process")
        if self._turns is None:
            self._turns = collections.deque(self.workers)
            for w in self.workers * self.prefetch:
                self._request(w, draw)
        while self._turns:
            w = self._turns.popleft()
            answer = self._receive(w)
            if answer is not None:
                self._turns.append(w)
                self._request(w, draw)
                return answer[1]
        raise StopIteration

    def _request(self, w: _Worker, draw: Callable[[], Any]) -> None:
        """Requests a batch, if there is another one."""
        try:
            request = (self._number, draw())
        except StopIteration:
            return
        self._number += 1
        w.sent.append(request)
        w.indices.put(request)

    def _receive(self, w: _Worker) -> Optional[tuple]:
        """Returns the answer to the first request of a worker, or None if there are no more batches."""
        while w.sent:
            if not multiprocessing.connection.wait([w.batches._reader, w.process.sentinel], self.timeout):
                raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")
            try:
                answer = w.batches.get() if w.batches._reader.poll(0) else None
            except _LOST:
                w.process.join(5)
                if w.process.exitcode is None:
                    raise
                answer = None
            if answer is None:
                self._replace(w)
            elif answer[0] == w.sent[0][0]:  # others are of an epoch or a stream that began anew
                if isinstance(answer[1], loops._IterableDatasetStopIteration):
                    w.sent.clear()
                    break
                w.sent.popleft()
                w.arrived, self._deaths = w.arrived + 1, 0
                return answer
        return None

    def _replace(self, w: _Worker) -> None:
        """Starts another process in place of a dead one."""
        w.process.join()
        status, self._deaths = w.process.exitcode, self._deaths + 1
        if self._deaths > _DEATHS:
            how, hint = f"exited with status {status}", "its error is on stderr"
            if status < 0:
                how = f"was killed by {signal.Signals(-status).name}"
                hint = {signal.SIGKILL: "perhaps by the kernel for lack of memory (see dmesg): use fewer workers "
                                        "or a smaller prefetch_factor",
                        signal.SIGBUS: "/dev/shm may be full: make it larger"}.get(-status, "see stderr")
            raise RuntimeError(f"DataLoader worker (pid {w.process.pid}) {how}; {hint}. {self._deaths} workers "
                               "died without a batch between them")
        w.end(1)
        w.start(self, self.workers.index(w))


def _end_workers(workers: List[_Worker], pid: int) -> None:
    if pid != os.getpid():  # a fork of the process that has the workers
        return
    deadline = time.monotonic() + 5
    for w in workers:
        w.say_end()
    for w in workers:
        w.end(deadline - time.monotonic())
