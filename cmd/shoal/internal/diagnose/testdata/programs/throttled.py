import os, time
import torch
import fault

def work(queue, path):
    if path:
        fault.join_group(path)
    queue.put(1)
    while True:
        sum(range(1000))
        if not path:
            time.sleep(0.005)

if __name__ == "__main__":
    ctx = fault.context()
    queue = ctx.SimpleQueue()
    path = fault.group("cpu", "throttled", cfs_quota_us=5000)
    workers = [ctx.Process(target=work, args=(queue, path if n == 1 else ""), daemon=True) for n in range(3)]
    for w in workers:
        w.start()
    for _ in workers:
        queue.get()
    time.sleep(0.3)
    fault.ready(workers[1].pid)
    time.sleep(1000)
