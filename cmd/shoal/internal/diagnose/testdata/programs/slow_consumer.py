import os, time
import torch
import fault

def work(queue):
    while True:
        queue.put(torch.ones(16))

if __name__ == "__main__":
    ctx = fault.context()
    queue = ctx.Queue(4)
    for _ in range(3):
        ctx.Process(target=work, args=(queue,), daemon=True).start()
    for n in range(1000):
        queue.get()
        if n == 3:
            fault.ready(os.getpid())
        time.sleep(0.7)
