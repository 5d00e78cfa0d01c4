"""Locks, semaphores, conditions, events and barriers: after CPython's tests of the same names."""

import os
import signal
import threading
import time

import pytest

WAIT = 60


def wait_until(condition, seconds=WAIT):
    """Waits until a condition holds, and says whether it does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def run(ctx, target, *args):
    p = ctx.Process(target=target, args=args, daemon=True)
    p.start()
    return p


def finish(*processes):
    for p in processes:
        p.join(WAIT)
        assert p.exitcode == 0


# Lock and RLock


def test_lock(ctx):
    lock = ctx.Lock()
    assert lock.acquire() is True
    assert lock.acquire(False) is False
    assert lock.release() is None
    with pytest.raises(ValueError):
        lock.release()


def test_lock_timeout(ctx):
    lock = ctx.Lock()
    lock.acquire()
    for seconds in (0.05, 0, -1):
        began = time.monotonic()
        assert lock.acquire(timeout=seconds) is False
        assert seconds <= time.monotonic() - began < 10
    lock.release()


def test_rlock(ctx):
    lock = ctx.RLock()
    for _ in range(3):
        assert lock.acquire() is True
    for _ in range(3):
        assert lock.release() is None
    with pytest.raises((AssertionError, RuntimeError)):
        lock.release()


def test_rlock_of_another_thread(ctx):
    lock, got = ctx.RLock(), []
    lock.acquire()
    thread = threading.Thread(target=lambda: got.append(lock.acquire(False)))
    thread.start()
    thread.join(WAIT)
    assert got == [False]
    lock.release()


def test_lock_context(ctx):
    for lock in ctx.Lock(), ctx.RLock():
        with lock:
            pass
        assert lock.acquire(False)
        lock.release()


def try_lock(lock, results):
    results.put(lock.acquire(False))


def test_lock_excludes_other_processes(ctx):
    for lock in ctx.Lock(), ctx.RLock():
        results = ctx.Queue()
        with lock:
            p = run(ctx, try_lock, lock, results)
            assert results.get(timeout=WAIT) is False
            finish(p)
        p = run(ctx, lock_and_unlock, lock, results)
        assert results.get(timeout=WAIT) is True
        finish(p)


def lock_and_unlock(lock, results):
    with lock:
        pass
    results.put(True)


def add_many(lock, value, n):
    for _ in range(n):
        with lock:
            value.value += 1


def test_lock_protects_a_sum(ctx):
    for lock in ctx.Lock(), ctx.RLock():
        value = ctx.RawValue("q", 0)
        finish(*[run(ctx, add_many, lock, value, 500) for _ in range(3)])
        assert value.value == 1500


def release_it(lock):
    lock.release()


def test_lock_released_by_another_process(ctx):
    lock = ctx.Lock()
    lock.acquire()
    finish(run(ctx, release_it, lock))
    assert lock.acquire(timeout=WAIT)


def test_lock_repr(ctx):
    for lock in ctx.Lock(), ctx.RLock():
        assert "None" in repr(lock)
        with lock:
            assert "MainProcess" in repr(lock)
            seen = []
            t = threading.Thread(target=lambda: seen.append(repr(lock)))
            t.start()
            t.join(WAIT)
            assert "SomeOtherThread" in seen[0]


def hold(lock, held):
    lock.acquire()
    held.set()
    time.sleep(1000)


def test_killed_holder_of_a_lock(ctx):
    for lock in ctx.Lock(), ctx.RLock():
        held = ctx.Event()
        p = run(ctx, hold, lock, held)
        assert held.wait(WAIT)
        os.kill(p.pid, signal.SIGKILL)
        p.join(WAIT)
        with pytest.raises(RuntimeError) as e:
            lock.acquire(timeout=WAIT)
        assert e.value.pid == p.pid
        assert lock.acquire(timeout=WAIT)
        lock.release()


# Semaphore


def use_semaphore(s):
    assert s.get_value() == 2
    assert s.acquire() is True and s.get_value() == 1
    assert s.acquire() is True and s.get_value() == 0
    assert s.acquire(False) is False and s.get_value() == 0
    assert s.release() is None and s.get_value() == 1
    assert s.release() is None and s.get_value() == 2


def test_semaphore(ctx):
    s = ctx.Semaphore(2)
    use_semaphore(s)
    assert s.release() is None and s.get_value() == 3
    assert s.release() is None and s.get_value() == 4


def test_bounded_semaphore(ctx):
    s = ctx.BoundedSemaphore(2)
    use_semaphore(s)
    with pytest.raises(ValueError):
        s.release()
    assert "maxvalue=2" in repr(s)


def test_semaphore_timeout(ctx):
    s = ctx.Semaphore(0)
    for args, least in (((False,), 0), ((False, None), 0), ((False, 5), 0), ((True, 0.1), 0.1), ((True, 0), 0)):
        began = time.monotonic()
        assert s.acquire(*args) is False
        assert least <= time.monotonic() - began < 4


def release_many(s, n):
    for _ in range(n):
        s.release()


def test_semaphore_counts_signals(ctx):
    s = ctx.Semaphore(0)
    p = run(ctx, release_many, s, 100)
    for _ in range(100):
        assert s.acquire(timeout=WAIT)
    assert not s.acquire(False)
    finish(p)


def take_and_hang(s, taken):
    s.acquire()
    taken.set()
    time.sleep(1000)


def test_semaphore_of_a_killed_process(ctx):
    s, taken = ctx.Semaphore(1), ctx.Event()
    p = run(ctx, take_and_hang, s, taken)
    assert taken.wait(WAIT)
    os.kill(p.pid, signal.SIGKILL)
    p.join(WAIT)
    assert s.acquire(timeout=WAIT)


def test_negative_semaphore(ctx):
    with pytest.raises((ValueError, OSError)):
        ctx.Semaphore(-1)


# Condition


def sleep_on(cond, sleeping, woken, timeout=None):
    with cond:
        sleeping.release()
        cond.wait(timeout)
        woken.release()


def conditions(ctx):
    return ctx.Condition(), ctx.Condition(ctx.Lock()), ctx.Condition(ctx.RLock())


def test_notify(ctx):
    for cond in conditions(ctx):
        sleeping, woken = ctx.Semaphore(0), ctx.Semaphore(0)
        p = run(ctx, sleep_on, cond, sleeping, woken)
        t = threading.Thread(target=sleep_on, args=(cond, sleeping, woken), daemon=True)
        t.start()
        for _ in range(2):
            assert sleeping.acquire(timeout=WAIT)
        with cond:
            pass  # both wait now
        assert woken.get_value() == 0
        for _ in range(2):
            with cond:
                cond.notify()
            assert woken.acquire(timeout=WAIT)
        time.sleep(0.05)
        assert woken.get_value() == 0
        finish(p)
        t.join(WAIT)


def test_notify_all(ctx):
    cond, sleeping, woken = ctx.Condition(), ctx.Semaphore(0), ctx.Semaphore(0)
    ps = [run(ctx, sleep_on, cond, sleeping, woken) for _ in range(3)]
    for _ in ps:
        assert sleeping.acquire(timeout=WAIT)
    with cond:
        cond.notify_all()
    for _ in ps:
        assert woken.acquire(timeout=WAIT)
    finish(*ps)


def test_notify_n(ctx):
    cond, sleeping, woken = ctx.Condition(), ctx.Semaphore(0), ctx.Semaphore(0)
    ps = [run(ctx, sleep_on, cond, sleeping, woken) for _ in range(3)]
    for _ in ps:
        assert sleeping.acquire(timeout=WAIT)
    with cond:
        cond.notify(n=2)
    for _ in range(2):
        assert woken.acquire(timeout=WAIT)
    time.sleep(0.05)
    assert woken.get_value() == 0
    with cond:
        cond.notify(n=4)
    assert woken.acquire(timeout=WAIT)
    with cond:
        cond.notify(n=3)
    finish(*ps)


def test_sleepers_with_a_timeout(ctx):
    cond, sleeping, woken = ctx.Condition(), ctx.Semaphore(0), ctx.Semaphore(0)
    p = run(ctx, sleep_on, cond, sleeping, woken, 0.1)
    assert woken.acquire(timeout=WAIT)
    finish(p)


def test_condition_timeout(ctx):
    for cond in conditions(ctx):
        with cond:
            began = time.monotonic()
            assert not cond.wait(0.1)
            assert 0.09 <= time.monotonic() - began < 10
            assert not cond.wait(0)


def test_condition_without_the_lock(ctx):
    cond = ctx.Condition()
    for use in (lambda: cond.wait(0), cond.notify, cond.notify_all):
        with pytest.raises((AssertionError, RuntimeError)):
            use()


def test_condition_with_a_nested_rlock(ctx):
    """wait releases an RLock whole, and restores its count."""
    cond = ctx.Condition()
    sleeping, woken = ctx.Semaphore(0), ctx.Semaphore(0)
    with cond:
        with cond:
            p = run(ctx, notify_when_free, cond)
            assert cond.wait(WAIT)
        assert cond._lock._is_mine() if hasattr(cond._lock, "_is_mine") else True
    with pytest.raises((AssertionError, RuntimeError)):
        cond.release()
    finish(p)
    assert sleeping.get_value() == woken.get_value() == 0


def notify_when_free(cond):
    with cond:
        cond.notify()


def wait_for_zero(cond, state):
    with cond:
        assert cond.wait_for(lambda: state.value == 0, WAIT)
        assert state.value == 0
        state.value = 4
        cond.notify_all()


def test_wait_for(ctx):
    cond, state = ctx.Condition(), ctx.Value("i", -1, lock=False)
    p = run(ctx, wait_for_zero, cond, state)
    with cond:
        state.value = 0
        cond.notify_all()
        assert cond.wait_for(lambda: state.value == 4, WAIT)
    finish(p)


def test_wait_for_timeout(ctx):
    cond = ctx.Condition()
    with cond:
        began = time.monotonic()
        assert cond.wait_for(lambda: False, 0.1) is False
        assert 0.09 <= time.monotonic() - began < 10


def test_wait_result(ctx):
    cond = ctx.Condition()
    with cond:
        assert not cond.wait(0)
        assert not cond.wait(0.05)
        p = run(ctx, notify_when_free, cond)
        assert cond.wait(WAIT)
    finish(p)


# Event


def set_later(event):
    time.sleep(0.1)
    event.set()


def test_event(ctx):
    event = ctx.Event()
    assert event.is_set() is False
    assert event.wait(0.0) is False
    began = time.monotonic()
    assert event.wait(0.1) is False
    assert 0.09 <= time.monotonic() - began < 10
    event.set()
    assert event.is_set() is True
    assert event.wait() is True and event.wait(0) is True
    event.clear()
    assert event.is_set() is False
    p = run(ctx, set_later, event)
    assert event.wait() is True
    finish(p)


def test_event_repr(ctx):
    event = ctx.Event()
    text = repr(event)
    event.set()
    assert text != repr(event) or "set" not in text


# Barrier


def pass_barrier(barrier, results, rounds):
    for i in range(rounds):
        barrier.wait(WAIT)
        results.put(i)
        barrier.wait(WAIT)


def test_barrier_rounds(ctx):
    for rounds in (1, 10):
        barrier, results = ctx.Barrier(3), ctx.Queue()
        ps = [run(ctx, pass_barrier, barrier, results, rounds) for _ in range(2)]
        pass_barrier(barrier, results, rounds)
        got = [results.get(timeout=WAIT) for _ in range(3 * rounds)]
        assert sorted(got) == sorted(list(range(rounds)) * 3)
        finish(*ps)
        assert barrier.n_waiting == 0 and not barrier.broken and barrier.parties == 3


def tell_index(barrier, results):
    results.put(barrier.wait(WAIT))


def test_barrier_wait_return(ctx):
    barrier, results = ctx.Barrier(3), ctx.Queue()
    ps = [run(ctx, tell_index, barrier, results) for _ in range(2)]
    tell_index(barrier, results)
    assert sorted(results.get(timeout=WAIT) for _ in range(3)) == [0, 1, 2]
    finish(*ps)


class Append:
    def __init__(self, q):
        self.q = q

    def __call__(self):
        self.q.put("action")


def test_barrier_action(ctx):
    results = ctx.Queue()
    barrier = ctx.Barrier(2, action=Append(results))
    p = run(ctx, pass_and_tell, barrier, results)
    barrier.wait(WAIT)
    assert results.get(timeout=WAIT) == "action"
    assert results.get(timeout=WAIT) == "passed"
    finish(p)


def pass_and_tell(barrier, results):
    barrier.wait(WAIT)
    results.put("passed")


def wait_and_report(barrier, results):
    try:
        barrier.wait(WAIT)
        results.put("passed")
    except threading.BrokenBarrierError:
        results.put("broken")


def test_barrier_abort(ctx):
    barrier, results = ctx.Barrier(3), ctx.Queue()
    ps = [run(ctx, wait_and_report, barrier, results) for _ in range(2)]
    assert wait_until(lambda: barrier.n_waiting == 2)
    barrier.abort()
    assert [results.get(timeout=WAIT) for _ in range(2)] == ["broken"] * 2
    assert barrier.broken
    with pytest.raises(threading.BrokenBarrierError):
        barrier.wait(1)
    finish(*ps)


def test_barrier_reset(ctx):
    barrier, results = ctx.Barrier(2), ctx.Queue()
    p = run(ctx, wait_and_report, barrier, results)
    assert wait_until(lambda: barrier.n_waiting == 1)
    barrier.reset()
    assert results.get(timeout=WAIT) == "broken"
    finish(p)
    p = run(ctx, wait_and_report, barrier, results)
    barrier.wait(WAIT)
    assert results.get(timeout=WAIT) == "passed"
    finish(p)


def test_barrier_abort_and_reset(ctx):
    barrier, results = ctx.Barrier(2), ctx.Queue()
    barrier.abort()
    barrier.reset()
    assert not barrier.broken
    p = run(ctx, wait_and_report, barrier, results)
    barrier.wait(WAIT)
    assert results.get(timeout=WAIT) == "passed"
    finish(p)


def test_barrier_timeout(ctx):
    barrier = ctx.Barrier(2)
    began = time.monotonic()
    with pytest.raises(threading.BrokenBarrierError):
        barrier.wait(0.1)
    assert 0.09 <= time.monotonic() - began < 10
    assert barrier.broken


def test_barrier_default_timeout(ctx):
    barrier = ctx.Barrier(2, timeout=0.1)
    with pytest.raises(threading.BrokenBarrierError):
        barrier.wait()


def test_barrier_of_one(ctx):
    barrier = ctx.Barrier(1)
    assert [barrier.wait(), barrier.wait()] == [0, 0]


def pass_often(barrier, n):
    for _ in range(n):
        barrier.wait(WAIT)


def test_barrier_often(ctx):
    barrier = ctx.Barrier(2)
    p = run(ctx, pass_often, barrier, 200)
    pass_often(barrier, 200)
    finish(p)


def test_killed_member_of_a_barrier(ctx):
    barrier, ready = ctx.Barrier(2), ctx.Event()
    p = run(ctx, hold_barrier, barrier, ready)
    assert ready.wait(WAIT)
    os.kill(p.pid, signal.SIGKILL)
    p.join(WAIT)
    began = time.monotonic()
    with pytest.raises(threading.BrokenBarrierError):
        barrier.wait(WAIT)
    assert time.monotonic() - began < 20


def hold_barrier(barrier, ready):
    assert barrier.parties == 2
    ready.set()
    time.sleep(1000)
