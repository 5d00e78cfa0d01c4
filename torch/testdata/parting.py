"""Functions that send and end at once, as users write them."""
import atexit
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

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


def killed_while_it_shares(conn, strategy, room):
    """Is killed by the kernel where PyTorch gives a file its size, or has no room there."""
    import resource
    torch.multiprocessing.set_sharing_strategy(strategy)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN if room == "none" else signal.SIG_DFL)
    shared = torch.zeros(2000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    try:
        shared.share_memory_()
    except RuntimeError:  # of the room
        sys.exit(3)


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


class Late:
    """Sends, through all there is, when the function has returned and finalizers were run."""

    def __init__(self, conn, queue, simple, strategy):
        self.conn, self.queue, self.simple, self.strategy = conn, queue, simple, strategy

    def wait(self):
        """Waits for the main thread to be in threading._shutdown, behind the finalizers of multiprocessing."""
        threading.main_thread().join()

    def send(self):
        torch.multiprocessing.set_sharing_strategy(self.strategy)
        self.wait()
        self.conn.send(torch.full((2,), 1.0))
        self.queue.put(torch.full((2,), 2.0))
        self.simple.put(torch.full((2,), 3.0))


def thread(conn, queue, simple, strategy, end):
    """Has a thread that sends when the function has ended. The function also sends before that."""
    torch.multiprocessing.set_sharing_strategy(strategy)
    conn.send(torch.full((2,), 0.0))
    threading.Thread(target=Late(conn, queue, simple, strategy).send).start()
    if end == "raise":
        raise ValueError("before its thread has sent")


def pooled(conn, queue, simple, strategy, end):
    """Leaves work to a pool of threads that it does not shut down."""
    conn.send(torch.full((2,), 0.0))
    late, entered = Late(conn, queue, simple, strategy), threading.Event()
    late.wait = lambda: (entered.set(), time.sleep(0.3))
    global pool
    pool = ThreadPoolExecutor(1)
    pool.submit(late.send)
    entered.wait()


def daemon(conn):
    """Has a daemon thread that sends before the end, and again after the hand-over."""
    sent, go = threading.Event(), threading.Event()

    def send():
        for i in range(2):
            conn.send(torch.full((2,), float(i)))
            sent.set()
            go.wait()

    threading.Thread(target=send, daemon=True).start()
    sent.wait()
    sent.clear()
    atexit.register(lambda: (go.set(), sent.wait()))
