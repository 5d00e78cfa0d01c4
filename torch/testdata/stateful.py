"""StatefulDataLoaders of torchdata whose workers are a Go program, stopped and resumed at every batch."""
import io
import json
import os
import sys

import torch
from torch.utils.data import default_collate
from torchdata.stateful_dataloader import StatefulDataLoader

from loader import Squares, Stream, error

N = 13


class Same(Squares):
    """The data set of Go, with the samples in Python as well."""

    def __init__(self, n, go):
        super().__init__(n, name="squares" if go else None)

    def __getitem__(self, i):
        return i, torch.full((2,), float(i * i))


class SameStream(Stream):
    def __init__(self, n, go):
        super().__init__(n)
        self.shoal_dataset = "stream" if go else None

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        for i in range(info.id, self.n, info.num_workers):
            yield i, torch.tensor(float(info.id))


def doubled(samples):
    return [2 * x for x in default_collate(samples)]


def plain(batch):
    return [x.tolist() if isinstance(x, torch.Tensor) else x for x in batch]


def rows(loader):
    return [plain(batch) for batch in loader]


def stored(state):
    """The state as it is read from a checkpoint."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def cut(make, at):
    """The batches of an epoch that is stopped after a number of batches and resumed in another loader, and of the next epoch."""
    torch.manual_seed(7)
    first = make()
    batches = iter(first)
    before = [plain(next(batches)) for _ in range(at)]
    state = stored(first.state_dict())
    batches._shutdown_workers()
    second = make()
    second.load_state_dict(state)
    return before + rows(second) + rows(second)


def refusal(loader):
    """The error that a loader raises when it starts. The half-made iterator is in a cycle with it, so it is shut down here."""
    try:
        return f"no error but {iter(loader)}"
    except RuntimeError as e:
        frame = e.__traceback__
        while frame := frame.tb_next:
            it = frame.tb_frame.f_locals.get("self")
            if hasattr(it, "_shutdown_workers"):
                it._shutdown_workers()
                break
        return str(e)


KINDS = {"map": (Same, {"batch_size": 3, "shuffle": True}), "stream": (SameStream, {"batch_size": 3})}
EXTRAS = [{}, {"drop_last": True}, {"persistent_workers": True}, {"snapshot_every_n_steps": 3}, {"batch_size": None, "shuffle": None},
          {"collate_fn": doubled}]


def compare(kind, extra, cuts):
    """For each cut, whether Go's batches are those of Python's workers; or both."""
    data, usual = KINDS[kind]

    def make(go):
        context = "spawn" if go else "fork"
        return StatefulDataLoader(data(N, go), num_workers=2, multiprocessing_context=context, **dict(usual, **extra))

    pairs = [(cut(lambda: make(True), at), cut(lambda: make(False), at)) for at in cuts]
    return [go == python or [go, python] for go, python in pairs]


if __name__ == "__main__":
    torch.multiprocessing.set_executable(sys.argv[1])
    out = {}
    for kind in KINDS:
        for extra in EXTRAS if kind == "map" else EXTRAS[:-1]:
            out[f"{kind} {' '.join(extra)}"] = compare(kind, extra, [2] if extra else [0, 1, 5])
    loader = StatefulDataLoader(Same(N, True), batch_size=2, num_workers=2, multiprocessing_context="spawn")
    batches = iter(loader)
    next(batches)
    out["exe"] = sorted({os.readlink(f"/proc/{w.pid}/exe") for w in batches._workers})
    batches._shutdown_workers()
    for kind, (data, _) in KINDS.items():
        loader = StatefulDataLoader(data(N, True), batch_size=2, num_workers=2, multiprocessing_context="spawn")
        batches = iter(loader)
        next(batches)
        state = loader.state_dict()
        batches._shutdown_workers()
        for workers in 1, 3:
            other = StatefulDataLoader(data(N, True), batch_size=2, num_workers=workers, multiprocessing_context="spawn")
            other.load_state_dict(state)
            out[f"{kind} for {workers}"] = refusal(other)
    out["fail"] = error(lambda: rows(StatefulDataLoader(Squares(9, fail=7), batch_size=3, num_workers=2, multiprocessing_context="spawn")))
    out["unknown"] = error(lambda: rows(StatefulDataLoader(Squares(9, name="nobody"), batch_size=3, num_workers=2, multiprocessing_context="spawn")))
    print(json.dumps(out))
