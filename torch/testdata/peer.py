"""The other side of the interoperability tests: ordinary PyTorch, which runs the calls it is sent."""
import gc
import multiprocessing
import os
import pathlib
import pickle
import sys

import numpy
import torch
import torch.multiprocessing

import plain


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


def picklable(dtype):
    """Whether there is a dtype, and this PyTorch can pickle it: 2.4 cannot pickle its uint16."""
    try:
        pickle.dumps(torch.empty(0, dtype=getattr(torch, dtype)))
    except (AttributeError, KeyError):
        return False
    return True


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
    if kind == "nested":
        return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    if kind == "subclass":
        class Sub(torch.Tensor):
            pass
        sys.modules["__mp_main__" if "__mp_main__" in sys.modules else "__main__"].Sub = Sub
        Sub.__module__, Sub.__qualname__ = "peer", "Sub"
        sys.modules["peer"].Sub = Sub
        return torch.zeros(2).as_subclass(Sub)
    if kind == "class":
        return Thing()
    if kind == "numpy strings":
        return numpy.array(["a", "bc"]), torch.zeros(2)
    if kind == "numpy objects":
        return numpy.array([torch.zeros(2), "a"], dtype=object), torch.zeros(2)
    if kind == "numpy dates":
        return {"at": numpy.array(["2020-01-01"], dtype="datetime64[D]"), "x": torch.zeros(2)}
    if kind == "numpy date":
        return numpy.datetime64("2020-01-01"), torch.zeros(2)
    if kind == "numpy structure":
        return numpy.zeros(2, dtype=[("a", "i4")]), torch.zeros(2)
    if kind == "keys of a class":
        return {pathlib.Path("a"): torch.zeros(2), "x": torch.zeros(2)}
    if kind == "members of a class":
        return {pathlib.Path("a")}, torch.zeros(2)
    if kind == "tuple as a key":
        return {(pathlib.Path("a"), 1): torch.zeros(2)}, torch.zeros(2)
    if kind == "frozenset of a class":
        return frozenset([pathlib.Path("a")]), torch.zeros(2)
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


class Peer(plain.Peer):
    """Keeps what it is given or makes, as kept."""

    def __init__(self, conn, **names):
        super().__init__(conn, **dict(globals(), **names))
        self.keep(None)

    def keep(self, value):
        self.names["kept"] = value

    @property
    def kept(self):
        return self.names["kept"]

    def make(self, *args):
        self.keep(make(*args))
        self.conn.send(self.kept)

    def odd(self, kind):
        try:
            self.conn.send((torch.zeros(2), odd(kind)))
        except Exception as e:
            self.conn.send(f"{type(e).__name__}: {e}")

    def advised(self, kind, code):
        self.conn.send(eval("x" + code, {"x": odd(kind), "torch": torch}))

    def take(self, value):
        self.keep(value)
        self.conn.send((describe(value), read(value)))

    def unpickle(self, data):
        value = pickle.loads(data)
        self.conn.send((describe(value), read(value)))

    def hold(self, value):
        self.keep(value)
        self.conn.send(0)

    def fill(self, value):
        with torch.no_grad():
            for t in tensors(self.kept):
                if t.is_floating_point() and t.element_size() == 1:  # which 2.4 cannot fill
                    t.copy_(torch.full(t.shape, float(value)))
                else:
                    t.fill_(value)
        self.conn.send(None)

    def read(self):
        self.conn.send(read(self.kept))

    def echo(self):
        self.conn.send(self.kept)

    def same(self, other):
        self.conn.send([a.data_ptr() == b.data_ptr() for a, b in zip(tensors(self.kept), tensors(other))])

    def drop(self):
        self.keep(None)
        self.conn.send(None)

    def open(self):
        gc.collect()
        self.conn.send((len(os.listdir("/proc/self/fd")), sum("torch" in l for l in open("/proc/self/maps"))))

    def flood(self, n):
        for i in range(n):
            self.conn.send(torch.zeros(2))

    def cuda(self):
        reductions = torch.multiprocessing.reductions
        args = (torch.Tensor, torch.Size([2, 3]), (3, 1), 0, torch.storage.TypedStorage, torch.bfloat16, 1, b"\x02c" + b"H" * 64, 24, 512,
                False, b"/torch_4242_1234567890", 3, b"E" * 64, True)
        self.conn.send(OnGPU(args))
        reductions.rebuild_cuda_tensor = lambda *a: tuple(len(x) if isinstance(x, bytes) and len(x) == 64 else x for x in a)

    def packed(self):
        self.keep(torch.nn.utils.rnn.pack_sequence([values(torch.float32, 2), values(torch.float32, 3)], enforce_sorted=False))
        self.conn.send(self.kept)

    def unpack(self, packed):
        padded, lengths = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        self.conn.send((type(packed).__name__, padded.tolist(), lengths.tolist()))


def run(conn, strategy):
    """The strategy "fetched" is file_descriptor in a process that Go has not started: nothing goes ahead."""
    if strategy == "fetched":
        strategy, conn = "file_descriptor", multiprocessing.connection.Connection(os.dup(conn.fileno()))
    torch.multiprocessing.set_sharing_strategy(strategy)
    Peer(conn).serve()


def queues(conn, queue, simple):
    """Has queues that Go has made, for eval."""
    Peer(conn, queue=queue, simple=simple).serve()


def connect(network, address, key):
    """A process that was not started by Go."""
    from multiprocessing.connection import Client
    multiprocessing.current_process().authkey = key
    Peer(Client(address if network == "unix" else tuple(address), authkey=key)).serve()
