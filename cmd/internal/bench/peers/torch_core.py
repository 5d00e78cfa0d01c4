"""The rows of shoal bench, done with torch.multiprocessing.

Says hello in one line of JSON, then does what each line of stdin asks for and answers in a line. Values are ns per round, rounds per second, or bytes, as the row has it.
"""

import json
import multiprocessing
import os
import sys
import threading
import time

import torch
import torch.multiprocessing as mp

import torch_first
import torch_manager
import torch_many
import torch_pool
import torch_sync

STRATEGIES = ["file_descriptor", "file_system"]
INT64 = 8


def settle(strategy):
    """What both processes of a pair do first: one thread, one way to share. The kernel chooses their processors, which
    suits torch better than two that are pinned: it wakes a process for each message, and that is cheapest on the same one."""
    torch.set_num_threads(1)
    mp.set_sharing_strategy(strategy)


def edges(t):
    """Writes the first and the last 64 bytes, as a receiver does that works on a tensor."""
    n = min(8, t.numel())
    t[:n] += 1
    t[-n:] += 1


def tensor(size):
    """A tensor in ordinary memory, of int64 so that a sum reads every byte without converting it."""
    return torch.ones(max(size // INT64, 1), dtype=torch.int64)


def fresh_shared(size):
    """A tensor made in shared memory at once, the quickest way that torch has: what DataLoader's collate does."""
    numel = max(size // INT64, 1)
    like = torch.empty(0, dtype=torch.int64)
    if hasattr(torch, "UntypedStorage"):
        storage = torch.UntypedStorage._new_shared(numel * INT64)
        return like.set_(storage, 0, (numel,), (1,))
    return like.set_(like.storage()._new_shared(numel), 0, (numel,), (1,))


def end_with_parent():
    """A process that waits for a queue does not notice that its parent was killed: it holds both ends itself."""
    multiprocessing.parent_process().join()
    os._exit(1)


def play(strategy, inbox, outbox):
    """The second process: does its side of an operation when it is told to."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    settle(strategy)
    while True:
        order = inbox.get()
        if order is None:
            return
        FOLLOW[order[0]](inbox, outbox, order[1])


def follow_rtt(inbox, outbox, rounds):
    for _ in range(rounds):
        t = inbox.get()
        edges(t)
        outbox.put(t)


def follow_touch(inbox, outbox, rounds):
    for _ in range(rounds):
        t = inbox.get()
        t.sum().item()
        edges(t)
        outbox.put(t)


def follow_count(inbox, outbox, rounds):
    for _ in range(rounds):
        inbox.get()
    outbox.put(None)


def follow_fresh(inbox, outbox, rounds):
    for _ in range(rounds):
        t = inbox.get()
        edges(t)
        del t
        outbox.put(None)


FOLLOW = {"tensor_rtt": follow_rtt, "tensor_touch": follow_touch, "count": follow_count, "fresh_tensor": follow_fresh}


class Pair:
    """This process and a second one, with a queue in each direction."""

    def __init__(self, strategy):
        self.context = mp.get_context("spawn")
        self.strategy = strategy
        self.there, self.back, self.own = (self.context.SimpleQueue() for _ in range(3))
        mp.set_sharing_strategy(strategy)
        self.process = self.context.Process(target=play, args=(strategy, self.there, self.back), daemon=True)
        self.process.start()

    def tensor_rtt(self, size, rounds, op="tensor_rtt"):
        t = tensor(size).share_memory_()
        self.there.put((op, rounds))
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            edges(t)
            self.there.put(t)
            t = self.back.get()
        return (time.perf_counter_ns() - begin) / rounds

    def tensor_touch(self, size, rounds):
        return self.tensor_rtt(size, rounds, "tensor_touch")

    def one_way(self, rounds, make):
        self.there.put(("count", rounds))
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            self.there.put(make())
        self.back.get()
        return rounds * 1e9 / (time.perf_counter_ns() - begin)

    def tensors_per_s(self, size, rounds):
        return self.one_way(rounds, lambda: fresh_shared(size))

    def numbers_per_s(self, size, rounds):
        return self.one_way(rounds, lambda: 1)

    def numbers_in_lists_per_s(self, size, rounds):
        numbers = [1] * size
        return size * self.one_way(rounds, lambda: numbers)

    def fresh_tensor(self, size, rounds):
        data = tensor(size)
        self.there.put(("fresh_tensor", rounds))
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            t = fresh_shared(size)
            t.copy_(data)
            self.there.put(t)
            del t
            self.back.get()
        return (time.perf_counter_ns() - begin) / rounds

    def alloc_put_get_release(self, size, rounds):
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            self.own.put(fresh_shared(size))
            t = self.own.get()
            del t
        return (time.perf_counter_ns() - begin) / rounds

    def close(self):
        self.there.put(None)
        self.process.join()


def newborn(births):
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    births.put((now, os.getpid()))
    multiprocessing.parent_process().join()  # until it is killed


def brood(method, rounds, look):
    """Starts processes, and returns what look makes of the time of the last first statement and of their ids."""
    context = mp.get_context(method)
    births = context.SimpleQueue()
    begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    children = [context.Process(target=newborn, args=(births,), daemon=True) for _ in range(rounds)]
    try:
        for c in children:
            c.start()
        born = [births.get() for _ in children]
        return look(max(at for at, _ in born) - begin, [pid for _, pid in born])
    finally:
        for c in children:
            if c.pid is not None:
                c.kill()
                c.join()


def pss(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        for line in f:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    raise RuntimeError("no Pss")


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    torch.set_num_threads(1)
    paired = ["tensor_rtt", "tensor_touch", "tensors_per_s", "fresh_tensor", "alloc_put_get_release"]
    variants = {op: ["SimpleQueue " + s for s in STRATEGIES] for op in paired}
    variants["numbers_per_s"] = variants["numbers_in_lists_per_s"] = ["SimpleQueue"]
    variants["spawn"], variants["pss"] = ["spawn", "fork"], ["spawn"]
    variants.update(torch_pool.VARIANTS)
    variants.update(torch_first.VARIANTS)
    variants.update((op, ["multiprocessing"]) for op in torch_sync.OPS)
    variants.update(torch_manager.VARIANTS)
    variants.update(torch_many.VARIANTS)
    print(json.dumps({"Name": "torch " + torch.__version__,
                      "Detail": "Python %s, spawn, one thread a process" % sys.version.split()[0],
                      "Variants": variants}), file=out, flush=True)
    pairs, sync = {}, None
    for line in sys.stdin:
        r = json.loads(line)
        try:
            if r["op"] == "spawn":
                value = brood(r["variant"], r["rounds"], lambda ns, pids: ns)
            elif r["op"] in torch_pool.VARIANTS:
                value = torch_pool.measure(r["op"], r["variant"], r["size"], r["rounds"])
            elif r["op"] in torch_first.VARIANTS:
                value = torch_first.measure(r["op"], r["variant"], r["size"], r["rounds"])
            elif r["op"] in torch_manager.VARIANTS:
                value = torch_manager.measure(r["op"], r["rounds"])
            elif r["op"] in torch_many.VARIANTS:
                value = torch_many.measure(r["op"], r["size"], r["rounds"])
            elif r["op"] == "pss":
                value = brood("spawn", 1, lambda ns, pids: pss(pids[0]))
            elif r["op"] in torch_sync.OPS:
                sync = sync or torch_sync.Sync()
                value = sync.measure(r["op"], r["rounds"], r["args"])
            else:
                strategy = r["variant"].partition(" ")[2] or STRATEGIES[0]
                if strategy not in pairs:
                    pairs[strategy] = Pair(strategy)
                settle(strategy)
                value = getattr(pairs[strategy], r["op"])(r["size"], r["rounds"])
            answer = {"Value": value}
        except Exception as e:
            answer = {"Error": f"{r['op']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)
    for p in [*pairs.values(), sync]:
        if p is not None:
            p.close()
    torch_pool.close()
    torch_manager.close()
    torch_many.close()


if __name__ == "__main__":
    main()
