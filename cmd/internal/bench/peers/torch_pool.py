"""The rows about pools, for torch_core.py."""

import multiprocessing
import time

import torch
import torch.multiprocessing as mp

WORKERS = 4
COLUMNS = 100
STRATEGIES = ["file_descriptor", "file_system"]

# A tensor that is in shared memory already, or a fresh one that the pool moves there.
STARMAPS = [s + " " + t for s in STRATEGIES for t in ("fresh", "shared")]
VARIANTS = {"pool_start": ["spawn"], "pool_map": ["chunksize=1"], "pool_starmap": STARMAPS, "pool_starmap_default": STARMAPS[:1]}


def settle(strategy, answers=None):
    torch.set_num_threads(1)
    mp.set_sharing_strategy(strategy)
    if answers is not None:
        answers.put(None)


def square(x):
    return x * x


def sum_chunk(i, chunk):
    return chunk.sum().item()


def new_pool(strategy, answers=None):
    return mp.get_context("spawn").Pool(WORKERS, initializer=settle, initargs=(strategy, answers))


def start():
    answers = mp.get_context("spawn").SimpleQueue()
    begin = time.perf_counter_ns()
    pool = new_pool(STRATEGIES[0], answers)
    for _ in range(WORKERS):
        answers.get()
    ns = time.perf_counter_ns() - begin
    pool.terminate()
    pool.join()
    return ns


pools = {}


def pool_for(strategy):
    """One pool a strategy, which has answered before anything is measured."""
    if strategy not in pools:
        pools[strategy] = new_pool(strategy)
        pools[strategy].map(square, range(10 * WORKERS), chunksize=1)
    mp.set_sharing_strategy(strategy)
    return pools[strategy]


def starmap(variant, rows, rounds):
    strategy, _, kind = variant.partition(" ")
    pool = pool_for(strategy)
    shared = torch.full((rows, COLUMNS), 1.0).share_memory_()
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        t = shared if kind == "shared" else torch.full((rows, COLUMNS), 1.0)
        total = sum(pool.starmap(sum_chunk, enumerate(t.chunk(4)), chunksize=1))
        if total != rows * COLUMNS:
            raise ValueError(f"the sums make {total}")
    return (time.perf_counter_ns() - begin) / rounds


def measure(op, variant, size, rounds):
    if op == "pool_start":
        return start()
    if op.startswith("pool_starmap"):
        return starmap(variant, size, rounds)
    pool = pool_for(STRATEGIES[0])
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        pool.map(square, range(size), chunksize=1)
    return (time.perf_counter_ns() - begin) / rounds


def close():
    for pool in pools.values():
        pool.close()
        pool.join()
