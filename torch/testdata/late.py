"""Receives the tensors of a Go process whose function has returned."""
import json
import multiprocessing
import sys
import time

import torch
import torch.multiprocessing


def leave_tensors(*args):
    raise RuntimeError("Go does this")


def receive(n, strategy, fetch):
    """Returns how many of n tensors came, how many did not, and how the process ended."""
    ctx = torch.multiprocessing.get_context("spawn")
    conn, theirs = ctx.Pipe()
    queue = ctx.Queue()
    p = ctx.Process(target=leave_tensors, args=(theirs, queue, n, strategy))
    p.start()
    theirs.close()
    queue.get()  # when all is sent
    p.join(0.5)  # in vain
    received = lost = 0
    for i in range(n if fetch else 0):
        try:
            if conn.recv().tolist() == [i, i]:
                received += 1
        except Exception as e:
            print(type(e).__name__, e, file=sys.stderr)
            lost += 1
    p.join()
    return {"received": received, "lost": lost, "exitcode": p.exitcode}


if __name__ == "__main__":
    torch.multiprocessing.set_executable(sys.argv[1])
    print(json.dumps([receive(15, s, sys.argv[3] == "fetch") for s in sys.argv[2].split(",")]))
