"""What a script does with processes that a program of Go has nothing to do with: python mixed.py [PROGRAM]. It says the same with and without PROGRAM."""
import concurrent.futures
import copyreg
import json
import multiprocessing
import os
import signal
import sys
import time


class Extended:
    """Has no name in pickles, but a number: an opcode that Go does not read."""


copyreg.add_extension(__name__.replace("__mp_main__", "__main__"), "Extended", 0x70)


def square(x):
    return x * x


def length(blob, out):
    out.put([len(blob), hash(blob) == hash(bytes(len(blob)))])


def kind(thing, out):
    out.put(type(thing).__name__)


def tell(out):
    parent = multiprocessing.parent_process()
    out.put([
        sys.executable, sys.prefix, sys.flags.optimize, sys.warnoptions, sys.argv[1:], os.getcwd(),
        parent.pid == os.getppid(), parent.is_alive(), multiprocessing.current_process().name,
        [signal.getsignal(s) == signal.SIG_IGN for s in (signal.SIGUSR1, signal.SIGTERM, signal.SIGHUP)],
        signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        sorted(os.readlink("/proc/self/fd/" + fd).split(":")[0] for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)),
    ])


def leave(code):
    sys.exit(code)


def wait(out):
    out.put(os.getpid())
    time.sleep(600)


def outlive(path):
    """Ends when its parent has been killed, and says so."""
    with open(path + ".begun", "w"):
        pass
    multiprocessing.parent_process().join()
    with open(path, "w") as f:
        f.write("the parent has ended")


class Own(multiprocessing.get_context("spawn").Process):
    def run(self):
        sys.exit(9)


def asked(ctx, target, *args):
    out = ctx.SimpleQueue()
    p = ctx.Process(target=target, args=(*args, out))
    p.start()
    answer = out.get()
    p.join()
    return [answer, p.exitcode]


def ended(p, *signals):
    p.start()
    for s in signals:
        os.kill(p.pid, s)
    p.join()
    return p.exitcode


def main():
    ctx = multiprocessing.get_context("spawn")
    if sys.argv[-1].endswith(".alone"):
        ctx.Process(target=outlive, args=(sys.argv[-1],)).start()
        time.sleep(600)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    report = {
        "told": asked(ctx, tell),
        "short": asked(ctx, length, b"0123"),
        "long": asked(ctx, length, bytes(5_000_000)),
        "extended": asked(ctx, kind, Extended()),
        "left": ended(ctx.Process(target=leave, args=(7,))),
        "own": ended(Own()),
        "no number": ended(ctx.Process(target=square, args=("text",))),
    }
    out = ctx.SimpleQueue()
    p = ctx.Process(target=wait, args=(out,))
    p.start()
    report["its number"] = out.get() == p.pid
    os.kill(p.pid, signal.SIGINT)
    p.join()
    report["interrupted"] = p.exitcode
    with ctx.Pool(2) as pool:
        report["pool"] = pool.map(square, range(5))
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=ctx) as pool:
        report["executor"] = list(pool.map(square, range(5)))
    with ctx.Manager() as manager:
        shared = manager.dict(one=1)
        report["manager"] = dict(shared)
    print(json.dumps(report))


if __name__ == "__main__":
    if sys.argv[1] != "-":
        multiprocessing.set_executable(sys.argv[1])
    main()
