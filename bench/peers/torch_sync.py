"""The rows of suite sync, done with the primitives of torch.multiprocessing, which are those of multiprocessing."""

import multiprocessing
import os
import threading
import time

import torch
import torch.multiprocessing as mp


class Tools:
    """What two processes synchronise by. It can only be given to a process when that is started."""

    def __init__(self, context):
        self.start = context.Barrier(2)
        self.lock = context.Lock()
        self.value = context.Value("d", 0.0)
        self.events = [context.Event(), context.Event()]
        self.semaphores = [context.Semaphore(0), context.Semaphore(0)]
        self.barrier = context.Barrier(2)


def lock(tools, rank, rounds):
    for _ in range(rounds):
        tools.lock.acquire()
        tools.lock.release()


def add(tools, rank, rounds):
    value = tools.value
    for _ in range(rounds):
        with value.get_lock():
            value.value += 1


def event(tools, rank, rounds):
    mine, theirs = tools.events[rank], tools.events[1 - rank]
    for _ in range(rounds):
        if rank == 0:
            mine.set()
        theirs.wait()
        theirs.clear()
        if rank == 1:
            mine.set()


def semaphore(tools, rank, rounds):
    mine, theirs = tools.semaphores[rank], tools.semaphores[1 - rank]
    for _ in range(rounds):
        if rank == 0:
            mine.release()
        theirs.acquire()
        if rank == 1:
            mine.release()


def barrier(tools, rank, rounds):
    for _ in range(rounds):
        tools.barrier.wait()


# By operation: what is done, whether by both processes, and how many of what is counted a round does.
OPS = {
    "mutex_uncontended": (lock, False, 1),
    "mutex_contended_2": (lock, True, 2),
    "value_add": (add, False, 1),
    "value_add_2": (add, True, 2),
    "event_rtt": (event, True, 1),
    "semaphore_rtt": (semaphore, True, 1),
    "barrier_cycle": (barrier, True, 1),
}


def end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)


def follow(tools, orders):
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    while True:
        order = orders.get()
        if order is None:
            return
        op, rounds, cpu = order
        os.sched_setaffinity(0, {cpu})
        tools.start.wait()
        OPS[op][0](tools, 1, rounds)
        tools.start.wait()


class Sync:
    """This process and a second one."""

    def __init__(self):
        context = mp.get_context("spawn")
        self.tools, self.orders = Tools(context), context.SimpleQueue()
        self.process = context.Process(target=follow, args=(self.tools, self.orders), daemon=True)
        self.process.start()

    def measure(self, op, rounds, cpus):
        """On these two processors, as the program that is compared with this one."""
        free = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {cpus[0]})
        try:
            return self.measure_here(op, rounds, cpus[1])
        finally:
            os.sched_setaffinity(0, free)

    def measure_here(self, op, rounds, cpu):
        do, both, each = OPS[op]
        if both:
            self.orders.put((op, rounds, cpu))
            self.tools.start.wait()
        begin = time.perf_counter_ns()
        do(self.tools, 0, rounds)
        if both:
            self.tools.start.wait()
        return (time.perf_counter_ns() - begin) / rounds / each

    def close(self):
        self.orders.put(None)
        self.process.join()
