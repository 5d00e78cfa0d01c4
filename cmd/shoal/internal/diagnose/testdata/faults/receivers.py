# Both ranks receive, and none sends.
import os, time
import torch
import torch.distributed as dist
import fault

def rank(n, path, queue):
    dist.init_process_group("gloo", init_method="file://" + path, rank=n, world_size=2)
    t = torch.ones(4)
    dist.all_reduce(t)
    queue.put(os.getpid() if n == 0 else 0)
    dist.recv(t, src=1 - n)

if __name__ == "__main__":
    ctx = fault.context()
    queue = ctx.SimpleQueue()
    path = f"/tmp/shoal-fault-{os.getpid()}"
    ranks = [ctx.Process(target=rank, args=(n, path, queue)) for n in range(2)]
    for r in ranks:
        r.start()
    culprit = sum(queue.get() for _ in ranks)
    time.sleep(0.5)
    fault.ready(culprit)
    for r in ranks:
        r.join()
