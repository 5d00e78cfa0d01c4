"""Ends epochs after random batches, resumes them, and counts the samples that are missing or doubled.

Each cut resumes with 3 workers in place of 2, with 2 ranks in place of 1, or kills a worker. The same
is done with torchdata's StatefulDataLoader, if it is installed. It prints a line of JSON for each.
"""

import argparse
import collections
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings

import numpy as np
import torch

import shoal

BATCH = 8


def flat(batches):
    return [i for batch in batches for i in batch[0].tolist()]


def judge(got, count, want=None):
    """The numbers of missing and of doubled samples, and whether the order is another."""
    seen = collections.Counter(got)
    return {"missing": count - len(seen), "doubled": len(got) - len(seen), "reordered": int(want is not None and got != want)}


class Shoal:
    """The cuts of shoal.DataLoader."""

    name = "shoal.DataLoader"

    def __init__(self, path):
        self.path = path

    def make(self, count, seed, workers, rank=0, world=1):
        return shoal.DataLoader(Part(self.path, count), BATCH, shuffle=True, num_workers=workers, seed=seed, rank=rank,
                                world_size=world)

    def workers(self, count, seed, cut):
        want = flat(self.make(count, seed, 0))
        loader = self.make(count, seed, 2)
        it = iter(loader)
        got = flat(itertools.islice(it, cut))
        again = self.make(count, seed + 1, 3)
        again.load_state_dict(loader.state_dict())
        del it
        return judge(got + flat(again), count, want)

    def ranks(self, count, seed, cut):
        loader = self.make(count, seed, 1)
        it = iter(loader)
        got = flat(itertools.islice(it, cut))
        state = loader.state_dict()
        del it
        for rank in 0, 1:
            again = self.make(count, seed + 1, 1, rank, 2)
            again.load_state_dict(state)
            got += flat(again)
        return judge(got, count)

    def kill(self, count, seed, cut):
        want, got = flat(self.make(count, seed, 0)), []
        it = iter(self.make(count, seed, 2))
        for i, batch in enumerate(it):
            if i == cut:
                os.kill(it._pool.workers[seed % 2].process.pid, signal.SIGKILL)
            got += batch[0].tolist()
        return judge(got, count, want)


class Part(shoal.Npy):
    """The first rows of a file."""

    def __init__(self, path, count):
        self.__dict__.update(OPENED.__dict__)
        self.count = count

    def __len__(self):
        return self.count


class Torchdata:
    """The same cuts of torchdata's StatefulDataLoader, with its samplers."""

    name = "torchdata.StatefulDataLoader"

    def make(self, count, seed, workers, rank=0, world=1):
        from torchdata.stateful_dataloader import StatefulDataLoader
        from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

        dataset = torch.utils.data.TensorDataset(torch.arange(count))
        sampler = StatefulDistributedSampler(dataset, world, rank, seed=seed)
        method = "fork" if workers else None
        return StatefulDataLoader(dataset, BATCH, sampler=sampler, num_workers=workers, multiprocessing_context=method)

    workers, ranks = Shoal.workers, Shoal.ranks

    def kill(self, count, seed, cut):
        want, got = flat(self.make(count, seed, 0)), []
        it = iter(self.make(count, seed, 2))
        for i, batch in enumerate(it):
            if i == cut:
                os.kill(it._workers[seed % 2].pid, signal.SIGKILL)
            got += batch[0].tolist()
        return judge(got, count, want)


def measure(loader, kind, cuts, seed):
    """Returns the sums over all cuts of a kind."""
    rng, total, errors, begin = random.Random(seed), collections.Counter(cuts=cuts), collections.Counter(), time.monotonic()
    for _ in range(cuts):
        count = rng.randrange(150, 400)
        cut = rng.randrange(0, (count - 1) // BATCH)
        try:
            told = getattr(loader, kind)(count, rng.randrange(1 << 30), cut)
            total.update(told)
            total["wrong"] += any(told.values())
        except Exception as e:
            total["failed"] += 1
            errors[f"{type(e).__name__}: {e}".split("\n")[0][:120]] += 1
    fields = {k: total[k] for k in ("cuts", "failed", "wrong", "missing", "doubled", "reordered")}
    first = {"first_error": errors.most_common(1)[0][0]} if errors else {}
    return {"loader": loader.name, "cut": {"workers": "2 to 3 workers", "ranks": "1 to 2 ranks", "kill": "kill -9 of a worker"}[kind],
            **fields, **first, "seconds": round(time.monotonic() - begin, 1)}


def main():
    global OPENED
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=20, help="the number of cuts of each kind")
    parser.add_argument("--torchdata-cuts", type=int, default=10, help="the same for torchdata")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "numbers.npy")
        np.save(path, np.arange(400))
        OPENED = shoal.Npy(path)
        for kind in "workers", "ranks", "kill":
            told = measure(Shoal(path), kind, args.cuts, args.seed)
            bad += told["failed"] + told["wrong"]
            print(json.dumps(told), flush=True)
        try:
            import torchdata.stateful_dataloader  # noqa: F401
        except ImportError as e:
            print(json.dumps({"loader": Torchdata.name, "left out": str(e)}), flush=True)
        else:
            for kind in "workers", "ranks", "kill":
                print(json.dumps(measure(Torchdata(), kind, args.torchdata_cuts, args.seed)), flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
