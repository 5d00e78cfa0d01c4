"""Helpers of the programs. Each program with a fault prints one line when its fault has occurred:
READY pid=THE PROCESS TO EXAMINE culprit=THE PROCESS AT FAULT. Its argument is the start method."""

import os
import sys
import time

try:
    import torch.multiprocessing as mp
except ImportError:  # some faults need no PyTorch
    import multiprocessing as mp


def context():
    return mp.get_context(sys.argv[1] if len(sys.argv) > 1 else "fork")


def ready(culprit, pid=None):
    print(f"READY pid={pid or os.getpid()} culprit={culprit}", flush=True)


def wait_dead(pid):
    """Waits until a child is a zombie, or reaped."""
    while True:
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except (FileNotFoundError, ProcessLookupError):
            return  # reaped by a fork server, perhaps after open
        time.sleep(0.01)


def start_rank(rank, n, size, path, met, args):
    import torch
    import torch.distributed as dist

    met.put(n)
    dist.init_process_group("gloo", init_method="file://" + path, rank=n, world_size=size)
    dist.all_reduce(torch.ones(4))
    met.put(n)
    rank(n, *args)


def start_ranks(ctx, rank, size, *args, absent=0):
    """Starts rank(n, *args) in the processes of a group, without the last absent ones, and waits until they
    have met. If some are absent, it waits until the others are about to meet."""
    met = ctx.SimpleQueue()
    path = f"/tmp/shoal-fault-{os.getpid()}"
    ranks = [ctx.Process(target=start_rank, args=(rank, n, size, path, met, args)) for n in range(size - absent)]
    for r in ranks:
        r.start()
    for _ in range(len(ranks) * (1 if absent else 2)):
        met.get()
    return ranks


def run_ranks(rank, size, culprit, wait=0.5, absent=0):
    """Starts ranks, announces the one at fault after some seconds, and joins them."""
    ranks = start_ranks(context(), rank, size, absent=absent)
    time.sleep(wait)
    ready(ranks[culprit].pid)
    for r in ranks:
        r.join()


def spin():
    n = 0
    while True:
        n += 1


def group(controller, name, **settings):
    """Makes a control group of version 1 and returns its directory."""
    path = f"/sys/fs/cgroup/{controller}/shoal-{name}-{os.getpid()}"
    os.mkdir(path)
    for key, value in settings.items():
        with open(f"{path}/{controller}.{key.replace('__', '.')}", "w") as f:
            f.write(str(value))
    return path


def join_group(path):
    with open(path + "/cgroup.procs", "w") as f:
        f.write(str(os.getpid()))
