"""The other side of the interoperability tests: ordinary Python, which runs the calls it is sent."""
import multiprocessing
import os
import pickle
import socket
import sys
import time
from collections import OrderedDict
from multiprocessing.connection import Client, Listener


class Peer:
    """Answers requests, the name of a method and its arguments, until the connection ends."""

    def __init__(self, conn, **names):
        self.conn = conn
        self.names = dict(globals(), **names)  # what eval knows

    def serve(self):
        while True:
            try:
                op, *args = self.conn.recv()
            except EOFError:
                return
            except Exception as e:
                self.conn.send(f"{type(e).__name__}: {e}")
                continue
            getattr(self, op)(*args)

    def say(self, value):
        self.conn.send(value)

    def repr(self, value):
        self.conn.send(repr(value))

    def eval(self, code):
        self.conn.send(eval(code, self.names))

    def fail(self, text):
        raise ValueError(text)

    def exit(self, code):
        os._exit(code)

    def pipe(self):
        near, far = multiprocessing.Pipe()
        self.conn.send(far)
        far.close()
        near.send(near.recv() + 1)

    def oneway(self):
        reader, writer = multiprocessing.Pipe(duplex=False)
        self.conn.send((reader, writer))
        reader.close()
        writer.close()

    def ends(self, pipes):
        reader, writer = pipes
        writer.send(reader.recv() + 1)
        self.conn.send((reader.writable, writer.readable))
        reader.close()
        writer.close()

    def socket(self):
        a, b = socket.socketpair()
        self.conn.send(b)
        b.close()
        a.sendall(a.recv(5)[::-1])
        a.close()

    def reverse(self, b):
        sent = b.recv(100)
        b.sendall(sent[::-1])
        self.conn.send((int(b.family), int(b.type), b.getblocking()))
        b.close()

    def use(self, other, code):
        other.send(eval(code, self.names))
        self.conn.send(other.recv())

    def detach(self, promised):
        with os.fdopen(promised.detach(), "rb") as f:
            self.conn.send(f.read())


def error(f):
    try:
        return f()
    except Exception as e:
        return type(e).__name__


def wait_for(condition):
    with condition:
        return condition.wait(60)


def notify(condition):
    with condition:
        condition.notify_all()


def run(conn, **names):
    """What Go starts."""
    Peer(conn, **names).serve()


def tell(conn, *args):
    """Ends by itself."""
    conn.send((os.getpid(), multiprocessing.parent_process().pid, repr(args)))


def without_torch(conn):
    """Receives a tensor where PyTorch is not installed."""
    sys.modules["torch"] = None
    conn.recv()


def hang_up(conn, how):
    """Closes its connection, and lives on or does not."""
    if how == "os._exit":
        os._exit(7)
    if how == "sys.exit":
        sys.exit(7)
    if how == "sys.exit text":
        sys.exit("no more of this")
    conn.close()
    if how == "live":
        time.sleep(60)


def make_tools(conn):
    """Makes what the resource tracker tracks, and waits."""
    from multiprocessing import shared_memory
    tools = multiprocessing.Queue(), multiprocessing.Lock(), shared_memory.SharedMemory(create=True, size=100)
    conn.send("ready")
    conn.recv()
    del tools


def late_threads(conn, pooled):
    """Sends the ends of two pipes when it has ended: by a thread, or by one of a pool, 0.2 s later."""
    import threading
    from concurrent.futures import ThreadPoolExecutor
    entered = threading.Event()

    def send():
        entered.set()
        if pooled:
            time.sleep(0.2)
        else:
            threading.main_thread().join()
        for i in range(2):
            near, far = multiprocessing.Pipe()
            near.send(i)
            conn.send(far)

    if pooled:
        global pool
        pool = ThreadPoolExecutor(1)
        pool.submit(send)
    else:
        threading.Thread(target=send).start()
    entered.wait()


def until_end(conn, n, text):
    """Sends n messages, and polls until the other side ends."""
    for i in range(n):
        conn.send((i, text))
    while True:
        if conn.poll(0.05):
            try:
                conn.recv()
            except EOFError:
                return


def primitives(conn, queue, simple, lock, rlock, semaphore, bounded, event, cond):
    """Has what Go has made, for eval."""
    names = dict(locals())
    run(names.pop("conn"), **names)


def meet(role, network, address, key):
    """What meets Go by itself: first with another key than Go's, or one that has another."""
    if network == "tcp":
        host, port = address.split(":")
        address = (host, int(port))
    multiprocessing.current_process().authkey = key
    if role == "client":
        print(error(lambda: Client(address, authkey=b"wrong")), flush=True)
        with Client(address, authkey=key) as conn:
            run(conn)
        return
    with Listener(address, authkey=key) as listener:
        at = listener.address
        print(at if isinstance(at, str) else "%s:%d" % at, flush=True)
        print(error(listener.accept), flush=True)
        with listener.accept() as conn:
            run(conn)


if __name__ == "__main__":
    meet(*sys.argv[1:4], sys.argv[4].encode())

def give(conn, n):
    """Sends connections at once, each with its number to be received."""
    for i in range(n):
        near, far = multiprocessing.Pipe()
        near.send(i)
        conn.send(far)


def give_in_fork(conn, n):
    """Has a process that it forks send them, which waits until they have come."""
    multiprocessing.get_context("fork").Process(target=give_and_wait, args=(conn, n)).start()
    multiprocessing.active_children()[0].join()


def give_and_wait(conn, n):
    give(conn, n)
    conn.recv()


def take(conn, giver):
    """Receives a connection through another one, and sends what comes through it."""
    conn.send(giver.recv().recv())
    giver = conn.recv()
    conn.send(giver.recv())
