"""The rows of shoal bench cuda, done with torch.multiprocessing and its CUDA IPC."""

import json
import multiprocessing
import os
import sys
import threading
import time

import torch
import torch.multiprocessing as mp


def end_with_parent():
    multiprocessing.parent_process().join()
    os._exit(1)


def take(inbox, outbox):
    """Receives tensors, gives them back and says so."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    while True:
        x = inbox.get()
        if x is None:
            return
        n = x.numel()
        del x
        outbox.put(n)


class Taker:
    def __init__(self):
        context = mp.get_context("spawn")
        self.out, self.back = context.SimpleQueue(), context.SimpleQueue()
        self.process = context.Process(target=take, args=(self.out, self.back), daemon=True)
        self.process.start()
        self.tensors = {}

    def handoff(self, size, rounds, written):
        if size not in self.tensors:
            self.tensors[size] = torch.ones(size // 4, device="cuda")
            torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            if written:
                self.tensors[size][:1].fill_(1)
            self.out.put(self.tensors[size])
            self.back.get()
        return (time.perf_counter_ns() - begin) / rounds

    def close(self):
        self.out.put(None)
        self.process.join()


def copy(size, rounds):
    a = torch.ones(size // 4, device="cuda")
    b = torch.empty_like(a)
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        b.copy_(a)
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - begin) / rounds


MATRICES = {}


def matmul(dtype, n, rounds):
    if dtype not in MATRICES:
        MATRICES[dtype] = [torch.randn(n, n, device="cuda").to(dtype) for _ in range(2)]
    a, b = MATRICES[dtype]
    torch.matmul(a, b)
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        torch.matmul(a, b)
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - begin) / rounds


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if not torch.cuda.is_available():
        raise SystemExit("this torch sees no CUDA device")
    print(json.dumps({"Name": "torch " + torch.__version__,
                      "Detail": "Python %s, CUDA %s" % (sys.version.split()[0], torch.version.cuda),
                      "Variants": {"cuda_handoff": ["CUDA IPC"], "cuda_handoff_written": ["CUDA IPC"], "cuda_copy": ["copy_"],
                                   "cuda_matmul_float32": ["matmul"], "cuda_matmul_bfloat16": ["matmul"]}}), file=out, flush=True)
    taker = None
    for line in sys.stdin:
        r = json.loads(line)
        try:
            if r["op"] == "cuda_copy":
                value = copy(r["size"], r["rounds"])
            elif r["op"].startswith("cuda_matmul_"):
                value = matmul(getattr(torch, r["op"][len("cuda_matmul_"):]), r["size"], r["rounds"])
            else:
                taker = taker or Taker()
                value = taker.handoff(r["size"], r["rounds"], r["op"] == "cuda_handoff_written")
            answer = {"Value": value}
        except Exception as e:
            answer = {"Error": f"{r['op']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)
    if taker is not None:
        taker.close()


if __name__ == "__main__":
    main()
