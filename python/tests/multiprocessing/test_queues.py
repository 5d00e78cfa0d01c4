"""Queues: after CPython's _TestQueue, TestSimpleQueue and TestTimeouts, and PyTorch's queue tests."""

import os
import queue
import signal
import time

import pytest

WAIT = 60


def take_and_put(q, start, resume):
    start.wait(WAIT)
    for _ in range(6):
        q.get()
    resume.set()


def test_put(ctx):
    q, start, resume = ctx.Queue(maxsize=6), ctx.Event(), ctx.Event()
    p = ctx.Process(target=take_and_put, args=(q, start, resume), daemon=True)
    p.start()
    assert q.empty() and not q.full()
    q.put(1)
    q.put(2, True, None)
    q.put(3, True)
    q.put(4, False)
    q.put(5, False, None)
    q.put_nowait(6)
    assert wait_until(lambda: not q.empty()) and q.full()
    for args in ((7, False), (7, False, None), (7, False, 5)):
        with pytest.raises(queue.Full):
            q.put(*args)
    with pytest.raises(queue.Full):
        q.put_nowait(7)
    for seconds in (0.05, 0):
        began = time.monotonic()
        with pytest.raises(queue.Full):
            q.put(7, True, seconds)
        assert time.monotonic() - began >= seconds
    start.set()
    assert resume.wait(WAIT)
    assert wait_until(q.empty) and not q.full()
    p.join(WAIT)
    assert p.exitcode == 0


def put_four(q, start, resume):
    start.wait(WAIT)
    for i in range(2, 6):
        q.put(i)
    resume.set()


def test_get(ctx):
    q, start, resume = ctx.Queue(), ctx.Event(), ctx.Event()
    p = ctx.Process(target=put_four, args=(q, start, resume), daemon=True)
    p.start()
    assert q.empty()
    start.set()
    assert resume.wait(WAIT)
    assert [q.get(True, WAIT), q.get(True), q.get(timeout=WAIT), q.get(True, timeout=WAIT)] == [2, 3, 4, 5]
    assert q.empty()
    for args in ((False,), (False, None), (False, 5)):
        with pytest.raises(queue.Empty):
            q.get(*args)
    with pytest.raises(queue.Empty):
        q.get_nowait()
    for seconds in (0.05, 0, -1):
        began = time.monotonic()
        with pytest.raises(queue.Empty):
            q.get(True, seconds)
        assert time.monotonic() - began >= seconds
    p.join(WAIT)
    assert p.exitcode == 0


def continue_numbers(q):
    for i in range(10, 20):
        q.put(i)


def test_fork(ctx):
    """Values from before the start and from the child keep their order."""
    q = ctx.Queue()
    for i in range(10):
        q.put(i)
    wait_until(lambda: q.qsize() == 10)
    p = ctx.Process(target=continue_numbers, args=(q,), daemon=True)
    p.start()
    assert [q.get(timeout=WAIT) for _ in range(20)] == list(range(20))
    with pytest.raises(queue.Empty):
        q.get(False)
    p.join(WAIT)


def test_qsize(ctx):
    q = ctx.Queue()
    assert q.qsize() == 0
    for i, expected in ((1, 1), (5, 2)):
        q.put(i)
        assert q.qsize() == expected
    q.get()
    assert q.qsize() == 1
    q.get()
    assert q.qsize() == 0


def do_tasks(q):
    for item in iter(q.get, None):
        time.sleep(0.02 * (item % 3))
        q.task_done()


def test_task_done(ctx):
    q = ctx.JoinableQueue()
    workers = [ctx.Process(target=do_tasks, args=(q,), daemon=True) for _ in range(3)]
    for p in workers:
        p.start()
    for i in range(10):
        q.put(i)
    q.join()
    for _ in workers:
        q.put(None)
    for p in workers:
        p.join(WAIT)
        assert p.exitcode == 0


def test_task_done_too_many_times(ctx):
    q = ctx.JoinableQueue()
    q.put(1)
    q.get()
    q.task_done()
    with pytest.raises(ValueError):
        q.task_done()


def test_join_of_an_empty_queue(ctx):
    ctx.JoinableQueue().join()


def test_timeout(ctx):
    q = ctx.Queue()
    began = time.monotonic()
    with pytest.raises(queue.Empty):
        q.get(timeout=0.2)
    assert 0.19 <= time.monotonic() - began < 10


class Unpicklable:
    def __reduce__(self):
        raise AttributeError("not picklable")


def test_unpicklable_value_raises_in_put(ctx):
    q = ctx.Queue(maxsize=1)
    with pytest.raises(AttributeError, match="not picklable"):
        q.put(Unpicklable())
    q.put(True)
    assert q.get(timeout=WAIT) is True


def test_queue_works_after_an_unpicklable_value(ctx):
    q = ctx.Queue(maxsize=1)
    try:
        q.put(Unpicklable())
    except AttributeError:
        pass
    q.put(True, timeout=WAIT)
    assert q.get(timeout=WAIT) is True


def test_closed_queue_empty_exceptions(ctx):
    q = ctx.Queue()
    q.put("x")
    q.close()
    q.join_thread()
    with pytest.raises((OSError, ValueError)):
        q.empty()


def test_closed_queue_put_get_exceptions(ctx):
    for q in ctx.Queue(), ctx.JoinableQueue():
        q.close()
        with pytest.raises(ValueError, match="is closed"):
            q.put("x")
        with pytest.raises(ValueError, match="is closed"):
            q.get()


def test_close_is_idempotent(ctx):
    q = ctx.Queue()
    q.close()
    q.close()
    q.cancel_join_thread()
    q.join_thread()


def test_queue_is_not_pickled_without_a_process(ctx):
    import pickle

    for q in ctx.Queue(), ctx.SimpleQueue(), ctx.JoinableQueue():
        with pytest.raises(RuntimeError, match="inheritance"):
            pickle.dumps(q)


VALUES = [None, True, False, 0, -1, 255, 256, 65535, 65536, -2**31, 2**31, 2**63 - 1, -2**63, 2**63, 2**200, 1.5, -0.0,
          float("inf"), "", "é", "x" * 300, "\ud800", "y" * 100000, b"", b"\x00\xff", b"z" * 70000, (), (1,), (1, 2),
          (1, 2, 3), (1, 2, 3, 4), [], [1, [2, [3]]], {}, {"a": 1, 2: [None]}, {1, 2}, frozenset("ab"), 1j, range(3),
          list(range(1000)), {str(i): i for i in range(1000)}, [[[[[[[[[[[[1]]]]]]]]]]]], bytearray(b"ab"), queue.Empty]


def echo(a, b):
    for v in iter(a.get, "stop"):
        b.put(v)


def test_values(ctx):
    """Values keep their type, in this process and through another."""
    a, b = ctx.Queue(), ctx.Queue()
    p = ctx.Process(target=echo, args=(a, b), daemon=True)
    p.start()
    for v in VALUES:
        a.put(v)
        r = b.get(timeout=WAIT)
        assert r == v and type(r) is type(v) and repr(r) == repr(v)
    a.put("stop")
    p.join(WAIT)
    assert p.exitcode == 0


def test_identity_within_a_value(ctx):
    """An object that occurs twice is one object for the receiver, and cycles are kept."""
    q = ctx.Queue()
    x = [1]
    cycle = []
    cycle.append(cycle)
    q.put((x, x, cycle))
    a, b, c = q.get(timeout=WAIT)
    assert a is b and c[0] is c


class Point:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x


def test_objects(ctx):
    q = ctx.Queue()
    q.put({"points": [Point(1), Point(b"2")], "class": Point})
    got = q.get(timeout=WAIT)
    assert got["points"] == [Point(1), Point(b"2")] and got["class"] is Point


def test_mutation_after_put(ctx):
    """A put copies the value, as far as it is not tensors."""
    q = ctx.SimpleQueue()
    x = [1]
    q.put(x)
    x.append(2)
    assert q.get() == [1]


def test_order_of_one_producer(ctx):
    q = ctx.Queue(4)
    p = ctx.Process(target=produce, args=(q, 0, 2000), daemon=True)
    p.start()
    assert [q.get(timeout=WAIT) for _ in range(2000)] == list(range(2000))
    p.join(WAIT)


def produce(q, first, n):
    for i in range(first, first + n):
        q.put(i)


def consume(q, results):
    results.put([v for v in iter(q.get, None)])


def test_many_producers_and_consumers(ctx):
    """Each value is received exactly once."""
    q, results = ctx.Queue(8), ctx.Queue()
    producers = [ctx.Process(target=produce, args=(q, 1000 * k, 500), daemon=True) for k in range(3)]
    consumers = [ctx.Process(target=consume, args=(q, results), daemon=True) for _ in range(2)]
    for p in producers + consumers:
        p.start()
    for p in producers:
        p.join(WAIT)
        assert p.exitcode == 0
    for _ in consumers:
        q.put(None)
    got = [results.get(timeout=WAIT) for _ in consumers]
    assert sorted(sum(got, [])) == sorted(i for k in range(3) for i in range(1000 * k, 1000 * k + 500))
    for values in got:
        for k in range(3):
            mine = [v for v in values if v // 1000 == k]
            assert mine == sorted(mine)


def test_put_is_complete_when_it_returns(ctx):
    q = ctx.Queue()
    p = ctx.Process(target=put_and_exit, args=(q,), daemon=True)
    p.start()
    assert q.get(timeout=WAIT) == "last words"
    p.join(WAIT)


def put_and_exit(q):
    q.put("last words")
    os._exit(0)


def test_killed_receiver_of_a_queue(ctx):
    """A process that is killed in a get blocks no other process."""
    q = ctx.Queue()
    ready = ctx.Event()
    p = ctx.Process(target=get_after, args=(ready, q), daemon=True)
    p.start()
    assert ready.wait(WAIT)
    time.sleep(0.2)
    os.kill(p.pid, signal.SIGKILL)
    p.join(WAIT)
    for i in range(10):
        q.put(i)
        assert q.get(timeout=WAIT) == i


def get_after(ready, q):
    ready.set()
    q.get()


# SimpleQueue


def put_when_told(q, child_can, parent_can):
    child_can.wait(WAIT)
    q.put(True)
    q.put(None)
    parent_can.set()


def test_simple_queue(ctx):
    q, child_can, parent_can = ctx.SimpleQueue(), ctx.Event(), ctx.Event()
    p = ctx.Process(target=put_when_told, args=(q, child_can, parent_can), daemon=True)
    p.start()
    assert q.empty()
    child_can.set()
    assert parent_can.wait(WAIT)
    assert not q.empty()
    assert q.get() is True and q.get() is None
    assert q.empty()
    p.join(WAIT)


def test_simple_queue_close(ctx):
    q = ctx.SimpleQueue()
    q.close()
    q.close()
    for use in (q.empty, q.get, lambda: q.put(1)):
        with pytest.raises((OSError, ValueError)):
            use()


def test_queue_in_a_nested_process(ctx):
    """A child that is not a daemon starts a child of its own, and all three use one queue."""
    q = ctx.Queue()
    p = ctx.Process(target=start_another, args=(ctx.get_start_method(), q, type(ctx).__module__))
    p.start()
    assert sorted(q.get(timeout=WAIT) for _ in range(2)) == ["child", "grandchild"]
    p.join(WAIT)
    assert p.exitcode == 0


def start_another(method, q, module):
    import importlib

    package = "shoal.multiprocessing" if module.startswith("shoal") else "torch.multiprocessing"
    p = importlib.import_module(package).get_context(method).Process(target=say, args=(q, "grandchild"))
    p.start()
    q.put("child")
    p.join(WAIT)


def say(q, word):
    q.put(word)


def wait_until(condition, seconds=WAIT):
    """Waits until a condition holds, and says whether it does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()
