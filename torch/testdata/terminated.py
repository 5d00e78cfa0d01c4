"""Terminates Go processes that have queues and locks, and ends without a word."""
import multiprocessing
import sys


def hold_tools(*args):
    raise RuntimeError("Go does this")


if __name__ == "__main__":
    multiprocessing.set_executable(sys.argv[1])
    ctx = multiprocessing.get_context("spawn")
    for end in "terminate", "kill", "join":
        conn, theirs = ctx.Pipe()
        tools = ctx.Queue(), ctx.Lock(), ctx.Event()
        p = ctx.Process(target=hold_tools, args=(theirs, *tools))
        p.start()
        theirs.close()
        print(conn.recv())
        if end == "join":
            conn.send(None)
        else:
            getattr(p, end)()
        p.join()
        print(end, p.exitcode)
