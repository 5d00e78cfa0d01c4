"""The rows of shoal bench dist, done with torch.distributed and gloo in two processes.

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


def join(rank, path):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)


def end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)


def second(path, orders):
    threading.Thread(target=end_with_parent, daemon=True).start()
    join(1, path)
    while True:
        order = orders.get()
        if order is None:
            return
        perform(*order)


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    with tempfile.TemporaryDirectory() as folder:
        path, context = os.path.join(folder, "meet"), mp.get_context("spawn")
        orders = context.SimpleQueue()
        process = context.Process(target=second, args=(path, orders), daemon=True)
        process.start()
        join(0, path)
        way = ["gloo"]
        print(json.dumps({"Name": "torch " + torch.__version__,
                          "Detail": "Python %s, gloo, two processes, one thread each" % sys.version.split()[0],
                          "Variants": {"all_reduce": way, "broadcast": way, "all_gather": way}}), file=out, flush=True)
        for line in sys.stdin:
            r = json.loads(line)
            order = (r["op"], r["size"], r["rounds"])
            try:
                orders.put(order)
                answer = {"Value": perform(*order)}
            except Exception as e:
                answer = {"Error": f"{r['op']}: {type(e).__name__}: {e}"}
            print(json.dumps(answer), file=out, flush=True)
        orders.put(None)
        process.join()


if __name__ == "__main__":
    main()
