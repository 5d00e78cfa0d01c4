import os, resource, time
import torch
import fault

def work(queue, done):
    for _ in range(1000):
        queue.put(torch.ones(16))
    done.get()

if __name__ == "__main__":
    ctx = fault.context()
    queue, done = ctx.Queue(8), ctx.Queue()
    worker = ctx.Process(target=work, args=(queue, done), daemon=True)
    worker.start()
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))
    kept = []
    try:
        while True:
            kept.append(queue.get())
    except Exception as err:
        print(repr(err), flush=True)
    fault.ready(os.getpid())
    time.sleep(1000)
