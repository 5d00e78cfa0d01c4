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
        self.waited = context.Value("q", lock=False)  # ns that the second process let the first one sleep
        self.events = [context.Event(), context.Event()]
        self.semaphores = [context.Semaphore(0), context.Semaphore(0)]
        self.barrier = context.Barrier(2)


def let_sleep(pause):
    """Keeps the processor busy, so that the other process is asleep when it is told, and returns for how many ns."""
    begin = time.perf_counter_ns()
    while time.perf_counter_ns() - begin < pause:
        pass
    return time.perf_counter_ns() - begin


def lock(tools, rank, rounds, pause):
    for _ in range(rounds):
        tools.lock.acquire()
        tools.lock.release()
    return 0


def add(tools, rank, rounds, pause):
    value = tools.value
    for _ in range(rounds):
        with value.get_lock():
            value.value += 1
    return 0


def event(tools, rank, rounds, pause):
    mine, theirs = tools.events[rank], tools.events[1 - rank]
    waited = 0
    for turn in range(2 * rounds):
        if turn & 1 != rank:
            theirs.wait()
            theirs.clear()
            continue
        if pause:
            waited += let_sleep(pause)
        mine.set()
    return waited


def semaphore(tools, rank, rounds, pause):
    mine, theirs = tools.semaphores[rank], tools.semaphores[1 - rank]
    waited = 0
    for turn in range(2 * rounds):
        if turn & 1 != rank:
            theirs.acquire()
            continue
        if pause:
            waited += let_sleep(pause)
        mine.release()
    return waited


def barrier(tools, rank, rounds, pause):
    waited = 0
    for turn in range(rounds):
        if pause and turn & 1 == rank:
            waited += let_sleep(pause)
        tools.barrier.wait()
    return waited


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
        op, rounds, cpu, pause = order
        os.sched_setaffinity(0, {cpu})
        tools.start.wait()
        tools.waited.value = OPS[op][0](tools, 1, rounds, pause)
        tools.start.wait()


class Sync:
    """This process and a second one."""

    def __init__(self):
        context = mp.get_context("spawn")
        self.tools, self.orders = Tools(context), context.SimpleQueue()
        self.process = context.Process(target=follow, args=(self.tools, self.orders), daemon=True)
        self.process.start()

    def measure(self, op, rounds, args):
        """On these two processors, as the program that is compared with this one. A third argument is the ns for which each process
        lets the other one sleep before it tells it something, which are not counted."""
        free = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {args[0]})
        try:
            return self.measure_here(op, rounds, args[1], *args[2:])
        finally:
            os.sched_setaffinity(0, free)

    def measure_here(self, op, rounds, cpu, pause=0):
        do, both, each = OPS[op]
        if both:
            self.orders.put((op, rounds, cpu, pause))
            self.tools.start.wait()
        begin = time.perf_counter_ns()
        waited = do(self.tools, 0, rounds, pause)
        if both:
            self.tools.start.wait()
            waited += self.tools.waited.value
        return (time.perf_counter_ns() - begin - waited) / rounds / each

    def close(self):
        self.orders.put(None)
        self.process.join()
