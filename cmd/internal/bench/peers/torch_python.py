"""The rows of the suite python: shoal.multiprocessing between two Python processes, and torch.multiprocessing.

Speaks as torch_core.py does. The variant shoal is shoal.multiprocessing, floor is what Python can do at best without messages, and
multiprocessing is the standard library, which copies. other_python.py has iceoryx2 and Ray.
"""

import array
import json
import mmap
import multiprocessing
import multiprocessing.reduction
import os
import subprocess
import sys
import tempfile
import threading
import time

import torch
import torch.multiprocessing as tmp

import other_python
from torch_core import end_with_parent, fresh_shared

STRATEGIES = ["file_descriptor", "file_system"]
PAUSE = 300_000  # ns that a side computes before it wakes the other one, which is parked then
SMALL = {"step": 1, "loss": 0.5, "name": "train"}
MISSING = "build the native parts (make native in a clone), or install the wheel of Shoal"
now = time.perf_counter_ns


def shoal_multiprocessing():
    try:
        import shoal.multiprocessing
    except ImportError as e:
        raise ImportError(f"{e}: {MISSING}") from e
    return shoal.multiprocessing


def compute():
    """Computes for PAUSE and returns how long it was."""
    begin = now()
    while now() - begin < PAUSE:
        pass
    return now() - begin


def edges(t):
    """Writes the first and the last element, which are bytes of a mapping or numbers of a tensor."""
    t[0] += 1
    t[-1] += 1
    return t


PRIVATE = torch.zeros(1 << 17, dtype=torch.int64)  # what the queues of the floors return: 1 MiB that is not shared


class Eventfd:
    """A counter in the kernel, as a queue. It is a pipe where Python has no eventfd (before 3.10)."""

    def __init__(self):
        if hasattr(os, "eventfd"):
            fd = os.eventfd(0)
            self.fds = fd, os.dup(fd)
        else:
            self.fds = os.pipe()

    def __getstate__(self):
        return [multiprocessing.reduction.DupFd(fd) for fd in self.fds]

    def __setstate__(self, fds):
        self.fds = [fd.detach() for fd in fds]

    def put(self, _):
        os.write(self.fds[1], b"\1\0\0\0\0\0\0\0")

    def get(self):
        os.read(self.fds[0], 8)
        return PRIVATE


class Byte:
    """A byte of a mapping, as a queue that both sides poll."""

    def __init__(self):
        self.file, path = tempfile.mkstemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        os.unlink(path)
        os.ftruncate(self.file, mmap.PAGESIZE)
        self.map()

    def map(self):
        self.bytes = mmap.mmap(self.file, mmap.PAGESIZE)

    def __getstate__(self):
        return multiprocessing.reduction.DupFd(self.file)

    def __setstate__(self, file):
        self.file = file.detach()
        self.map()

    def put(self, _):
        self.bytes[0] = 1

    def get(self):
        b = self.bytes
        while not b[0]:
            pass
        b[0] = 0
        return PRIVATE


def follow(strategy, orders, inbox, outbox):
    """The other process."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    tmp.set_sharing_strategy(strategy)
    get, put, touch = inbox.get, outbox.put, getattr(outbox, "edges", edges)
    while True:
        order = orders.recv()
        if order is None:
            return
        op, rounds = order
        spent = 0
        if op == "rtt":
            for _ in range(rounds):
                t = touch(get())
                put(t)
                del t
        elif op == "parked":
            for _ in range(rounds):
                t = touch(get())
                spent += compute()
                put(t)
                del t
        elif op == "echo":
            for _ in range(rounds):
                put(get())
        elif op == "wake":
            for _ in range(rounds):
                v = get()
                spent += compute()
                put(v)
        elif op == "count":
            for _ in range(rounds):
                get()
        orders.send(spent)


class Pair:
    """This process and another one, with a queue in each direction."""

    def __init__(self, variant):
        kind, _, strategy = variant.partition(" ")
        self.strategy = strategy if strategy in STRATEGIES else STRATEGIES[0]
        self.kind = kind
        tmp.set_sharing_strategy(self.strategy)
        context = (shoal_multiprocessing() if kind == "shoal" else tmp if strategy in STRATEGIES else multiprocessing).get_context("spawn")
        make = {"shoal": "Queue", "multiprocessing": "Queue"}.get(kind, kind)
        queue = {"eventfd": Eventfd, "byte": Byte, **other_python.QUEUES}.get(variant) or getattr(context, make)
        # a tensor can be in 4,095 messages of shoal that are not received yet
        limit = (1024,) if kind == "shoal" else ()
        self.there, self.back = queue(*limit), queue(*limit)
        self.orders, orders = multiprocessing.get_context("spawn").Pipe()
        self.process = context.Process(target=follow, args=(self.strategy, orders, self.there, self.back), daemon=True)
        self.process.start()
        orders.close()
        self.count(None, 0)  # returns when the process has started, and imported torch

    def value(self, size):
        """A tensor in the memory that the queue shares; an array for the standard library, which copies it, and
        memory of its own for a floor and for iceoryx2, whose queue loans the memory."""
        if self.kind == "shoal":
            import shoal
            return shoal.zeros((size // 8,), dtype=torch.int64)
        if self.kind == "multiprocessing":
            return array.array("q", bytes(size))
        if self.kind in ("byte", "eventfd"):
            return PRIVATE
        if self.kind == "iceoryx2":
            return torch.zeros(size // 8, dtype=torch.int64)
        return fresh_shared(size).zero_()

    def rtt(self, op, value, rounds):
        """Sends a value to and fro, and returns the ns that a round takes without the pauses."""
        put, get, pauses = self.there.put, self.back.get, 0
        touch = getattr(self.there, "edges", edges) if op in ("rtt", "parked") else None
        self.orders.send((op, rounds))
        begin = now()
        for _ in range(rounds):
            if op in ("parked", "wake"):
                pauses += compute()
            put(value)
            value = get()
            if touch:
                value = touch(value)
        spent = now() - begin - pauses
        return (spent - self.orders.recv()) / rounds

    def count(self, value, rounds):
        """Sends values one way, and returns how many a second."""
        self.orders.send(("count", rounds))
        put = self.there.put
        begin = now()
        for _ in range(rounds):
            put(value)
        self.orders.recv()
        return rounds * 1e9 / (now() - begin)

    def close(self):
        self.orders.send(None)
        self.process.join()


def call(variant, rounds):
    """The ns of a call: of our module, of ctypes, or of a function of Python's own that does nothing."""
    if variant == "shoal":
        queue = shoal_multiprocessing().Queue()
        f, args = queue.empty, ()
    elif variant == "ctypes":
        import ctypes
        f, args = ctypes.PyDLL(None).Py_IsInitialized, ()
    else:
        f, args = sys.getrefcount, (None,)
    begin = now()
    for _ in range(rounds):
        f(*args)
    return (now() - begin) / rounds


IMPORTS = {"shoal": "shoal.multiprocessing", "multiprocessing": "multiprocessing.queues, multiprocessing.connection",
           "torch": "torch.multiprocessing"}


def fresh(program, *args):
    """Runs a program in a Python of its own and returns the number that it prints."""
    run = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip().splitlines()[-1] + (": " + MISSING if "ImportError" in run.stderr else ""))
    return float(run.stdout)


def import_time(variant):
    """The ns of the import in a fresh Python."""
    return fresh(f"import time; b = time.perf_counter_ns(); import {IMPORTS[variant]}; print(time.perf_counter_ns() - b)")


MEMORY = """
import sys
def private():
    with open("/proc/self/smaps_rollup") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith(("Private_", "Shared_Dirty:"))) * 1024
before = private()
kind = sys.argv[1]
if kind == "shoal":
    import shoal.multiprocessing as mp
elif kind == "torch":
    import torch.multiprocessing as mp
else:
    import multiprocessing as mp
q = mp.Queue()
q.put({"a": 1})
q.get()
print(private() - before)
"""


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    queues = [q + " " + s for s in STRATEGIES for q in ("Queue", "SimpleQueue")] + ["multiprocessing"]
    variants = {op: queues for op in ("rtt", "parked", "echo", "wake", "count", "count_small")}
    variants["call"] = ["ctypes"]
    variants["import"] = variants["memory"] = ["torch", "multiprocessing"]
    others, names = other_python.variants()
    print(json.dumps({"Name": "torch " + torch.__version__, "Detail": "Python %s, spawn, one thread a process" % sys.version.split()[0],
                      "Variants": variants | others, "Names": names, "Missing": other_python.missing()}), file=out, flush=True)
    pairs = {}
    for line in sys.stdin:
        r = json.loads(line)
        op, variant, size, rounds = r["op"].partition(" ")[0], r["variant"], r["size"], r["rounds"]
        try:
            if op == "call":
                value = call(variant, rounds)
            elif op == "import":
                value = import_time(variant)
            elif op == "memory":
                value = fresh(MEMORY, variant)
            else:
                if variant == "floor":
                    variant = "byte" if op in ("rtt", "echo") else "eventfd"
                if variant not in pairs:
                    pairs[variant] = other_python.Ray(PAUSE) if variant.startswith("ray ") else Pair(variant)
                pair = pairs[variant]
                tmp.set_sharing_strategy(getattr(pair, "strategy", STRATEGIES[0]))
                if op == "count":
                    value = pair.count(pair.value(size), rounds)
                elif op == "count_small":
                    value = pair.count(SMALL, rounds)
                else:
                    value = pair.rtt(op, pair.value(size) if size else SMALL, rounds)
            answer = {"Value": value}
        except Exception as e:
            answer = {"Error": f"{r['op']}, {r['variant']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)
    for pair in sorted(pairs.values(), key=lambda p: isinstance(p, Pair)):  # Ray's first: only its processes outlive a kill
        pair.close()


if __name__ == "__main__":
    main()
