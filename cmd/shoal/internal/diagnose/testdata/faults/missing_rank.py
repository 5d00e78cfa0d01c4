import os, sys, threading, time
import torch
import torch.distributed as dist
import fault

def rank(n, path, queue, method):
    dist.init_process_group("gloo", init_method="file://" + path, rank=n, world_size=3)
    t = torch.ones(4)
    dist.all_reduce(t)
    queue.put(os.getpid() if n == 1 else 0)
    if n == 1:
        time.sleep(1000)
    dist.all_reduce(t)

if __name__ == "__main__":
    ctx = fault.context()
    queue = ctx.SimpleQueue()
    path = f"/tmp/shoal-fault-{os.getpid()}"
    ranks = [ctx.Process(target=rank, args=(n, path, queue, ctx.get_start_method())) for n in range(3)]
    for r in ranks:
        r.start()
    culprit = sum(queue.get() for _ in ranks)
    time.sleep(0.3)
    fault.ready(culprit)
    for r in ranks:
        r.join()
