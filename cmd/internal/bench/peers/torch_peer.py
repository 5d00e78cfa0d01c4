"""The rows of the suites torchpeer and torchloader: PyTorch with a program of Shoal's, and with itself.

Speaks as torch_core.py does. SHOAL_TORCH is the program.
"""

import io
import json
import multiprocessing
import multiprocessing.resource_tracker
import os
import sys
import time

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset

from torch_core import end_with_parent, fresh_shared, threading

STRATEGIES = ["file_descriptor", "file_system"]
KEPT = 4
now = time.monotonic_ns  # one clock for all processes


class Ends:
    """Queues, or a connection, of one side."""

    def __init__(self, inbox, outbox):
        self.get = getattr(inbox, "get", None) or inbox.recv
        self.put = getattr(outbox, "put", None) or outbox.send


def written(strategy, size, value):
    t = fresh_shared(size)
    t.fill_(value)
    return t


def edges(t):
    t[0] += 1
    t[-1] += 1


def follow(inbox, outbox):
    """The other side, in Python. The program does the same."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    ends = Ends(inbox, outbox)
    while True:
        order = ends.get()
        if order is None:
            return
        op, strategy, size, rounds = order
        mp.set_sharing_strategy(strategy)
        for i in range(rounds):
            if op == "to":
                begin = now()
                t = written(strategy, size, i)
                ends.put((begin, t))
                del t
                ends.get()
            elif op == "from":
                begin, t = ends.get()
                at = now()
                assert t[0].item() == i and t[-1].item() == i
                del t
                ends.put(at - begin)
            elif op == "rtt":
                t = ends.get()
                edges(t)
                ends.put(t)
                del t


class Other:
    """Another process, which is the program or Python."""

    def __init__(self, variant):
        self.context = mp.get_context("spawn")
        kind = variant.partition(" ")[0]
        if kind == "shoal":
            mine, theirs = self.context.Pipe()
            self.ends, args = Ends(mine, mine), (theirs, theirs)
            multiprocessing.resource_tracker.ensure_running()
            self.context.set_executable(os.environ["SHOAL_TORCH"])
        else:
            there, back = getattr(self.context, kind)(), getattr(self.context, kind)()
            self.ends, args = Ends(back, there), (there, back)
        self.process = self.context.Process(target=follow, args=args, daemon=True)
        try:
            self.process.start()
        finally:
            self.context.set_executable(sys.executable)

    def measure(self, op, strategy, size, rounds):
        put, get, spent = self.ends.put, self.ends.get, 0
        put((op, strategy, size, rounds))
        if op.startswith("spawn_"):  # the program starts us, and measures itself with that
            put((sys.executable, os.path.abspath(__file__)))
            return get()
        if op == "share":
            for i in range(rounds):
                put((now(), written(strategy, size, i)))
                get()
            return get() / rounds
        kept = get() if op == "kept" else None
        if op == "rtt":  # in the other rows it would be written while the first tensor of the other side waits for us
            t = written(strategy, size, 0)
        for i in range(rounds):
            if op in ("to", "kept"):
                begin, got = get()
                spent += now() - begin
                view = kept[got] if kept else got
                assert view[0].item() == i and view[-1].item() == i
                del got, view
                put(0)
            elif op == "from":
                begin = now()
                t = written(strategy, size, i)
                put((begin, t))
                del t
                spent += get()
            elif op == "rtt":
                begin = now()
                put(t)
                t = get()
                spent += now() - begin
        if op == "rtt":
            assert t[0].item() == rounds
        return spent / rounds

    def close(self):
        self.ends.put(None)
        self.process.join()


class Starter(Other):
    """The program that has started this process."""

    def __init__(self, conn):
        self.ends = Ends(conn, conn)


def spawned(conn):
    """What the program starts: measures as it says."""
    torch.set_num_threads(1)
    starter = Starter(conn)
    while True:
        op, strategy, size, rounds = conn.recv()
        mp.set_sharing_strategy(strategy)
        conn.send(float(starter.measure(op, strategy, size, rounds)))


class Light(Dataset):
    """20,000 samples of 1,000 images, every other one flipped."""

    def __init__(self, n):
        self.shoal_dataset, self.n = "light", n
        self.images = None

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.images is None:
            self.images = torch.arange(1000 * 3 * 32 * 32, dtype=torch.float32).reshape(1000, 3, 32, 32)
        t = self.images[i % 1000]
        return (t.flip(-1) if i % 2 else t), i


class JPEG(Dataset):
    """1,000 photographs of noise on a slope, of 224×224, to be decoded."""

    def __init__(self, n, path):
        self.shoal_dataset, self.n, self.path = "jpeg", n, path

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        from PIL import Image
        with open(os.path.join(self.path, "%d.jpg" % (i % 100)), "rb") as f:
            image = Image.open(io.BytesIO(f.read())).convert("RGB")
        return torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).reshape(224, 224, 3), i


class Loading:
    """A DataLoader whose two workers stay."""

    def __init__(self, variant, op, samples, path):
        mp.set_sharing_strategy(variant.partition(" ")[2] or STRATEGIES[0])
        data, batch = (Light(samples), 128) if op == "light" else (JPEG(samples, path), 32)
        ours = variant.startswith("shoal")
        self.loader = DataLoader(data, batch_size=batch, num_workers=2, persistent_workers=True, multiprocessing_context="spawn")
        if ours:
            multiprocessing.resource_tracker.ensure_running()
            mp.set_executable(os.environ["SHOAL_TORCH"])
        try:
            self.epoch()  # starts the workers
        finally:
            mp.set_executable(sys.executable)

    def epoch(self):
        begin, n = now(), 0
        for images, numbers in self.loader:
            n += len(numbers)
        return n * 1e9 / (now() - begin)


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    queues = [q + " " + s for s in STRATEGIES for q in ("Queue", "SimpleQueue")]
    variants = {op + " " + s: [q for q in queues if q.endswith(s)] for op in ("to", "from", "rtt") for s in STRATEGIES}
    variants["light"] = ["workers " + s for s in STRATEGIES]
    try:
        import PIL
        variants["jpeg"] = variants["light"]
    except ImportError:
        pass
    print(json.dumps({"Name": "torch " + torch.__version__, "Detail": "Python %s, spawn, one thread a process" % sys.version.split()[0],
                      "Variants": variants}), file=out, flush=True)
    others, loaders = {}, {}
    for line in sys.stdin:
        r = json.loads(line)
        try:
            op, variant = r["op"], r["variant"]
            if op in ("light", "jpeg"):
                loader = loaders.get((op, variant))
                if loader is None:
                    loader = loaders[op, variant] = Loading(variant, op, r["rounds"], os.path.dirname(os.path.abspath(__file__)))
                value = loader.epoch()
            else:
                op, strategy = op.split()
                mp.set_sharing_strategy(strategy)
                side = variant, strategy  # a process for each, as a program has one strategy: what waits to be used again is of one kind
                if side not in others:
                    others[side] = Other(variant)
                value = others[side].measure(op, strategy, r["size"], r["rounds"])
            answer = {"Value": value}
        except Exception as e:
            answer = {"Error": f"{r['op']}, {r['variant']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)
    loaders.clear()
    for o in others.values():
        o.close()


if __name__ == "__main__":
    main()
