"""Is the DataLoader of one Go worker, which it has told to end: python consumer.py PROGRAM."""
import json
import sys

import torch
import torch.multiprocessing
from torch.utils.data import Dataset
from torch.utils.data._utils.collate import default_collate
from torch.utils.data._utils.worker import _worker_loop


class Squares(Dataset):
    def __init__(self):
        self.shoal_dataset, self.n = "squares", 6


def consume(how):
    """Fetches the batches late, or never; or says that nobody wants them."""
    ctx = torch.multiprocessing.get_context("spawn")
    indices, results, done = ctx.Queue(), ctx.Queue(), ctx.Event()
    p = ctx.Process(target=_worker_loop, args=(0, Squares(), indices, results, done, True, default_collate, False, 7, None, 0, 1, False))
    p.start()
    for i in range(3):
        indices.put((i, [2 * i, 2 * i + 1]))
    results._reader.poll(60)
    if how == "unwanted":
        done.set()
    indices.put(None)
    got = []
    if how == "late":
        p.join(0.5)  # in vain
        got = [results.get()[1][0].tolist() for _ in range(3)]
    p.join()
    return {"how": how, "got": got, "exitcode": p.exitcode}


if __name__ == "__main__":
    torch.multiprocessing.set_executable(sys.argv[1])
    for how in sys.argv[2:]:
        print(json.dumps(consume(how)))
