"""Helpers of the seeded faults. Each program prints one line when its fault has occurred:
READY pid=THE PROCESS TO EXAMINE culprit=THE PROCESS AT FAULT. The first argument is the start method."""

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
            f = open(f"/proc/{pid}/stat")
        except FileNotFoundError:
            return  # reaped by a fork server
        with f:
            if f.read().rpartition(")")[2].split()[0] == "Z":
                return
        time.sleep(0.01)


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
