"""Notes what a training script's loaders gave it: a digest of each batch, and how long they took.

It is all that the scripts have beyond what people write: `for batch in journal.watch(loader)`."""
import argparse
import hashlib
import json
import os
import time

import torch


def arguments():
    """The command line of every script."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True, help="what make_data.py made")
    parser.add_argument("--loader", help="the Go program that loads; without it Python does")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--journal", required=True, help="a directory for what was noted")
    return parser.parse_args()


class Journal:
    """The notes of one process; rank tells those of one script apart."""

    def __init__(self, args, rank=0):
        self.path = os.path.join(args.journal, f"{rank}.json")
        self.digests, self.samples, self.seconds = [], 0, 0.0
        self.steady_samples, self.steady_seconds = 0, 0.0  # from the first batch of a loader on
        self.processes = {}  # the largest number of processes of each kind that were seen at once
        self.start()

    def watch(self, loader):
        """The batches of a loader, noted."""
        self.start()
        try:
            for batch in loader:
                self.note(batch)
                yield batch
        finally:  # also where the loop ends early
            self.stop()

    def start(self):
        """A loader is asked for its first batch."""
        self.began, self.first = time.perf_counter(), None

    def note(self, batch):
        """A batch is there."""
        self.last = time.perf_counter()
        h = hashlib.sha1()
        n = digest(h, batch)
        self.digests.append(h.hexdigest()[:16])
        self.samples += n
        if self.first is None:
            self.first = self.last
            self.look()
        else:
            self.steady_samples += n
            if len(self.digests) % 16 == 0:
                self.look()

    def look(self):
        """Counts the processes under this one by program and task, as /proc shows them now."""
        for kind, n in count_processes(os.getpid()).items():
            self.processes[kind] = max(n, self.processes.get(kind, 0))

    def stop(self):
        """The loader has no more."""
        self.seconds += time.perf_counter() - self.began
        if self.first is not None:
            self.steady_seconds += self.last - self.first

    def close(self):
        """Writes the notes down."""
        names = "digests", "samples", "seconds", "steady_samples", "steady_seconds", "processes"
        with open(self.path, "w") as f:
            json.dump({name: getattr(self, name) for name in names}, f)


def count_processes(root):
    """Counts the processes under a process. The kinds are "go worker", "go samples", "python worker" and "python helper"."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as f:
                parents[int(name)] = int(f.read().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            pass
    counts = {}
    for pid in parents:
        above = pid
        while above in parents and above != root:
            above = parents[above]
        if above != root or pid == root:
            continue
        try:
            program = os.readlink(f"/proc/{pid}/exe")
            with open(f"/proc/{pid}/cmdline") as f:
                line = f.read()
        except OSError:
            continue
        server = "multiprocessing.forkserver" in line and "multiprocessing.forkserver" not in command_line(parents[pid])
        if os.path.basename(program) in ("loader", "shoal-loader"):
            kind = "go samples" if "--shoal-samples" in line else "go worker"
        elif server or "multiprocessing.resource_tracker" in line:
            kind = "python helper"
        else:
            kind = "python worker"
        counts[kind] = counts.get(kind, 0) + 1
    return counts


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read()
    except OSError:
        return ""


def digest(h, value):
    """Adds a value to a hash, types and shapes too; returns the length of the first tensor, 1 if there is none."""
    h.update(type(value).__name__.encode() + b";")
    if isinstance(value, torch.Tensor):
        h.update(f"{value.dtype}{tuple(value.shape)}".encode())
        h.update(value.detach().contiguous().numpy().tobytes())
        return value.shape[0] if value.dim() else 1
    if isinstance(value, dict):
        return max([1] + [(digest(h, str(k)), digest(h, v))[1] for k, v in value.items()])
    if isinstance(value, (list, tuple)):
        return max([1] + [digest(h, v) for v in value])
    h.update(repr(value).encode())
    return 1
