"""A training script whose data are Go's and whose other processes are Python's: python together.py PROGRAM."""
import json
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __init__(self, n):
        self.shoal_dataset, self.n = "squares", n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        raise RuntimeError("Go does this")


class Words(Dataset):
    """Samples that only Python makes, though a data set of Go's is an attribute."""

    def __init__(self, beside):
        self.beside = beside

    def __len__(self):
        return 5

    def __getitem__(self, i):
        return {"word": "w" * i, "length": i, "seed": SEED}


SEED = 0


def begin(worker):
    global SEED
    SEED = 100 + worker


def longest(samples):
    return max(samples, key=lambda s: s["length"])


def say(rank, queue):
    queue.put(rank)


def main():
    spawn = dict(num_workers=1, multiprocessing_context="spawn")
    train = DataLoader(Squares(6), batch_size=2, **spawn)
    validate = DataLoader(Words(train.dataset), batch_size=2, collate_fn=longest, worker_init_fn=begin, **spawn)
    out = {"together": [[a[0].tolist(), a[1].tolist(), b] for a, b in zip(train, validate)]}
    queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
    torch.multiprocessing.spawn(say, args=(queue,), nprocs=1)
    out["spawned"] = queue.get()
    print(json.dumps(out))


if __name__ == "__main__":
    torch.multiprocessing.set_executable(sys.argv[1])
    main()
