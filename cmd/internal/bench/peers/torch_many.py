"""The rows of many processes, for torch_core.py."""

import time

import torch
import torch.multiprocessing as mp

VARIANTS = {"barrier_many": ["multiprocessing"], "producers": ["multiprocessing"]}


def take_part(op, barrier, queue, orders):
    torch.set_num_threads(1)
    while True:
        barrier.wait()
        each = orders.value
        if each == 0:
            return
        for i in range(each):
            if op == "producers":
                queue.put(i)
            else:
                barrier.wait()


class Party:
    """This process and others, which wait at the barrier between two rounds."""

    def __init__(self, op, n):
        context = mp.get_context("spawn")
        self.op, self.n = op, n if op == "producers" else n - 1
        self.barrier, self.queue = context.Barrier(self.n + 1), context.Queue()
        self.orders = context.Value("q", lock=False)
        args = (op, self.barrier, self.queue, self.orders)
        self.processes = [context.Process(target=take_part, args=args, daemon=True) for _ in range(self.n)]
        for p in self.processes:
            p.start()

    def measure(self, rounds):
        each = self.orders.value = rounds // self.n if self.op == "producers" else rounds
        self.barrier.wait()
        begin = time.perf_counter_ns()
        if self.op == "producers":
            for _ in range(each * self.n):
                self.queue.get()
            return each * self.n * 1e9 / (time.perf_counter_ns() - begin)
        for _ in range(each):
            self.barrier.wait()
        return (time.perf_counter_ns() - begin) / each / (self.n + 1)

    def close(self):
        self.orders.value = 0
        self.barrier.wait()
        for p in self.processes:
            p.join()


party = (None, None)


def measure(op, n, rounds):
    """With the processes of the last call, if it was for as many; they are started outside of what is measured."""
    global party
    if party[0] != (op, n):
        close()
        party = (op, n), Party(op, n)
    return party[1].measure(max(rounds, n))


def close():
    if party[1] is not None:
        party[1].close()
