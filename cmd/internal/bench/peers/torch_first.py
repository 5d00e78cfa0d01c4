"""The rows of suite first, for torch_core.py."""

import time

import torch
import torch.multiprocessing as mp

import torch_pool

# A list lets Pool choose the chunks, and numpy's rows or tensors are what a data set has.
VARIANTS = {
    "empty_put": ["SimpleQueue " + s for s in torch_pool.STRATEGIES],
    "pool_map_ints": ["default chunks"],
    "loader_get": ["numpy", "from_numpy"],
}


class Plain:
    def __init__(self, items, tensors):
        import numpy

        self.images = numpy.zeros((items, 28, 28), numpy.float32)
        self.labels = numpy.zeros(items, numpy.int64)
        self.tensors = tensors

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        if self.tensors:
            return torch.from_numpy(self.images[i]), int(self.labels[i])
        return self.images[i], self.labels[i]


queues = {}
sets = {}


def empty_put(variant, size, rounds):
    strategy = variant.split()[1]
    mp.set_sharing_strategy(strategy)
    if strategy not in queues:
        queues[strategy] = mp.get_context("spawn").SimpleQueue()
    queue = queues[strategy]
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        t = torch.empty(size // 4)
        t.fill_(1)
        queue.put(t)
        t = queue.get()
    return (time.perf_counter_ns() - begin) / rounds


def map_ints(size, rounds):
    pool, numbers = torch_pool.pool_for(torch_pool.STRATEGIES[0]), list(range(size))
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        if pool.map(torch_pool.square, numbers)[-1] != (size - 1) ** 2:
            raise ValueError("the last square is wrong")
    return (time.perf_counter_ns() - begin) / rounds


def loader_get(variant, items, batch):
    if (variant, items) not in sets:
        sets[variant, items] = Plain(items, variant == "from_numpy")
    n, all_ = 0, torch.utils.data.DataLoader(sets[variant, items], batch_size=batch, shuffle=True)
    begin = time.perf_counter_ns()
    for images, _ in all_:
        n += len(images)
    return n * 1e9 / (time.perf_counter_ns() - begin)


def measure(op, variant, size, rounds):
    if op == "empty_put":
        return empty_put(variant, size, rounds)
    if op == "pool_map_ints":
        return map_ints(size, rounds)
    return loader_get(variant, size, rounds)
