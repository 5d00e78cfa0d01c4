import os
import torch
import fault

def work(path):
    fault.join_group(path)
    kept = []
    while True:
        kept.append(torch.ones(1 << 20))

if __name__ == "__main__":
    ctx = fault.context()
    path = fault.group("memory", "oom", limit_in_bytes=256 << 20)
    queue = ctx.Queue()
    worker = ctx.Process(target=work, args=(path,))
    worker.start()
    fault.wait_dead(worker.pid)
    fault.ready(worker.pid)
    queue.get()
