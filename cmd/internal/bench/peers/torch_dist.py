"""The rows of shoal bench dist, done with torch.distributed and gloo in two processes or more.

Says hello in one line of JSON, then does what each line of stdin asks for and answers in a line: ns per round.
"""

import json
import multiprocessing
import os
import sys
import tempfile
import threading
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def all_reduce(t):
    dist.all_reduce(t)
    t /= 2  # gloo has no mean


def broadcast(t):
    dist.broadcast(t, 0)


def all_gather(t):
    halves = list(t.chunk(2))
    dist.all_gather(halves, halves[dist.get_rank()].clone())


def perform(op, size, rounds):
    t = torch.ones(size // 4)
    dist.barrier()
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        globals()[op](t)
    return (time.perf_counter_ns() - begin) / rounds


def join(rank, path, size):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=size)


def end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)


def follow(rank, path, size, orders):
    threading.Thread(target=end_with_parent, daemon=True).start()
    join(rank, path, size)
    while True:
        order = orders.get()
        if order is None:
            return
        perform(*order)


class Team:
    """The other ranks of a process group of some size, to which this process belongs as rank 0.

    A process has one group at a time."""

    def __init__(self, size):
        self.size, self.folder = size, tempfile.TemporaryDirectory()
        path, context = os.path.join(self.folder.name, "meet"), mp.get_context("spawn")
        self.orders = [context.SimpleQueue() for _ in range(size - 1)]
        self.processes = [context.Process(target=follow, args=(rank, path, size, orders), daemon=True)
                          for rank, orders in enumerate(self.orders, 1)]
        for process in self.processes:
            process.start()
        join(0, path, size)

    def perform(self, *order):
        for orders in self.orders:
            orders.put(order)
        return perform(*order)

    def close(self):
        for orders in self.orders:
            orders.put(None)
        for process in self.processes:
            process.join()
        dist.destroy_process_group()
        self.folder.cleanup()


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    team, way = Team(2), ["gloo"]
    ops = ["all_reduce", "broadcast", "all_gather", "all_reduce_2", "all_reduce_4", "all_reduce_8"]
    print(json.dumps({"Name": "torch " + torch.__version__,
                      "Detail": "Python %s, gloo, one thread in each process" % sys.version.split()[0],
                      "Variants": {op: way for op in ops}}), file=out, flush=True)
    for line in sys.stdin:
        r = json.loads(line)
        op, size = r["op"], 2
        if op.startswith("all_reduce_"):
            op, size = "all_reduce", int(op[len("all_reduce_"):])
        try:
            if team.size != size:
                team.close()
                team = Team(size)
            answer = {"Value": team.perform(op, r["size"], r["rounds"])}
        except Exception as e:
            answer = {"Error": f"{r['op']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)
    team.close()


if __name__ == "__main__":
    main()
