"""Ordinary Python, whose processes are a Go program."""
import json
import multiprocessing
import sys


def turns(*args, **kwargs):
    raise RuntimeError("Go does this")


def fails():
    raise RuntimeError("Go does this")


def try_method(method):
    """Gives a Go process one of each that a context of the method makes."""
    ctx, spawn = multiprocessing.get_context(method), multiprocessing.get_context("spawn")
    conn, theirs = ctx.Pipe()
    work, done = ctx.Queue(3), ctx.SimpleQueue()
    lock, rlock, semaphore, bounded = ctx.Lock(), ctx.RLock(), ctx.Semaphore(2), ctx.BoundedSemaphore(1)
    event, cond = ctx.Event(), ctx.Condition()
    p = spawn.Process(target=turns, args=(theirs, work, done, lock, rlock, semaphore, bounded, event, cond), kwargs={"scale": 3})
    rlock.acquire()
    with cond:
        p.start()
        out = {"notified": cond.wait(60)}  # Go notifies, and waits to be notified
        cond.notify()
    for i in range(5):
        work.put(i)
    work.put(None)
    out["scaled"] = [done.get() for _ in range(5)]
    rlock.release()
    out["set"] = event.wait(60)
    out["through the pipe"] = conn.recv()
    out["left"] = [lock.acquire(False), rlock.acquire(False), semaphore.acquire(False), semaphore.acquire(False), bounded.acquire(False)]
    conn.send(None)
    p.join()
    out["exitcode"] = p.exitcode
    return out


if __name__ == "__main__":
    multiprocessing.set_executable(sys.argv[1])
    results = {method: try_method(method) for method in ("spawn", "forkserver")}
    p = multiprocessing.get_context("spawn").Process(target=fails)
    p.start()
    p.join()
    results["failed"] = p.exitcode
    print(json.dumps(results))
