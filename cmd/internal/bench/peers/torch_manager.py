"""The rows about managers, for torch_core.py."""

import time

import torch
import torch.multiprocessing as mp

VARIANTS = {"manager_call": ["list[0]"], "manager_read": ["Value.value"]}

manager = None
things = {}


def thing(op):
    """A proxy of the manager's, which is started once and outside of what is measured."""
    global manager
    if manager is None:
        torch.set_num_threads(1)
        manager = mp.get_context("spawn").Manager()
        things["manager_call"] = manager.list([1])
        things["manager_read"] = manager.Value("i", 1)
    return things[op]


def measure(op, rounds):
    x = thing(op)
    if op == "manager_call":
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            x[0]
    else:
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            x.value
    return (time.perf_counter_ns() - begin) / rounds


def close():
    if manager is not None:
        things.clear()
        manager.shutdown()
