"""Values, arrays and named memory: after CPython's _TestValue, _TestArray, _TestSharedCTypes and _TestSharedMemory."""

import ctypes
import importlib
import os
import pickle

import pytest

WAIT = 60


def run(ctx, target, *args):
    p = ctx.Process(target=target, args=args, daemon=True)
    p.start()
    p.join(WAIT)
    assert p.exitcode == 0


CODES = [("i", 4343, 24234), ("d", 3.625, -4.25), ("h", -232, 234), ("q", 2**33, 2**34), ("c", b"x", b"y")]


def change(values):
    for v, (_code, _first, second) in zip(values, CODES):
        v.value = second


@pytest.mark.parametrize("raw", [False, True])
def test_value(ctx, raw):
    make = ctx.RawValue if raw else ctx.Value
    values = [make(code, first) for code, first, _ in CODES]
    assert [v.value for v in values] == [first for _, first, _ in CODES]
    run(ctx, change, values)
    assert [v.value for v in values] == [second for _, _, second in CODES]


def test_lock_of_a_value(ctx):
    v = ctx.Value("i", 5)
    assert v.get_lock() and v.get_obj().value == 5
    lock = ctx.Lock()
    w = ctx.Value("i", 5, lock=lock)
    assert w.get_lock() is lock
    x = ctx.Value("i", 5, lock=False)
    assert not hasattr(x, "get_lock") and not hasattr(x, "get_obj")
    with pytest.raises(AttributeError):
        ctx.Value("i", 5, lock="navalue")
    assert not hasattr(ctx.RawValue("i", 5), "get_lock")


def running_sum(seq):
    for i in range(1, len(seq)):
        seq[i] += seq[i - 1]


@pytest.mark.parametrize("raw", [False, True])
def test_array(ctx, raw):
    seq = [680, 626, 934, 821, 150, 233, 548, 982, 714, 831]
    arr = (ctx.RawArray if raw else ctx.Array)("i", seq)
    assert len(arr) == len(seq) and arr[3] == seq[3] and list(arr[2:7]) == seq[2:7]
    arr[4:8] = seq[4:8] = [1, 2, 3, 4]
    assert list(arr[:]) == seq
    run(ctx, running_sum, arr)
    running_sum(seq)
    assert list(arr[:]) == seq


def test_array_from_size(ctx):
    for _ in range(3):
        arr = ctx.Array("i", 10)
        assert list(arr) == [0] * 10
        arr[:] = range(10)
        assert list(arr) == list(range(10))


def test_lock_of_an_array(ctx):
    lock = ctx.RLock()
    arr = ctx.Array("i", range(10), lock=lock)
    assert arr.get_lock() is lock
    assert not hasattr(ctx.Array("i", range(10), lock=False), "get_lock")
    with pytest.raises(AttributeError):
        ctx.Array("i", range(10), lock="notalock")


class Pair(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_double)]


def double(x, pair, text, arr):
    x.value *= 2
    pair.x *= 2
    pair.y *= 2
    text.value *= 2
    for i in range(len(arr)):
        arr[i] *= 2


@pytest.mark.parametrize("lock", [False, True])
def test_ctypes(ctx, lock):
    x = ctx.Value("i", 7, lock=lock)
    pair = ctx.Value(Pair, 3, 2, lock=lock)
    text = ctx.Array("c", 20, lock=lock)
    text.value = b"hello"
    arr = ctx.Array("d", range(10), lock=lock)
    run(ctx, double, x, pair, text, arr)
    assert x.value == 14 and (pair.x, pair.y) == (6, 4) and text.value == b"hellohello"
    assert list(arr) == [2.0 * i for i in range(10)]


def add(value, n):
    for _ in range(n):
        with value.get_lock():
            value.value += 1


def test_value_is_locked(ctx):
    v = ctx.Value("i", 0)
    ps = [ctx.Process(target=add, args=(v, 300), daemon=True) for _ in range(3)]
    for p in ps:
        p.start()
    for p in ps:
        p.join(WAIT)
        assert p.exitcode == 0
    assert v.value == 900


def test_value_is_not_pickled_without_a_process(ctx):
    for v in ctx.Value("i", 1), ctx.Array("i", 3):
        with pytest.raises(RuntimeError):
            pickle.dumps(v)


# shared_memory


@pytest.fixture
def shm(module):
    return memory_module(module.__name__)


def memory_module(package):
    """The module of named memory: PyTorch has none of its own."""
    return importlib.import_module(f"{package.replace('torch.', '')}.shared_memory")


def unique(prefix="t"):
    return f"{prefix}{os.getpid()}_{os.urandom(4).hex()}"


def test_shared_memory_basics(ctx, shm):
    name = unique()
    m = shm.SharedMemory(name, create=True, size=512)
    try:
        assert m.name == name and m.size >= 512 and len(m.buf) >= m.size and name in repr(m)
        m.buf[0] = 42
        with pytest.raises(FileExistsError):
            shm.SharedMemory(name, create=True, size=512)
        also = shm.SharedMemory(name)
        assert also.buf[0] == 42 and also.size == m.size
        also.buf[1] = 43
        assert m.buf[1] == 43
        also.close()
        assert also.buf is None
        assert m.buf[1] == 43
        m.buf[:5] = b"howdy"
        assert bytes(m.buf[:5]) == b"howdy"
    finally:
        m.close()
        m.unlink()
    with pytest.raises(FileNotFoundError):
        shm.SharedMemory(name)


def test_shared_memory_errors(ctx, shm):
    with pytest.raises(ValueError):
        shm.SharedMemory(create=True, size=-1)
    with pytest.raises(ValueError):
        shm.SharedMemory(create=True, size=0)
    with pytest.raises(ValueError):
        shm.SharedMemory(create=False)
    with pytest.raises(FileNotFoundError):
        shm.SharedMemory(unique("missing"))


def test_shared_memory_name_with_a_null(ctx, shm):
    with pytest.raises(ValueError):
        shm.SharedMemory("a\x00b", create=True, size=1)


def test_shared_memory_slices(ctx, shm):
    m = shm.SharedMemory(create=True, size=64)
    part = m.buf[:10]
    with pytest.raises(BufferError):
        m.close()
    part.release()
    m.close()
    m.unlink()


def write_memory(m):
    m.buf[0] = 7
    m.close()


def write_named(package, name):
    m = memory_module(package).SharedMemory(name)
    m.buf[1] = 8
    m.close()


def test_shared_memory_across_processes(ctx, module, shm):
    m = shm.SharedMemory(create=True, size=16)
    run(ctx, write_memory, m)
    run(ctx, write_named, module.__name__, m.name)
    assert bytes(m.buf[:2]) == b"\x07\x08"
    m.close()
    m.unlink()


def test_shared_memory_pickle(ctx, shm):
    m = shm.SharedMemory(create=True, size=16)
    m.buf[3] = 9
    again = pickle.loads(pickle.dumps(m))
    assert again.name == m.name and again.buf[3] == 9
    again.close()
    m.close()
    m.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickle.dumps(again))


def test_shareable_list(ctx, shm):
    first = shm.ShareableList(["howdy", b"HoWdY", -273.154, 100, None, True, 42])
    assert list(first) == ["howdy", b"HoWdY", -273.154, 100, None, True, 42] and len(first) == 7
    second = shm.ShareableList(name=first.shm.name)
    second[3] = 101
    first[0] = "short"
    assert first[3] == 101 and second[0] == "short" and first.count(42) == 1 and first.index(42) == 6
    with pytest.raises(ValueError):
        first[0] = "much longer than what was there"
    with pytest.raises(IndexError):
        first[7]
    again = pickle.loads(pickle.dumps(first))
    assert list(again) == list(first)
    for x in (again, second, first):
        x.shm.close()
    first.shm.unlink()
