import os, time
import torch
import fault

def work(queue):
    torch.set_num_threads(8)
    a = torch.ones(1 << 21)
    a.exp()  # a product of matrices has the threads of another library
    queue.put(1)
    while True:
        a.exp()

if __name__ == "__main__":
    ctx = fault.context()
    queue = ctx.SimpleQueue()
    for _ in range(3):
        ctx.Process(target=work, args=(queue,), daemon=True).start()
    for _ in range(3):
        queue.get()
    fault.ready(os.getpid())
    time.sleep(1000)
