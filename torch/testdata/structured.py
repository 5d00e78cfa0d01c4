"""What a script gets from data sets of any structure, whose workers are a Go program: the same as from Python's own workers.

The program is SHOAL_TEST_PROGRAM. Prints a line of JSON with the cells that differ, and how many there were. A worker that becomes Python imports
PyTorch for seconds, so cells share theirs where they can, and run beside each other."""
import concurrent.futures
import json
import os
import time

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler, default_collate, get_worker_info


def value(i, kind):
    """As valueOf in structured_test.go."""
    if kind == "dict":
        return {"image": torch.full((2, 3), i, dtype=torch.uint8), "label": i, "score": i / 2, "good": i % 2 == 0, "name": "ü" * i}
    if kind == "nested":
        return {"boxes": [torch.full((4,), float(i)), torch.tensor(i)], "meta": {"tags": ["a", str(i)], "raw": bytes([i])}, "at": (i, i / 4)}
    if kind == "tensor":
        return torch.full((3,), float(i))
    if kind == "text":
        return "sample %d" % i
    if kind == "number":
        return i
    if kind == "ragged":
        return {"ids": torch.arange(i + 1), "text": "x" * i}
    if kind == "keys":
        return {"a": i, "b": i} if i != 5 else {"a": i, "c": i}
    if kind == "none":
        return {"a": None}
    if kind == "pair":
        if i == 99:
            raise ValueError("no such sample")
        return torch.full((2,), float(i)), torch.tensor(i)
    raise ValueError(kind)


class Values(Dataset):
    def __init__(self, n, kind, here=False):
        self.n, self.kind, self.more = n, kind, 0
        self.shoal_dataset = "values"
        if here:
            del self.shoal_dataset

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if hasattr(self, "shoal_dataset"):
            raise RuntimeError("Go does this")
        if isinstance(i, list):
            return default_collate([value(k, self.kind) for k in i])
        return value(i + self.more, self.kind)


class ValueStream(IterableDataset):
    def __init__(self, n, kind, here=False):
        self.n, self.kind = n, kind
        self.shoal_dataset = "values"
        if here:
            del self.shoal_dataset

    def __iter__(self):
        if hasattr(self, "shoal_dataset"):
            raise RuntimeError("Go does this")
        for i in range(self.n):
            yield value(i, self.kind)


def shown(v):
    """A value as JSON can say it, with its types."""
    if isinstance(v, torch.Tensor):
        return [str(v.dtype), list(v.shape), v.tolist()]
    if isinstance(v, dict):
        return {"dict": [[k, shown(x)] for k, x in v.items()]}
    if isinstance(v, (list, tuple)):
        return {type(v).__name__: [shown(x) for x in v]}
    return [type(v).__name__, repr(v)]


def longest(samples):
    """A collate_fn of the script's own: Python runs it."""
    n = max(len(s["ids"]) for s in samples)
    ids = torch.stack([torch.nn.functional.pad(s["ids"], (0, n - len(s["ids"])), value=-1) for s in samples])
    return {"ids": ids, "text": [s["text"] for s in samples]}


class Summed:
    """A collate_fn that is an object."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, samples):
        if samples[0][1] == 4:
            fails()
        return sum(x * self.scale for x, _ in samples), [y for _, y in samples]


def in_go(samples):
    """A collate_fn that the Go program has."""
    if samples is not None:
        n = max(len(s["ids"]) for s in samples)
        ids = torch.stack([torch.nn.functional.pad(s["ids"], (n - len(s["ids"]), 0)) for s in samples])
        return {"ids": ids, "mask": torch.stack([torch.arange(n) >= n - len(s["ids"]) for s in samples]), "text": [s["text"] for s in samples]}


def fails():
    info = get_worker_info()
    try:
        info.dataset[99]
    except RuntimeError as e:
        raise KeyError("the collate_fn fails in worker %d, after %s" % (info.id, e))


def init(worker):
    torch.multiprocessing.set_sharing_strategy(("file_system", "file_descriptor")[worker])
    info = get_worker_info()
    info.dataset.more = 10 + worker  # which the data set is sent with


def epoch(loader):
    try:
        return [shown(b) for b in loader]
    except Exception as e:
        return type(e).__name__ + ": " + str(e)


FAILED = []


CELLS = {}


def cell(f):
    """A cell takes what makes a data set and the options of its loaders. Python's own loaders have no workers, which is quick, and nothing that is
    compared depends on it: but for what a cell says."""
    CELLS[f.__name__] = f
    return f


@cell
def structures(here, **spawn):
    return {kind: epoch(DataLoader(Values(5, kind, here), batch_size=2, **workers(1, spawn))) for kind in ("dict", "nested", "tensor")}


@cell
def structures_by_name(here, **spawn):
    torch.multiprocessing.set_sharing_strategy("file_system")
    return structures(here, **spawn)


@cell
def scalars(here, **spawn):
    return {kind: epoch(DataLoader(Values(5, kind, here), batch_size=3, **workers(2, spawn))) for kind in ("text", "number")}


@cell
def singles(here, **spawn):
    return {kind: epoch(DataLoader(Values(3, kind, here), batch_size=None, **workers(1, spawn))) for kind in ("dict", "nested")}


@cell
def lists(here, **spawn):
    sampler = BatchSampler(SequentialSampler(range(5)), 2, False)
    return {kind: epoch(DataLoader(Values(5, kind, here), batch_size=None, sampler=sampler, **workers(1, spawn))) for kind in ("dict", "pair")}


@cell
def own_collate(here, **spawn):
    return epoch(DataLoader(Values(6, "ragged", here), batch_size=2, collate_fn=longest, **workers(1, spawn)))


@cell
def object_collate(here, **spawn):
    """Fails in the third batch of Go's, of which errors has the text."""
    loader = DataLoader(Values(4 if here else 6, "pair", here), batch_size=2, collate_fn=Summed(3), **workers(1, spawn))
    batches = iter(loader)
    two = [shown(next(batches)), shown(next(batches))]
    if not here:
        FAILED.append(epoch(batches))
    return two


@cell
def collate_in_go(here, **spawn):
    return epoch(DataLoader(Values(5, "ragged", here), batch_size=2, collate_fn=in_go, **workers(1, spawn)))


@cell
def init_fn(here, **spawn):
    """Workers 0 and 1 have told their data sets how much more the samples are."""
    if here:
        return [[shown(torch.tensor([10, 11])), shown(torch.tensor([13, 14]))]] * 2
    kept = DataLoader(Values(4, "number"), batch_size=2, worker_init_fn=init, persistent_workers=True, **workers(2, spawn))
    return [epoch(kept), epoch(kept)]


@cell
def streams(here, **spawn):
    kept = DataLoader(ValueStream(21, "ragged", here), batch_size=2, collate_fn=longest, persistent_workers=not here, **workers(1, spawn))
    return [epoch(kept), epoch(kept)]


@cell
def streams_in_go(here, **spawn):
    return [epoch(DataLoader(ValueStream(5, "dict", here), batch_size=2, drop_last=drop, **workers(1, spawn))) for drop in (False, True)]


def workers(n, spawn):
    return dict(spawn, num_workers=n) if spawn else {}


def errors(**spawn):
    """What only Go says."""
    return {
        "fails": FAILED[0],
        "keys": epoch(DataLoader(Values(6, "keys"), batch_size=6, num_workers=1, **spawn)),
        "none": epoch(DataLoader(Values(2, "none"), batch_size=2, num_workers=1, **spawn)),
        "ragged": epoch(DataLoader(Values(2, "ragged"), batch_size=2, num_workers=1, **spawn)),
        "bad": epoch(DataLoader(Values(2, "unknown"), batch_size=2, num_workers=1, **spawn)),
    }


def compare(name):
    begin = time.time()
    got, want = CELLS[name](False, multiprocessing_context="spawn"), CELLS[name](True)
    out["cells"] += 1
    out["seconds"][name] = round(time.time() - begin, 2)
    if json.dumps(got) != json.dumps(want):
        out["differ"][name] = {"got": got, "want": want}


if __name__ == "__main__":
    torch.multiprocessing.set_executable(os.environ["SHOAL_TEST_PROGRAM"])
    out = {"cells": 0, "differ": {}, "seconds": {}}
    slow = "init_fn", "object_collate", "own_collate", "streams"  # which have Python in their workers
    with concurrent.futures.ThreadPoolExecutor(len(slow)) as pool:
        all_slow = [pool.submit(compare, name) for name in slow]
        for name in CELLS:
            if name not in slow and name != "structures_by_name":
                compare(name)
        for f in all_slow:
            f.result()
    compare("structures_by_name")  # alone, since it changes how all memory is shared
    out["errors"] = errors(multiprocessing_context="spawn")
    print(json.dumps(out), flush=True)
