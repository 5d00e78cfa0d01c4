"""Functions that send and end at once, as users write them."""
import os
import signal
import sys
import time

import torch
import torch.multiprocessing


def say(conn, queue, simple, other, strategy, end):
    """Sends through all there is, and ends."""
    torch.multiprocessing.set_sharing_strategy(strategy)
    global kept
    kept = torch.full((3,), 7.0)  # is in use here to the end
    conn.send((torch.full((2,), 1.0), torch.full((2,), 2)))
    queue.put(torch.full((2,), 3.0))
    simple.put(torch.full((2,), 4.0))
    other.send(torch.full((2,), 5.0))
    conn.send(kept)
    if end == "raise":
        raise ValueError("after it has sent")
    if end == "exit":
        sys.exit(0)


def pass_on(conn, queue, n):
    """Receives what another process has put, and sends the sums."""
    conn.send([float(queue.get().sum()) for _ in range(n)])


def fill(conn, queue, n):
    for strategy in "file_descriptor", "file_system":
        torch.multiprocessing.set_sharing_strategy(strategy)
        for i in range(n):
            queue.put(torch.full((2,), float(i)))


def many(conn, n):
    """Leaves more descriptors than a socket holds."""
    for i in range(n):
        conn.send(torch.tensor(float(i)))


def stalled(conn):
    """Has a receiver of descriptors that connects and says nothing."""
    import multiprocessing
    import socket
    from multiprocessing.resource_sharer import _resource_sharer
    ends = multiprocessing.Pipe()
    ends[0].send(torch.zeros(2))
    s = socket.socket(socket.AF_UNIX)
    s.connect(_resource_sharer._address)
    globals()["held"] = s, ends
    time.sleep(0.2)


def crowd(conn, n):
    """Sends more descriptors in one message than wait ahead of it."""
    conn.send([torch.tensor(float(i)) for i in range(n)])


def die(conn, other, sig):
    """Is killed after it has sent."""
    other.send(torch.zeros(2))
    conn.send(torch.ones(2))
    os.kill(os.getpid(), sig)
