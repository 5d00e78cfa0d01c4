"""The program of lesson 10: two workers share tasks, and one of them is killed."""
import os
import signal

import torch

import shoal
import shoal.multiprocessing as mp

LOST = 10  # the worker that takes this task is killed


def work(tasks, results, weights):
    for n, attempt in iter(tasks.get, None):
        if n == LOST and attempt == 1:
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does when memory is short
        w, version = weights.load_version()
        t = shoal.empty(3)  # a torch.Tensor in shared memory: put copies nothing
        torch.mul(w, n, out=t)
        results.put((n, version, t))
        tasks.task_done()


def train(weights):
    w = torch.tensor([8.0, 16.0, 24.0], requires_grad=True)
    for _ in range(3):
        (w * w).sum().backward()
        with torch.no_grad():
            w -= 0.25 * w.grad
        w.grad = None
        weights.store(w.detach())  # replaces the value, and waits for no reader


if __name__ == "__main__":
    ctx = mp.get_context("spawn")
    tasks, results, weights = ctx.JoinableQueue(), ctx.Queue(), ctx.Latest(torch.ones(3))
    workers = [ctx.Process(target=work, args=(tasks, results, weights), daemon=True) for _ in "ab"]
    for p in workers:
        p.start()
    for n in range(20):
        tasks.put((n, 1))
    try:
        tasks.join()
    except mp.LostError as e:
        print("join:", e)
    done = {results.get()[0] for _ in range(results.qsize())}
    missing = set(range(20)) - done
    print(len(done), "results, missing:", missing)

    train(weights)
    for n in missing:
        tasks.put((n, 2))
    tasks.join()
    n, version, t = results.get()
    print("task", n, "with version", version, "of the weights:", t)

    tasks.put(None)
    for p in workers:
        p.join()
    print("exit codes:", sorted(p.exitcode for p in workers))
