"""Python without PyTorch at the other end of connections, for versions that have none."""
import multiprocessing
import multiprocessing.reduction
import os
import sys
from multiprocessing.connection import Client, Listener


def serve(conn):
    conn.send(sys.version_info[:2])
    a, b = multiprocessing.Pipe()
    conn.send((b, {"bytes": bytearray(b"ba"), "set": {1, 2}, "frozen": frozenset((3,)), "big": -(1 << 200), "c": 1 + 2j}))
    b.close()
    a.send(a.recv() * 2)
    value, fd = conn.recv()
    with os.fdopen(fd.detach(), "rb") as f:
        conn.send((value, f.read()))
    conn.send_bytes(b"raw" * 10000)
    assert conn.recv_bytes() == b"end"


key = sys.argv[4].encode()
multiprocessing.current_process().authkey = key
address = sys.argv[3]
if sys.argv[2] == "tcp":
    host, port = address.split(":")
    address = (host, int(port))
if sys.argv[1] == "client":
    with Client(address, authkey=key) as conn:
        serve(conn)
else:
    with Listener(address, authkey=key) as listener:
        at = listener.address
        print(at if isinstance(at, str) else "%s:%d" % at, flush=True)
        with listener.accept() as conn:
            serve(conn)
