"""Kills Go and Python processes of one domain at random, and checks that no value is lost or doubled.

    python storm.py --kills 200 --worker PATH [--seconds S] [--seed N]

PATH is a build of test/pystorm; without it only Python processes take part. Producers put numbered
values with an array into one queue, and consumers get and check them. Every tenth value is stored as
the latest value, and Python processes count under a lock. Each process appends to a ledger of its
own, outside shared memory, before and after each put and after each get. At the end every value of
which a ledger says that it was put must have been received exactly once, except one value for each
consumer that was killed, which may have had it in its hands. No block, process, descriptor or file
may be left. The last line of the output is a summary in JSON.
"""

import argparse
import glob
import json
import os
import queue
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

import numpy

import shoal.multiprocessing as mp
from shoal.multiprocessing import names, runtime

RECORD = struct.Struct("<cQQ")
LEDGER = numpy.dtype([("kind", "S1"), ("ident", "<i8"), ("sequence", "<i8")])  # RECORD
ELEMENTS = 50


def number(ident, sequence):
    return (ident << 32) + sequence


def check(value):
    """Returns the id and the sequence number of a value whose array is right."""
    ident, sequence, array = value
    if array.shape != (ELEMENTS,) or not (array == number(ident, sequence)).all():
        raise AssertionError(f"value {sequence} of process {ident} has the array {array}")
    return ident, sequence


def count(lock, pair):
    """Adds 1 to both numbers of a block under a lock, and repairs them if a holder died between the two."""
    numbers = memoryview(pair.buf).cast("q")
    while True:
        try:
            lock.acquire()
        except mp.OwnerDiedError:
            with lock:
                numbers[1] = numbers[0]
            continue
        break
    if numbers[0] != numbers[1]:
        raise AssertionError(f"two holders of one lock: {numbers[0]} and {numbers[1]}")
    numbers[0] += 1
    numbers[1] += 1
    lock.release()


def work(role, ident, path):
    """The main function of a Python process: it ends when it is killed."""
    try:
        fd = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)
        q, latest = names.lookup("storm-queue"), names.lookup("storm-latest")
        lock, pair = names.lookup("storm-lock"), names.lookup("storm-pair")
        sequence = 0
        while True:
            if role == "produce":
                value = [ident, sequence, numpy.full(ELEMENTS, number(ident, sequence))]
                os.write(fd, RECORD.pack(b"B", ident, sequence))
                q.put(value)
                os.write(fd, RECORD.pack(b"P", ident, sequence))
                if sequence % 10 == 0:
                    latest.store(value)
            else:
                os.write(fd, RECORD.pack(b"G", *check(q.get())))
                check(latest.load())
            if sequence % 4 == 0:
                count(lock, pair)
            sequence += 1
    except BaseException as e:
        os.write(2, f"storm: {role} {ident}: {type(e).__name__}: {e}\n".encode())
        with open(path + ".error", "a") as f:
            f.write(f"{type(e).__name__}: {e}\n")
        raise


class Worker:
    """A process that produces or consumes."""

    def __init__(self, kind, role, ident, folder, program):
        self.kind, self.role, self.ident = kind, role, ident
        path = os.path.join(folder, f"{ident}.ledger")
        if kind == "go":
            self.process = subprocess.Popen([program, role, str(ident), path])
            self.pid = self.process.pid
        else:
            self.process = mp.get_context(kind).Process(target=work, args=(role, ident, path), daemon=True)
            self.process.start()
            self.pid = self.process.pid

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        code = self.process.wait(30) if self.kind == "go" else self.process.join(30) or self.process.exitcode
        if code != -signal.SIGKILL:
            raise AssertionError(f"the {self.kind} process {self.ident} ended with {code} before it was killed")
        if self.kind != "go":
            self.process.close()


def read_ledgers(folder):
    """Returns the numbers of the values of all ledgers by kind of record: B, P and G."""
    paths = glob.glob(os.path.join(folder, "*.ledger"))
    whole = [numpy.fromfile(path, LEDGER, os.path.getsize(path) // RECORD.size) for path in paths]
    records = numpy.concatenate(whole) if whole else numpy.empty(0, LEDGER)
    numbers = number(records["ident"], records["sequence"])
    return {kind: numbers[records["kind"] == kind] for kind in (b"B", b"P", b"G")}


def drain(q, folder):
    """Receives what is left in the queue."""
    with open(os.path.join(folder, "main.ledger"), "ab") as f:
        while True:
            try:
                f.write(RECORD.pack(b"G", *check(q.get(timeout=1))))
            except queue.Empty:
                return


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.02)
    return condition()


def storm(args, folder):
    """Kills processes, and returns the summary."""
    rng = random.Random(args.seed)
    q, latest = mp.Queue(32), mp.Latest([0, 0, numpy.zeros(ELEMENTS, "int64")])
    lock, pair = mp.Lock(), mp.shared_memory.SharedMemory("storm-pair", create=True, size=16)
    for name, o in (("queue", q), ("latest", latest), ("lock", lock)):
        names.bind(f"storm-{name}", o)
    mp.set_forkserver_preload(["numpy", "shoal.multiprocessing"])
    kinds = args.kinds.split(",")
    if args.worker is None:
        kinds = [k for k in kinds if k != "go"]
    before = None
    kills = {f"{k} {r}": 0 for k in kinds for r in ("produce", "consume")}
    workers, made = [], 0
    roles = ["produce", "consume"] * 2
    began = time.monotonic()
    try:
        while sum(kills.values()) < args.kills and time.monotonic() - began < args.seconds:
            for i, role in enumerate(roles):
                if len(workers) <= i:
                    workers.append(None)
                if workers[i] is None:
                    made += 1
                    workers[i] = Worker(rng.choice(kinds), role, made, folder, args.worker)
            time.sleep(rng.choice((0.0, 0.002, 0.02, 0.1)))
            i = rng.randrange(len(workers))
            workers[i].kill()
            kills[f"{workers[i].kind} {workers[i].role}"] += 1
            workers[i] = None
            if before is None and sum(kills.values()) >= min(20, args.kills // 2):
                before = len(os.listdir("/proc/self/fd"))
    except BaseException:
        for w in workers:
            if w is not None:
                w.process.kill()
        raise
    for w in workers:
        if w is not None:
            w.kill()
            kills[f"{w.kind} {w.role}"] += 1
    drain(q, folder)
    seconds = time.monotonic() - began
    left = {"descriptors": max(0, len(os.listdir("/proc/self/fd")) - before) if before else 0}
    left["processes"] = 0 if wait_until(lambda: runtime.stats()["processes"] == 1) else runtime.stats()["processes"] - 1
    for name in ("queue", "latest", "lock", "pair"):
        names.unlink(f"storm-{name}")
    pair.close()
    del q, latest, lock, pair
    left["blocks"] = 0 if wait_until(lambda: runtime.stats()["blocks"] <= 1) else runtime.stats()["blocks"]
    left["messages"] = runtime.stats()["in_transit"]
    return judge(kills, folder, left, seconds)


def judge(kills, folder, left, seconds):
    """Compares the ledgers."""
    found = read_ledgers(folder)
    put, begun, got = numpy.unique(found[b"P"]), numpy.unique(found[b"B"]), found[b"G"]
    once = numpy.unique(got)
    killed = sum(n for k, n in kills.items() if k.endswith("consume"))
    lost = len(numpy.setdiff1d(put, once, assume_unique=True))
    errors = "".join(open(p).read() for p in glob.glob(os.path.join(folder, "*.error")))
    result = {
        "kills": sum(kills.values()), "by": kills, "put": len(put), "received": len(got),
        "held by killed consumers": lost, "lost": max(0, lost - killed), "doubled": len(got) - len(once),
        "invented": len(numpy.setdiff1d(once, begun, assume_unique=True)), "left": left, "errors": errors, "seconds": round(seconds, 1),
    }
    bad = result["lost"] or result["doubled"] or result["invented"] or errors or any(left.values())
    result["ok"] = not bad and len(put) > 0
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end earlier, after this time")
    parser.add_argument("--worker", help="a build of test/pystorm")
    parser.add_argument("--kinds", default="forkserver,fork,go", help="forkserver, fork, spawn, go")
    parser.add_argument("--seed", type=int, default=None)
    args = parser.parse_args()
    if args.seed is None:
        args.seed = random.randrange(1 << 30)
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        result = storm(args, folder)
    print(json.dumps(result))
    sys.exit(0 if result["ok"] else 1)


if __name__ == "__main__":
    main()
