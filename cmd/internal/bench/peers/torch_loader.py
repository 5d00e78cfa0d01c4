"""The rows of shoal bench loader, done with torch.

Says hello in one line of JSON, then does what each line of stdin asks for and answers in a line: samples per second, ns, bytes.
"""

import json
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

import torch_image


class Flipped(Dataset):
    """Images in memory, each of which is mirrored or not, at random."""

    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        x = self.images[i]
        return x.flip(2) if torch.randint(2, (1,)).item() else x


class Batched(Flipped):
    """The same, a batch at a time: what a user does who has read the manual to its end."""

    def __getitems__(self, indices):
        x = self.images[indices]
        flip = torch.randint(2, (len(indices),), dtype=torch.bool)
        x[flip] = x[flip].flip(3)
        return x


def stacked(x):
    return x if torch.is_tensor(x) else torch.stack(x)


SETS = {"samples": Flipped, "batches": Batched}


def pss(pid):
    with open("/proc/%d/smaps_rollup" % pid) as f:
        for line in f:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024


def loader(images, batch, variant):
    kind, workers = variant.split()[0], int(variant.split()[1])
    return DataLoader(SETS[kind](images), batch_size=batch, shuffle=True, num_workers=workers, collate_fn=stacked)


def light(images, batch, variant):
    all_, n = loader(images, batch, variant), 0
    begin = time.perf_counter_ns()
    for x in all_:
        n += len(x)
    return n * 1e9 / (time.perf_counter_ns() - begin)


def first_batch(images, batch, variant):
    all_ = loader(images, batch, variant)
    begin = time.perf_counter_ns()
    it = iter(all_)
    next(it)
    took = time.perf_counter_ns() - begin
    del it
    return took


def memory(rows, batch, workers, method):
    images = torch.ones(rows, 3 * 32 * 32)
    images.share_memory_()
    before = pss(os.getpid())
    all_ = DataLoader(TensorDataset(images), batch_size=batch, shuffle=True, num_workers=workers, multiprocessing_context=method)
    it = iter(all_)
    pids = [w.pid for w in it._workers]
    left = len(all_)
    for _ in it:
        left -= 1
        if left == 2 * workers:  # nearly the end, and all workers are there
            total = pss(os.getpid()) + sum(pss(p) for p in pids)
    return max(0, total - before) / workers


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    cpus = len(os.sched_getaffinity(0))
    counts = sorted({1, cpus})
    variants = {
        "light": ["%s %d workers" % (k, n) for k in SETS for n in [0] + counts],
        "first_batch": ["samples %d workers" % cpus],
        "memory": ["spawn", "fork"],
        **torch_image.variants(counts),
    }
    print(json.dumps({"Name": "torch " + torch.__version__, "Detail": "Python %s, fork unless it says otherwise" % sys.version.split()[0],
                      "Variants": variants}), file=out, flush=True)
    sets = {}
    for line in sys.stdin:
        r = json.loads(line)
        op, variant, args, rounds, size = r["op"], r["variant"], r["args"] or [], r["rounds"], r["size"]
        try:
            if op == "memory":
                value = memory(size, rounds, args[0], variant)
            elif op in torch_image.variants(counts):
                value = torch_image.run(op, args, rounds, variant)
            else:
                if size not in sets:
                    sets[size] = torch.rand(size, 3, 32, 32)
                value = {"light": light, "first_batch": first_batch}[op](sets[size], rounds, variant)
            answer = {"Value": value}
        except Exception as e:
            answer = {"Error": f"{op}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
