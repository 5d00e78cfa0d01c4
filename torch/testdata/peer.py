"""The other side of the interoperability tests: ordinary PyTorch, which does what it is told."""
import gc
import multiprocessing
import os
import socket
import sys
from collections import OrderedDict

import torch
import torch.multiprocessing


def values(dtype, n):
    return (torch.arange(n) % 2).to(dtype)


def make(kind, dtype):
    dtype = getattr(torch, dtype)
    if kind == "plain":
        return values(dtype, 6).reshape(2, 3)
    if kind == "view":
        return values(dtype, 24).reshape(4, 6)[1:3, ::2]
    if kind == "transposed":
        return values(dtype, 6).reshape(2, 3).t()
    if kind == "scalar":
        return values(dtype, 2)[1]
    if kind == "empty":
        return torch.empty(0, 3, dtype=dtype)
    if kind == "parameter":
        return torch.nn.Parameter(values(dtype, 4))
    if kind == "frozen":
        return torch.nn.Parameter(values(dtype, 4), requires_grad=False)
    if kind == "dict":
        return {"x": values(dtype, 3), "n": 7, "nested": {"y": values(dtype, 2)}}
    if kind == "tuple":
        return (values(dtype, 3), "label", None, 1 << 80)
    if kind == "list":
        return [values(dtype, 3), values(dtype, 5)]
    if kind == "two views":
        base = values(dtype, 8)
        return (base[:4], base[2:])
    if kind == "same twice":
        t = values(dtype, 4)
        return (t, t)
    if kind == "state_dict":
        return torch.nn.Linear(2, 1).to(dtype).state_dict()
    raise KeyError(kind)


def tensors(obj):
    if isinstance(obj, torch.Tensor):
        return [obj]
    if isinstance(obj, dict):
        return [t for v in obj.values() for t in tensors(v)]
    if isinstance(obj, (list, tuple)):
        return [t for v in obj for t in tensors(v)]
    return []


def read(obj):
    with torch.no_grad():
        return [(t.real if t.is_complex() else t).to(torch.float64).flatten().tolist() for t in tensors(obj)]


def describe(obj):
    return [(type(t).__name__, str(t.dtype), tuple(t.shape), t.stride(), t.requires_grad, t.is_shared() or t.numel() == 0)
            for t in tensors(obj)]


def odd(kind):
    """What cannot cross, or not unchanged."""
    if kind == "sparse":
        return torch.eye(2).to_sparse()
    if kind == "meta":
        return torch.empty(2, device="meta")
    if kind == "quantized":
        return torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.1, 10, torch.quint8)
    if kind == "subclass":
        class Sub(torch.Tensor):
            pass
        sys.modules["__mp_main__" if "__mp_main__" in sys.modules else "__main__"].Sub = Sub
        Sub.__module__, Sub.__qualname__ = "peer", "Sub"
        sys.modules["peer"].Sub = Sub
        return torch.zeros(2).as_subclass(Sub)
    if kind == "class":
        return Thing()
    if kind == "float8_e4m3fnuz":
        return torch.zeros(2, dtype=torch.float8_e4m3fnuz)
    raise KeyError(kind)


class Thing:
    pass


class OnGPU:
    """Is reduced as a tensor on a GPU would be."""

    def __init__(self, args):
        self.args = args

    def __reduce__(self):
        return torch.multiprocessing.reductions.rebuild_cuda_tensor, self.args


def run(conn, strategy):
    torch.multiprocessing.set_sharing_strategy(strategy)
    serve(conn)


def primitives(conn, queue, simple, lock, rlock, semaphore, bounded, event, cond):
    """Has what Go has made, for eval."""
    globals().update(locals())
    serve(conn)


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


def serve(conn):
    kept = None
    kinds = {}
    while True:
        try:
            op, *args = conn.recv()
        except EOFError:
            return
        except Exception as e:
            conn.send(f"{type(e).__name__}: {e}")
            continue
        if op == "make":
            kept = make(*args)
            conn.send(kept)
        elif op == "odd":
            try:
                conn.send((torch.zeros(2), odd(*args)))
            except Exception as e:
                conn.send(f"{type(e).__name__}: {e}")
        elif op == "take":
            kept = args[0]
            conn.send((describe(kept), read(kept)))
        elif op == "hold":
            kept = args[0]
            args = None
            conn.send(0)
        elif op == "say":
            conn.send(args[0])
        elif op == "repr":
            conn.send(repr(args[0]))
        elif op == "eval":
            conn.send(eval(args[0]))
        elif op == "fill":
            with torch.no_grad():
                for t in tensors(kept):
                    t.fill_(args[0])
            conn.send(None)
        elif op == "read":
            conn.send(read(kept))
        elif op == "echo":
            conn.send(kept)
        elif op == "same":
            conn.send([a.data_ptr() == b.data_ptr() for a, b in zip(tensors(kept), tensors(args[0]))])
        elif op == "drop":
            kept = args = None
            conn.send(None)
        elif op == "open":
            gc.collect()
            conn.send((len(os.listdir("/proc/self/fd")), sum("torch" in l for l in open("/proc/self/maps"))))
        elif op == "flood":
            for i in range(args[0]):
                conn.send(torch.zeros(2))
        elif op == "cuda":
            reductions = torch.multiprocessing.reductions
            rebuild = reductions.rebuild_cuda_tensor
            args = (torch.Tensor, torch.Size([2, 3]), (3, 1), 0, torch.storage.TypedStorage, torch.bfloat16, 1, b"\x02c" + b"H" * 64, 24, 512,
                    False, b"/torch_4242_1234567890", 3, b"E" * 64, True)
            conn.send(OnGPU(args))
            reductions.rebuild_cuda_tensor = lambda *a: tuple(len(x) if isinstance(x, bytes) and len(x) == 64 else x for x in a)
        elif op == "packed":
            rnn = torch.nn.utils.rnn
            kept = rnn.pack_sequence([values(torch.float32, 2), values(torch.float32, 3)], enforce_sorted=False)
            conn.send(kept)
        elif op == "unpack":
            padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(args[0], batch_first=True)
            conn.send((type(args[0]).__name__, padded.tolist(), lengths.tolist()))
        elif op == "reverse":
            b = args[0]
            sent = b.recv(100)
            b.sendall(sent[::-1])
            conn.send((int(b.family), int(b.type), b.getblocking()))
            b.close()
        elif op == "ends":
            reader, writer = args[0]
            writer.send(reader.recv() + 1)
            conn.send((reader.writable, writer.readable))
            reader.close()
            writer.close()
        elif op == "pipe":
            kinds["pipe"], other = multiprocessing.Pipe()
            conn.send(other)
            other.close()
            kinds["pipe"].send(kinds["pipe"].recv() + 1)
        elif op == "oneway":
            reader, writer = multiprocessing.Pipe(duplex=False)
            conn.send((reader, writer))
            reader.close()
            writer.close()
        elif op == "socket":
            a, b = socket.socketpair()
            conn.send(b)
            b.close()
            a.sendall(a.recv(5)[::-1])
            a.close()
        elif op == "use":
            other = args[0]
            other.send(("hello", torch.ones(2)))
            conn.send(other.recv())
        elif op == "detach":
            with os.fdopen(args[0].detach(), "rb") as f:
                conn.send(f.read())
        elif op == "raise":
            raise ValueError(args[0])
        elif op == "exit":
            os._exit(args[0])


def connect(network, address, key, wrong=False):
    """A process that was not started by Go."""
    from multiprocessing.connection import Client
    multiprocessing.current_process().authkey = key
    conn = Client(address if network == "unix" else tuple(address), authkey=b"other" if wrong else key)
    serve(conn)


def listen(conn, network, address, key):
    """Listens for Go, with a backlog of one."""
    from multiprocessing.connection import Listener
    multiprocessing.current_process().authkey = key
    with Listener(address if network == "unix" else tuple(address), authkey=key) as listener:
        conn.send(listener.address)
        with listener.accept() as c:
            serve(c)
