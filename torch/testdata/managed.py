"""A SyncManager, and a Python client of it that runs the calls it is sent."""
import multiprocessing
import queue
from multiprocessing.managers import AutoProxy, SyncManager

work = queue.Queue()


class Counter:
    def __init__(self, n=0):
        self.n = n

    def add(self, k=1):
        self.n += k
        return self.n

    def fail(self, *args):
        raise LookupError(*args)

    def unspeakable(self):
        return lambda: None

    def another(self):
        return Counter(self.n + 1)

    def is_same(self, other, n):
        return other.add(0) == n

    def _private(self):
        pass


def get_work():
    return work


def full(*args):
    import torch
    return torch.full(*args)


class Manager(SyncManager):
    pass


Manager.register("Counter", Counter, method_to_typeid={"another": "Another"})
Manager.register("Another", create_method=False)
Manager.register("get_work", callable=get_work)


def run(conn, address):
    key = bytes(multiprocessing.current_process().authkey)
    m = Manager(address=address if isinstance(address, str) else tuple(address), authkey=key)
    m.start()
    conn.send(m.address)
    names = {"m": m, "full": full, "AutoProxy": AutoProxy}
    while True:
        try:
            code = conn.recv()
        except EOFError:
            return
        if isinstance(code, tuple):
            names[code[0]] = code[1]
            conn.send(None)
        else:
            conn.send(eval(code, names))
