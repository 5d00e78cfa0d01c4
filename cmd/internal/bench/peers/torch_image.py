"""Images in files for the rows of shoal bench loader, decoded by Pillow."""

import os
import pathlib
import tempfile
import time

import torch
from torch.utils.data import DataLoader, Dataset

try:
    import numpy as np
    from PIL import Image
except ImportError:  # the rows have no peer then
    Image = None


class Files(Dataset):
    """Images as bytes, (H, W, C): without a copy more than Pillow makes."""

    def __init__(self, folder):
        self.paths = sorted(str(p) for p in pathlib.Path(folder).iterdir())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        with Image.open(self.paths[i]) as im:
            return torch.from_numpy(np.array(im.convert("RGB"))), 0


def folder(pid, fmt):
    return os.path.join(tempfile.gettempdir(), "shoal-bench-images-%d" % pid, fmt, "class")


loaders = {}  # whose workers live on


def epoch(pid, fmt, batch, variant):
    workers = int(variant.split()[0])
    key = fmt, workers
    if key not in loaders:
        loaders[key] = DataLoader(Files(folder(pid, fmt)), batch_size=batch, shuffle=True, num_workers=workers, persistent_workers=workers > 0)
    n = 0
    begin = time.perf_counter_ns()
    for x, _ in loaders[key]:
        n += len(x)
    return n * 1e9 / (time.perf_counter_ns() - begin)


def first(pid, batch, variant):
    all_ = DataLoader(Files(folder(pid, "jpeg")), batch_size=batch, shuffle=True, num_workers=int(variant.split()[0]))
    begin = time.perf_counter_ns()
    it = iter(all_)
    next(it)
    took = time.perf_counter_ns() - begin
    del it
    return took


def variants(counts):
    if Image is None:
        return {}
    each = ["%d workers" % n for n in [0] + counts]
    return {"jpeg": each, "png": each, "first_jpegs": each}


def run(op, args, rounds, variant):
    if op == "first_jpegs":
        return first(args[0], rounds, variant)
    return epoch(args[0], op, rounds, variant)
