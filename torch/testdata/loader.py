"""An ordinary training script's way with a DataLoader, whose workers are a Go program."""
import json
import os
import sys

import torch
import torch.multiprocessing.queue as queues  # classes of its own
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Squares(Dataset):
    def __init__(self, n, name="squares", **kwargs):
        self.shoal_dataset = name
        self.n = n
        self.__dict__.update(kwargs)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        raise RuntimeError("Go does this")


class Stream(IterableDataset):
    def __init__(self, n):
        self.shoal_dataset = "stream"
        self.n = n

    def __iter__(self):
        raise RuntimeError("Go does this")


def rows(loader):
    batches = iter(loader)
    try:
        return [[t.tolist() for t in batch] for batch in batches]
    except Exception:
        batches._shutdown_workers()  # the exception is in a cycle with the iterator, whose collection would wait for the workers in vain
        raise


def error(f):
    try:
        f()
    except Exception as e:
        return type(e).__name__ + ": " + str(e)
    return "no error"


if __name__ == "__main__":
    torch.multiprocessing.set_executable(sys.argv[1])
    torch.multiprocessing.set_sharing_strategy(sys.argv[2])
    spawn = dict(multiprocessing_context="spawn")
    out = {}
    out["map"] = rows(DataLoader(Squares(10), batch_size=4, num_workers=2, **spawn))
    shuffled = rows(DataLoader(Squares(10), batch_size=4, num_workers=2, shuffle=True, drop_last=True, **spawn))
    out["shuffled"] = [len(shuffled), sorted({x for b in shuffled for x in b[0]} - set(range(10)))]
    single = DataLoader(Squares(3), batch_size=None, num_workers=1, **spawn)
    out["single"] = rows(single)
    # Samplers make whatever a list takes as an index.
    batches = [torch.tensor([3, 9]), torch.tensor([0, -2], dtype=torch.int32)]
    out["tensors"] = rows(DataLoader(Squares(10), batch_sampler=batches, num_workers=1, **spawn))
    out["ranges"] = rows(DataLoader(Squares(10), batch_sampler=[range(1, 4), range(-1, -5, -2)], num_workers=1, **spawn))
    out["one_by_one"] = rows(DataLoader(Squares(10), batch_size=2, sampler=[torch.tensor(4), -1], num_workers=1, **spawn))
    out["single_t"] = rows(DataLoader(Squares(10), batch_size=None, sampler=[torch.tensor(4), torch.tensor([3, 9])], num_workers=1, **spawn))
    kept = DataLoader(Squares(6), batch_size=3, num_workers=2, persistent_workers=True, **spawn)
    out["persistent"] = [rows(kept), rows(kept)]
    shared = [batch[1].is_shared() for batch in kept]
    out["shared"] = shared
    del kept
    out["stream"] = rows(DataLoader(Stream(5), batch_size=2, num_workers=2, **spawn))
    out["stream_drop"] = rows(DataLoader(Stream(5), batch_size=2, num_workers=1, drop_last=True, **spawn))
    again = DataLoader(Stream(3), batch_size=2, num_workers=1, persistent_workers=True, **spawn)
    out["stream_again"] = [rows(again), rows(again)]
    del again
    torch.manual_seed(1)
    info = DataLoader(Squares(2, name="info", extra="keyword"), batch_size=1, num_workers=2, **spawn)
    out["info"] = rows(info)
    out["error"] = error(lambda: rows(DataLoader(Squares(9, fail=7), batch_size=3, num_workers=2, **spawn)))
    out["panic"] = error(lambda: rows(DataLoader(Squares(9, panic=7), batch_size=3, num_workers=2, **spawn)))
    out["unknown"] = error(lambda: rows(DataLoader(Squares(9, name="nobody"), batch_size=3, num_workers=1, **spawn)))
    scaled = dict(batch_size=2, num_workers=1, **spawn)
    torch.multiprocessing.set_sharing_strategy("file_descriptor")  # PyTorch 1.13 may spin in the other one when it has loaders
    out["tensor"] = rows(DataLoader(Squares(2, name="scaled", scale=torch.tensor([3.0, 5.0])), **scaled))
    torch.multiprocessing.set_sharing_strategy(sys.argv[2])
    out["misspelt"] = error(lambda: rows(DataLoader(Squares(2, name="scaled", scales=3), **scaled)))
    out["mistyped"] = error(lambda: rows(DataLoader(Squares("two", name="scaled"), sampler=[0], **scaled)))
    out["around"] = error(lambda: rows(DataLoader(torch.utils.data.Subset(Squares(2), [0, 2]), **scaled)))
    out["early"] = next(iter(DataLoader(Squares(1000), batch_size=2, num_workers=2, **spawn)))[0].tolist()

    ctx = torch.multiprocessing.get_context("spawn")
    work, done, event, lock = queues.Queue(ctx=ctx), queues.SimpleQueue(ctx=ctx), ctx.Event(), ctx.Lock()
    p = ctx.Process(target=rows, args=(work, done, event, lock), kwargs={"scale": 3})
    p.start()
    for i in range(5):
        work.put(torch.full((2,), float(i)))
    out["function"] = [done.get().tolist() for _ in range(5)]
    with lock:
        event.set()
    work.put(None)
    out["function_end"] = done.get()
    p.join()
    out["exitcode"] = p.exitcode

    cond, rlock, event, back = ctx.Condition(), ctx.RLock(), ctx.Event(), ctx.Queue()
    p = ctx.Process(target=error, args=(cond, rlock, event, back))
    rlock.acquire()
    with cond:
        p.start()
        out["notified"] = cond.wait(60)  # Go notifies, and waits to be notified
        cond.notify()
    rlock.release()
    out["set"] = event.wait(60)
    out["taken"] = back.get()
    p.join()
    print(json.dumps(out))
