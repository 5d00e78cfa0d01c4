# Two ranks of three are started.
import os, time
import torch.distributed as dist
import fault

def rank(n, path, queue):
    queue.put(0)
    dist.init_process_group("gloo", init_method="file://" + path, rank=n, world_size=3)

if __name__ == "__main__":
    ctx = fault.context()
    queue = ctx.SimpleQueue()
    path = f"/tmp/shoal-fault-{os.getpid()}"
    ranks = [ctx.Process(target=rank, args=(n, path, queue)) for n in range(2)]
    for r in ranks:
        r.start()
    for _ in ranks:
        queue.get()
    time.sleep(1.5)
    fault.ready(ranks[0].pid)
    for r in ranks:
        r.join()
