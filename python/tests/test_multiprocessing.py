"""Tests of shoal.multiprocessing for the guarantees that torch.multiprocessing does not give."""

import asyncio
import gc
import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

mp = pytest.importorskip("shoal.multiprocessing")
from shoal.multiprocessing import names, runtime, tensors  # noqa: E402

WAIT = 60
ctx = mp.get_context("spawn")
forking = mp.get_context("fork")


def wait_until(condition, seconds=WAIT):
    """Waits until a condition holds, and says whether it does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


def run(target, *args, context=ctx):
    p = context.Process(target=target, args=args, daemon=True)
    p.start()
    return p


def finish(*processes):
    for p in processes:
        p.join(WAIT)
        assert p.exitcode == 0


def kill(p):
    os.kill(p.pid, signal.SIGKILL)
    p.join(WAIT)


def script(text, *args, timeout=WAIT, env=None, check=True):
    """Runs a program in an interpreter of its own, and returns what it printed."""
    env = {**os.environ, **(env or {})}
    env.pop(runtime.VARIABLE, None)
    env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    r = subprocess.run([sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(text), *map(str, args)],
                       capture_output=True, text=True, timeout=timeout, env=env)
    if check:
        assert r.returncode == 0, (r.returncode, r.stdout, r.stderr)
    return r if not check else r.stdout


# Memory


def blocks():
    gc.collect()
    return runtime.stats()["blocks"]


def test_memory_is_freed_with_the_last_reference():
    numpy = pytest.importorskip("numpy")
    q = ctx.Queue()
    before = blocks()
    a = tensors.empty_array(1 << 20, "uint8")
    assert blocks() == before + 1
    view = a[10:20]
    q.put(view)
    del a, view
    got = q.get(timeout=WAIT)
    assert wait_until(lambda: blocks() == before + 1)
    part = got[2:]
    del got
    assert blocks() == before + 1
    del part
    assert wait_until(lambda: blocks() == before)
    for _ in range(2000):
        q.put(numpy.zeros(3))
        q.get()
    assert wait_until(lambda: blocks() <= before + 1)


def test_tensors_that_are_not_received_are_freed_with_their_queue():
    torch = pytest.importorskip("torch")
    before = blocks()
    q = ctx.Queue()
    for _ in range(10):
        q.put(torch.zeros(1000))
    assert blocks() >= before + 10
    q.close()
    del q
    assert wait_until(lambda: blocks() == before)


def hold_tensors(q, ready):
    kept = [q.get() for _ in range(5)]
    ready.set()
    time.sleep(1000)
    print(kept)


def test_killed_holder_of_tensors():
    torch = pytest.importorskip("torch")
    q, ready = ctx.Queue(), ctx.Event()
    before = blocks()
    p = run(hold_tensors, q, ready)
    for _ in range(5):
        q.put(torch.ones(100000))
    assert ready.wait(WAIT)
    kill(p)
    assert wait_until(lambda: blocks() <= before)


def put_until_killed(q):
    i = 0
    while True:
        q.put(i)
        i += 1


def test_killed_sender_loses_nothing_that_was_put():
    """The values of a killed process are a prefix of what it sent, without a gap."""
    for _ in range(3):
        q = ctx.Queue()
        p = run(put_until_killed, q, context=forking)
        assert q.get(timeout=WAIT) == 0
        kill(p)
        got = []
        while True:
            try:
                got.append(q.get(timeout=0.5))
            except queue.Empty:
                break
        assert got == list(range(1, len(got) + 1))
        q.put("alive")
        assert q.get(timeout=WAIT) == "alive"


def test_full_memory():
    """A full domain is an exception that names the holders, and the domain works again afterwards."""
    out = script("""
        import shoal, shoal.multiprocessing as mp, numpy, os
        q = mp.Queue()
        kept = []
        try:
            for _ in range(100):
                kept.append(shoal.empty_array(8 << 20, "uint8"))
        except MemoryError as e:
            assert str(os.getpid()) in str(e), e
            assert isinstance(e, RuntimeError)
        else:
            raise AssertionError("no error")
        try:
            q.put(numpy.zeros(64 << 20, "uint8"))
        except MemoryError:
            pass
        else:
            raise AssertionError("no error in put")
        n = len(kept)
        kept.clear()
        a = shoal.empty_array(8 << 20, "uint8")
        a[:] = 3
        q.put(a)
        print("ok", 0 < n < 20, int(q.get().sum()) == 3 * (8 << 20))
        """, env={"SHOAL_BUDGET": str(64 << 20)})
    assert out == "ok True True\n"


# Latest


def test_latest():
    latest = ctx.Latest({"step": 0})
    assert latest.version == 1 and latest.load() == {"step": 0}
    assert latest.store({"step": 1}) == 2
    assert latest.load_version() == ({"step": 1}, 2)
    assert latest.wait(1) == ({"step": 1}, 2)
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        latest.wait(2, timeout=0.1)
    assert time.monotonic() - began >= 0.09
    assert "version 2" in repr(latest)


def store_many(latest, first, n):
    import numpy

    for i in range(first, first + n):
        latest.store(numpy.full(1000, i))


def test_latest_of_another_process():
    numpy = pytest.importorskip("numpy")
    latest = ctx.Latest(numpy.zeros(1000, int))
    old = latest.load()
    p = run(store_many, latest, 1, 300)
    version = 1
    while version < 301:
        value, new = latest.wait(version, timeout=WAIT)
        assert new > version and (value == new - 1).all()
        version = new
    assert (old == 0).all()
    finish(p)


def store_until_killed(latest, ready):
    import numpy

    i = 0
    while True:
        latest.store(numpy.full(5000, i))
        i += 1
        ready.set()


def test_latest_survives_its_storer():
    pytest.importorskip("numpy")
    latest, ready = ctx.Latest(None), ctx.Event()
    p = run(store_until_killed, latest, ready, context=forking)
    assert ready.wait(WAIT)
    time.sleep(0.05)
    kill(p)
    value, version = latest.load_version()
    assert (value == value[0]).all() and value[0] == version - 2
    assert latest.store("new") > version  # a store that was cut short may have used a version
    assert latest.load() == "new"


# Names


def use_names(prefix):
    q = names.lookup(prefix + "queue")
    q.put(names.lookup(prefix + "value")["a"])
    lock = names.lookup(prefix + "lock")
    with lock:
        names.bind(prefix + "child", "bound by the child")
    event = names.lookup(prefix + "event")
    event.set()


def test_names():
    """A child finds objects by name, without arguments; a name outlives the process that bound it."""
    prefix = f"t{os.getpid()}-{os.urandom(3).hex()}-"
    objects = {"queue": ctx.Queue(), "lock": ctx.Lock(), "event": ctx.Event(), "semaphore": ctx.Semaphore(3),
               "condition": ctx.Condition(ctx.Lock()), "barrier": ctx.Barrier(1), "latest": ctx.Latest(5),
               "joinable": ctx.JoinableQueue(), "pipe": ctx.Pipe()[0], "value": {"a": [1, 2]}}
    for name, o in objects.items():
        names.bind(prefix + name, o)
    with pytest.raises(FileExistsError):
        names.bind(prefix + "value", 1)
    p = run(use_names, prefix)
    assert objects["queue"].get(timeout=WAIT) == [1, 2]
    assert objects["event"].wait(WAIT)
    finish(p)
    assert names.lookup(prefix + "child") == "bound by the child"
    found = {n[len(prefix):] for n in names.listing() if n.startswith(prefix)}
    assert found == {*objects, "child"}
    assert names.lookup(prefix + "latest").load() == 5
    assert names.lookup(prefix + "semaphore").get_value() == 3
    with names.lookup(prefix + "condition") as held:
        assert held is True
    assert names.lookup(prefix + "barrier").wait(WAIT) == 0
    for n in found:
        names.unlink(prefix + n)
    with pytest.raises(FileNotFoundError):
        names.lookup(prefix + "value")
    with pytest.raises(FileNotFoundError):
        names.unlink(prefix + "value")


def test_name_of_a_tensor():
    torch = pytest.importorskip("torch")
    name = f"t{os.getpid()}-{os.urandom(3).hex()}"
    t = tensors.zeros(4, torch.int64)
    names.bind(name, t)
    names.lookup(name)[2] = 6
    assert t.tolist() == [0, 0, 6, 0]
    names.unlink(name)


def test_name_of_another_kind():
    name = f"t{os.getpid()}-{os.urandom(3).hex()}"
    names.bind(name, ctx.Event())
    with pytest.raises(TypeError):
        names.lookup(name, type(ctx.Lock()))
    names.unlink(name)


def tell_comm(q):
    q.put(1)
    with open("/proc/self/comm") as f:
        q.put(f.read().strip())


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_process_name(method):
    """A child has the name of its Process for shoal ps."""
    context = mp.get_context(method)
    q = context.Queue()
    p = context.Process(target=tell_comm, args=(q,), name="actor-7", daemon=True)
    p.start()
    assert [q.get(timeout=WAIT), q.get(timeout=WAIT)] == [1, "actor-7"]
    finish(p)


# Signals and threads

WAITS = {
    "get": "q.get()",
    "get with a timeout": "q.get(timeout=50)",
    "put": "full.put(2)",
    "recv": "a.recv()",
    "poll": "a.poll(50)",
    "lock": "lock.acquire()",
    "rlock": "mp.Condition(lock).acquire()",
    "semaphore": "mp.Semaphore(0).acquire()",
    "event": "mp.Event().wait()",
    "condition": "c.wait()",
    "barrier": "mp.Barrier(2).wait()",
    "join": "j.join()",
    "latest": "mp.Latest(1).wait(1)",
    "wait": "mp.connection.wait([a], 50)",
}


@pytest.mark.parametrize("what", WAITS)
def test_keyboard_interrupt(what):
    """Ctrl-C ends a wait at once, and leaves a process that works."""
    out = script("""
        import os, signal, sys, threading, time
        import shoal.multiprocessing as mp
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a background job
        q, full, j, lock = mp.Queue(), mp.Queue(1), mp.JoinableQueue(), mp.Lock()
        full.put(1)
        j.put(1)
        a, b = mp.Pipe()
        c = mp.Condition()
        lock.acquire()
        c.acquire()
        def interrupt():
            time.sleep(0.3)
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        sent = []
        threading.Thread(target=interrupt).start()
        try:
            WHAT
        except KeyboardInterrupt:
            delay = time.monotonic() - sent[0]
        c.release()
        q.put(1)
        print(q.get(), delay < 2)
        """.replace("WHAT", WAITS[what]))
    assert out == "1 True\n"


def test_signal_handlers_run_during_waits():
    """A Python handler runs while the main thread waits, and the wait goes on."""
    out = script("""
        import os, signal, threading, time
        import shoal.multiprocessing as mp
        seen = []
        signal.signal(signal.SIGUSR1, lambda *a: seen.append("usr1"))
        signal.signal(signal.SIGURG, lambda *a: seen.append("urg"))
        signal.signal(signal.SIGCHLD, lambda *a: seen.append("chld"))
        q = mp.Queue()
        def send():
            for s in (signal.SIGUSR1, signal.SIGCHLD):
                time.sleep(0.1)
                os.kill(os.getpid(), s)
            time.sleep(0.1)
            q.put(list(seen))
        threading.Thread(target=send).start()
        print(q.get(), seen)
        """)
    assert out == "['usr1', 'chld'] ['usr1', 'chld']\n"


def test_signal_breaks_no_barrier():
    """A handler runs during or after the wait for a barrier, which does not break."""
    out = script("""
        import os, signal, threading, time
        import shoal.multiprocessing as mp
        seen = []
        signal.signal(signal.SIGCHLD, lambda *a: seen.append(1))
        b = mp.Barrier(2)
        def other():
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGCHLD)
            time.sleep(0.2)
            b.wait(30)
        t = threading.Thread(target=other)
        t.start()
        print(b.wait(30), b.broken)
        t.join()
        print(seen)
        """)
    assert out == "0 False\n[1]\n"


def test_signals_stay_as_they_were():
    """Loading the library changes no handler of Python, and a closed pipe still raises BrokenPipeError."""
    out = script("""
        import os, signal
        before = {s: signal.getsignal(s) for s in signal.valid_signals()}
        import shoal.multiprocessing as mp
        q = mp.Queue(); q.put(1); q.get()
        assert before == {s: signal.getsignal(s) for s in signal.valid_signals()}
        r, w = os.pipe()
        os.close(r)
        try:
            os.write(w, b"x")
        except BrokenPipeError:
            pass
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGINT)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        pid = os.fork()
        if pid == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()
        print(os.waitpid(pid, 0)[1], flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        """, check=False)
    assert out.stdout == f"{int(signal.SIGTERM)}\n" and out.returncode == -signal.SIGTERM, out


def test_faulthandler_still_reports():
    r = script("""
        import faulthandler, shoal.multiprocessing as mp
        faulthandler.enable()
        q = mp.Queue(); q.put(1); q.get()
        faulthandler._sigsegv()
        """, check=False)
    assert r.returncode in (-signal.SIGSEGV, -signal.SIGABRT, 2), r
    assert "Segmentation fault" in r.stderr and "<module>" in r.stderr


def test_waits_release_the_gil():
    q, got, ticks = ctx.Queue(), [], 0
    t = threading.Thread(target=lambda: got.append(q.get()))
    t.start()
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        ticks += 1
    assert ticks > 1000
    q.put("x")
    t.join(WAIT)
    assert got == ["x"]


def test_threads_share_a_queue():
    q, results = ctx.Queue(4), []
    ts = [threading.Thread(target=lambda: results.extend(iter(q.get, None))) for _ in range(4)]
    for t in ts:
        t.start()
    for i in range(2000):
        q.put(i)
    for _ in ts:
        q.put(None)
    for t in ts:
        t.join(WAIT)
    assert sorted(results) == list(range(2000))


def test_close_ends_the_waits_of_other_threads():
    q, seen = ctx.Queue(), []

    def get():
        try:
            q.get()
        except Exception as e:
            seen.append(type(e))

    t = threading.Thread(target=get)
    t.start()
    time.sleep(0.1)
    q.close()
    t.join(WAIT)
    assert not t.is_alive() and len(seen) == 1 and issubclass(seen[0], (EOFError, ValueError))


def test_shutdown_with_waiting_threads():
    """The interpreter ends although daemon threads wait and a reader is left in a loop."""
    out = script("""
        import threading, time
        import shoal.multiprocessing as mp
        q, lock, e, s = mp.Queue(), mp.Lock(), mp.Event(), mp.Semaphore(0)
        lock.acquire()
        for f in (q.get, lock.acquire, e.wait, s.acquire, lambda: q.get(timeout=100)):
            threading.Thread(target=f, daemon=True).start()
        time.sleep(0.2)
        print("end")
        """, timeout=30)
    assert out == "end\n"


def test_shutdown_while_a_daemon_thread_waits():
    """A daemon thread that waits in Queue.get delays the end of the interpreter by no more than some
    seconds, and causes no output."""
    r = script("""
        import threading, time
        import shoal.multiprocessing as mp
        q = mp.Queue()
        waiting = threading.Event()
        def get():
            waiting.set()
            q.get()
        threading.Thread(target=get, daemon=True).start()
        waiting.wait()
        time.sleep(0.2)
        print(time.monotonic(), flush=True)
        """, timeout=30, check=False)
    assert r.returncode == 0 and r.stderr == ""
    assert time.monotonic() - float(r.stdout) < 10  # the clock is the same in all processes


def test_shutdown_with_tensors():
    """Tensors, arrays and queues that live until the interpreter ends do no harm."""
    pytest.importorskip("torch")
    out = script("""
        import shoal, torch, numpy, atexit
        import shoal.multiprocessing as mp
        q = mp.Queue()
        t, a = shoal.zeros(5), shoal.empty_array(5)
        q.put((t, a))
        kept = q.get()
        atexit.register(lambda: print("end", float(t.sum())))
        class Late:
            def __del__(self):
                t[0] = 1
        late = Late()
        cycle = [late, t]; cycle.append(cycle)
        """, timeout=120)
    assert out == "end 0.0\n"


def test_reload():
    out = script("""
        import importlib, shoal.multiprocessing as mp
        q = mp.Queue(); q.put(1)
        again = importlib.reload(mp)
        again.Queue().put(2)
        print(q.get())
        """)
    assert out == "1\n"


def test_reload_while_a_queue_is_in_use():
    """A thread that waits in get during the reload receives the next value, and a child joins the domain."""
    out = script("""
        import importlib, threading, time
        import shoal.multiprocessing as mp
        q, got = mp.Queue(), []
        t = threading.Thread(target=lambda: got.append(q.get()))
        t.start()
        time.sleep(0.2)
        again = importlib.reload(mp)
        q.put("waited")
        t.join(30)
        answers = again.get_context("fork").Queue()
        p = again.get_context("fork").Process(target=lambda: answers.put(q.get()))
        p.start()
        q.put("child")
        print(got, answers.get(timeout=30))
        p.join(30)
        """)
    assert out == "['waited'] child\n"


# asyncio


def test_async_queue():
    async def main():
        q = ctx.Queue(2)

        async def produce():
            for i in range(200):
                await q.put_async(i)

        async def consume():
            return [await q.get_async() for _ in range(50)]

        results = await asyncio.gather(produce(), *(consume() for _ in range(4)))
        return sorted(sum(results[1:], []))

    assert asyncio.run(asyncio.wait_for(main(), WAIT)) == list(range(200))


def produce_slowly(q, n):
    for i in range(n):
        time.sleep(0.01)
        q.put(i)


def test_async_get_from_another_process():
    q = ctx.Queue()
    p = run(produce_slowly, q, 30)

    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticker = asyncio.ensure_future(tick())
        got = [await q.get_async() for _ in range(30)]
        ticker.cancel()
        return got, ticks

    got, ticks = asyncio.run(asyncio.wait_for(main(), WAIT))
    assert got == list(range(30)) and ticks > 20
    finish(p)


def test_async_cancellation():
    """A cancelled get takes no value."""
    q = ctx.Queue()

    async def main():
        for _ in range(20):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(q.get_async(), 0.005)
        q.put("kept")
        return await asyncio.wait_for(q.get_async(), WAIT)

    assert asyncio.run(main()) == "kept"


def test_async_latest_and_pipe():
    latest, (a, b) = ctx.Latest(0), ctx.Pipe()

    async def main():
        waiting = asyncio.ensure_future(latest.wait_async(1))
        receiving = asyncio.ensure_future(b.recv_async())
        await asyncio.sleep(0.05)
        assert not waiting.done() and not receiving.done()
        latest.store(1)
        a.send("x")
        return await waiting, await receiving

    assert asyncio.run(asyncio.wait_for(main(), WAIT)) == ((1, 2), "x")


# Fork


def test_fork_inherits_tensors():
    """A child reads and writes tensors that it inherited, also when the parent has dropped them."""
    torch = pytest.importorskip("torch")
    go, q = forking.Event(), forking.Queue()
    t = tensors.zeros(1000, torch.int64)
    t[:] = 7
    p = forking.Process(target=sum_later, args=(t, go, q), daemon=True)
    p.start()
    del t
    gc.collect()
    junk = [tensors.zeros(1000, torch.int64) for _ in range(50)]
    go.set()
    assert q.get(timeout=WAIT) == 7000
    finish(p)
    assert all(int(j.sum()) == 0 for j in junk)


def sum_later(t, go, q):
    go.wait(WAIT)
    q.put(int(t.sum()))


def grandchild(q, context):
    q.put("child")
    p = context.Process(target=q.put, args=("grandchild",))
    p.start()
    p.join(WAIT)


def grandchild_first(q, context):
    p = context.Process(target=q.put, args=("grandchild",))
    p.start()
    p.join(WAIT)
    q.put("child")


@pytest.mark.parametrize("target", [grandchild, grandchild_first])
def test_fork_twice(target):
    q = forking.Queue()
    p = forking.Process(target=target, args=(q, forking))
    p.start()
    assert {q.get(timeout=WAIT), q.get(timeout=WAIT)} == {"child", "grandchild"}
    finish(p)


def test_fork_in_the_middle_of_puts():
    """Threads put and get while the process forks: no child hangs, and no value is lost or doubled."""
    out = script("""
        import os, threading, time
        import shoal.multiprocessing as mp
        q, answers = mp.Queue(64), mp.Queue()
        stop, got = threading.Event(), []
        def put():
            i = 0
            while not stop.is_set():
                q.put(i)
                i += 1
            q.put(None)
            total.append(i)
        total = []
        threads = [threading.Thread(target=put), threading.Thread(target=lambda: got.extend(iter(q.get, None)))]
        for t in threads:
            t.start()
        for k in range(25):
            pid = os.fork()
            if pid == 0:
                if k % 2:
                    answers.put(k)
                os._exit(0)
            end = time.monotonic() + 30
            while os.waitpid(pid, os.WNOHANG) == (0, 0):
                assert time.monotonic() < end, "a child hangs"
                time.sleep(0.001)
        stop.set()
        for t in threads:
            t.join(30)
        assert got == list(range(total[0])), "values were lost"
        print(sorted(answers.get(timeout=10) for _ in range(12)))
        """, timeout=150)
    assert out == f"{list(range(1, 25, 2))}\n"


def test_fork_from_a_thread():
    out = script("""
        import os, threading
        import shoal.multiprocessing as mp
        q = mp.Queue()
        def fork():
            pid = os.fork()
            if pid == 0:
                q.put("child")
                os._exit(0)
            os.waitpid(pid, 0)
        t = threading.Thread(target=fork)
        t.start()
        print(q.get(timeout=30))
        t.join(30)
        """)
    assert out == "child\n"


def test_fork_without_use():
    """A child that uses no shared object loads nothing and exits by any way."""
    out = script("""
        import os, sys
        import shoal.multiprocessing as mp
        q = mp.Queue()
        for leave in (os._exit, sys.exit):
            pid = os.fork()
            if pid == 0:
                leave(3)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        q.put(1)
        print(q.get())
        """)
    assert out == "1\n"


def test_fork_while_a_lock_is_held():
    """The child of a process that holds a lock does not hold it."""
    lock, q = forking.Lock(), forking.Queue()
    with lock:
        p = forking.Process(target=lambda: q.put(lock.acquire(False)), daemon=True)
        p.start()
        assert q.get(timeout=WAIT) is False
    finish(p)


def exit_with(lock):
    lock.acquire()
    os._exit(0)


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_exit_while_a_lock_is_held(kind, method):
    """After os._exit of the holder, the next acquire raises OwnerDiedError once, and the lock is free."""
    context = mp.get_context(method)
    lock = getattr(context, kind)()
    p = run(exit_with, lock, context=context)
    finish(p)
    with pytest.raises(mp.OwnerDiedError) as e:
        lock.acquire(timeout=WAIT)
    assert e.value.pid == p.pid
    assert lock.acquire(timeout=WAIT)
    lock.release()


def test_fork_and_a_killed_parent():
    """Without its parent a child gets an exception for objects that it has not used, and does not hang."""
    out = script("""
        import os, signal, sys, time
        import shoal.multiprocessing as mp
        q = mp.Queue()
        r, w = os.pipe()
        parent = os.fork()
        if parent == 0:
            inner = mp.Queue()
            inner.put(1)
            killed = os.getpid()
            if os.fork() == 0:
                while os.getppid() == killed:
                    time.sleep(0.01)
                begin = time.monotonic()
                try:
                    inner.get(timeout=5)
                    os.write(w, b"a value")
                except Exception as e:
                    os.write(w, f"{type(e).__name__} {'at once' if time.monotonic() - begin < 4 else 'late'}".encode())
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(parent, 0)
        os.close(w)
        print(os.read(r, 100).decode())
        """, timeout=90)
    name, _, when = out.strip().partition(" ")
    assert name in ("RuntimeError", "ShoalError", "FileNotFoundError", "ValueError") and when == "at once", out


def test_fork_holds_no_listener_of_a_killed_parent():
    """While a forked child lives on, imports from its killed parent fail at once, and a program that has
    inherited the parent's domain makes one of its own."""
    out = script("""
        import os, signal, subprocess, sys, time
        import shoal.multiprocessing as mp
        from shoal.multiprocessing import runtime
        r, w = os.pipe()
        hold, release = os.pipe()
        parent = os.fork()
        if parent == 0:
            q = mp.Queue()
            token = runtime.export_object(q._handle).hex()
            os.close(release)
            if os.fork() == 0:
                os.close(w)
                os.read(hold, 1)
                os._exit(0)
            os.write(w, f"{token}\\n{os.environ['SHOAL_DOMAIN']}".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(parent, 0)
        token, domain = os.read(r, 5000).decode().split("\\n")
        mp.Queue()
        begin = time.monotonic()
        try:
            runtime.import_object(bytes.fromhex(token))
        except FileNotFoundError:
            print("lost", "at once" if time.monotonic() - begin < 4 else "late")
        program = "import shoal.multiprocessing as mp; q = mp.Queue(); q.put('a new domain'); print(q.get())"
        print(subprocess.run([sys.executable, "-c", program], env={**os.environ, "SHOAL_DOMAIN": domain},
                             capture_output=True, text=True, timeout=30))
        os.write(release, b"1")
        """, timeout=90)
    assert "lost at once" in out and "returncode=0, stdout='a new domain\\n', stderr=''" in out, out


# Bad input


def test_messages_that_are_no_pickles():
    """Bytes of any kind raise an ordinary exception, and the next message is received."""
    import pickle
    import random

    a, b = ctx.Pipe()
    rng = random.Random(1)
    good = pickle.dumps({"a": [1, 2.5, "x", b"y", (1, 2, 3, 4)], "b": None}, 5)
    samples = [b"", b"\x80", b"\x80\x05", b"\x80\x05.", b"\x80\x05K", b"\x80\x05K\x01Q.", b"\x80\x05(((((.",
               b"\x80\x05\x8c\x01nK\x07\x86Q.", b"\x80\x05\x8c\x01gK\xff\x86Q.", b"\x80\x05h\x00.", b"\x80\x05e.",
               b"\x80\x05\x8d" + b"\xff" * 8 + b"x.", b"\x80\x05}(K\x01u.", b"\x80\x05](]]e.", b"\x80\x05)\x85\x86."]
    samples += [good[:i] for i in range(len(good))]
    # Not LONG_BINPUT and BYTEARRAY8, for which the pickle module allocates as much as they say.
    opcodes = [c for c in range(256) if c not in b"r\x96"]
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(2, len(data))] = rng.choice(opcodes)
        samples.append(bytes(data))
    failed = 0
    for data in samples:
        a.send_bytes(data)
        try:
            b.recv()
        except Exception:
            failed += 1
    assert failed > 100
    a.send([1])
    assert b.recv() == [1]


def test_long_values():
    """A pickle of more than the largest message of a queue travels in shared memory."""
    q = ctx.Queue()
    for n in (1 << 20, (1 << 20) + 1, 100 << 20):
        q.put([b"x" * n, n])
        assert len(q.get(timeout=WAIT)[0]) == n
    before = blocks()
    q.put(b"y" * (5 << 20))
    assert q.get(timeout=WAIT)[-1:] == b"y"
    assert wait_until(lambda: blocks() <= before)


def test_pickles_agree_with_the_pickle_module():
    """The extension's pickles mean the same to pickle.loads, and it reads those of pickle.dumps."""
    import pickle
    import random

    rng = random.Random(2)

    def value(depth):
        kind = rng.randrange(9 if depth < 4 else 6)
        if kind == 0:
            return rng.choice([0, -1, 255, 256, 65535, 65536, -2**31, 2**31, 2**63 - 1, -2**63, 2**63, -2**70,
                               rng.getrandbits(rng.randrange(1, 70)) - 2**rng.randrange(1, 69)])
        if kind == 1:
            return rng.choice([rng.random(), float("inf"), -0.0, 5e-324])
        if kind == 2:
            return "".join(rng.choice("aé\u2028\U0001f600") for _ in range(rng.randrange(300)))
        if kind == 3:
            return os.urandom(rng.randrange(300))
        if kind < 6:
            return rng.choice([None, True, False])
        parts = [value(depth + 1) for _ in range(rng.randrange(6))]
        return parts if kind == 6 else tuple(parts) if kind == 7 else {i: p for i, p in enumerate(parts)}

    a, b = ctx.Pipe()
    for _ in range(1500):
        v = value(0)
        a.send(v)
        data = b.recv_bytes()
        assert repr(pickle.loads(data)) == repr(v)
        a.send_bytes(pickle.dumps(v, 5))
        assert repr(b.recv()) == repr(v)


@pytest.mark.parametrize("value", ["nothing", "@x zz", " 00", "@shoal-none"])
def test_wrong_domain_variable(value):
    r = subprocess.run([sys.executable, "-c", "import shoal.multiprocessing as mp; mp.Queue()"], capture_output=True,
                       text=True, timeout=WAIT, env={**os.environ, runtime.VARIABLE: value,
                                                     "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    assert r.returncode == 1 and runtime.VARIABLE in r.stderr


def test_wrong_key():
    ctx.Queue()  # so that there is a domain
    address, _key = os.environ[runtime.VARIABLE].split(" ")
    r = subprocess.run([sys.executable, "-c", "import shoal.multiprocessing as mp; mp.Queue()"], capture_output=True,
                       text=True, timeout=WAIT, env={**os.environ, runtime.VARIABLE: f"{address} {'00' * 32}",
                                                     "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)})
    assert r.returncode == 1 and "PermissionError" in r.stderr


def test_tokens():
    """A token is good for one import, and a wrong one is refused."""
    token = runtime.export_object(ctx.Queue()._handle)
    h = runtime.import_object(token)
    assert h.kind == runtime.QUEUE
    with pytest.raises((FileNotFoundError, PermissionError)):
        runtime.import_object(token)
    for wrong in (b"", b"x" * 50, token[:-1], bytes(len(token))):
        with pytest.raises((ValueError, FileNotFoundError, PermissionError, RuntimeError)):
            runtime.import_object(wrong)


def test_wrong_arguments():
    with pytest.raises(ValueError):
        ctx.Queue().get_many(0)
    with pytest.raises((TypeError, ValueError)):
        ctx.Queue().get(timeout="x")
    with pytest.raises(ValueError):
        ctx.Queue().get(timeout=float("nan"))
    with pytest.raises(ValueError):
        ctx.Barrier(0)
    with pytest.raises(TypeError):
        ctx.Condition(threading.Lock())
    with pytest.raises(ValueError):
        mp.get_context("nothing")


def test_get_many():
    q = ctx.Queue()
    for i in range(10):
        q.put(i)
    assert q.get_many(4) == [0, 1, 2, 3]
    assert q.get_many(100) == [4, 5, 6, 7, 8, 9]
    with pytest.raises(queue.Empty):
        q.get_many(5, timeout=0.05)


# Imports


def test_import_needs_no_torch():
    out = script("""
        import sys, shoal.multiprocessing as mp
        q = mp.Queue(); q.put([1, {"a": (2.5, None)}]); q.get(); mp.Value("i", 3); mp.Lock().acquire()
        print([m for m in ("torch", "numpy", "asyncio") if m in sys.modules])
        """)
    assert out == "[]\n"


def test_torch_attributes():
    pytest.importorskip("torch")
    out = script("""
        import torch, torch.multiprocessing as tmp
        import shoal.multiprocessing as mp
        assert mp.spawn is tmp.spawn and mp.Process is tmp.Process and mp.reductions is tmp.reductions
        assert mp.pool is __import__("multiprocessing.pool").pool
        for name in tmp.__all__:
            assert hasattr(mp, name), name
        try:
            mp.nothing
        except AttributeError as e:
            print(e)
        """)
    assert out == "module 'shoal.multiprocessing' has no attribute 'nothing'\n"


@pytest.mark.parametrize("name, value", [("_is_gil_enabled", lambda: False), ("abiflags", "t"), ("abiflags", "td")])
def test_free_threaded_python(monkeypatch, name, value):
    """Python without the GIL is refused, with a text that says which Python to use."""
    runtime._check_python()
    monkeypatch.setattr(sys, name, value, raising=False)
    with pytest.raises(ImportError, match="free-threaded Python: use a Python with the GIL") as e:
        runtime._check_python()
    assert sys.executable in str(e.value)


def test_sub_interpreter():
    r = script("""
        import sys
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        i = interpreters.create()
        code = "\\n".join(("try:", " import shoal.multiprocessing", "except ImportError as e:",
                          " print('refused:', 'interpreter' in str(e))"))
        interpreters.run_string(i, code)
        """)
    assert r == "refused: True\n"


def test_executor():
    """concurrent.futures accepts the contexts."""
    import concurrent.futures

    with concurrent.futures.ProcessPoolExecutor(2, mp_context=ctx) as pool:
        assert list(pool.map(abs, [-1, 2, -3])) == [1, 2, 3]
