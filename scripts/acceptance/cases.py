"""The acceptance tests of docs/acceptance.md for torch.multiprocessing: cases.py CASE STRATEGY.

Each case prints one line of JSON, [outcome, what was seen]. The outcome is "passes", "fails" or
"hangs". Nothing is assumed: what a case does not see, it does not say.
"""

import collections
import json
import multiprocessing.connection
import os
import queue
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.reduction import ForkingPickler

import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

# How long a survivor may take for what should take milliseconds.
PATIENCE = 5

MB = 1 << 20


def said(e):
    """An error in one line."""
    text = str(e).strip().splitlines()
    return f"{type(e).__name__}: {text[-1] if text else ''}"[:110].replace("|", "/")


def ends(f, patience=PATIENCE):
    """What f returns or raises in a thread of its own, or "hangs"."""
    out = []

    def run():
        try:
            out.append(("returns", f()))
        except BaseException as e:
            out.append(("raises", e))

    t = threading.Thread(target=run, daemon=True)
    t.start()
    t.join(patience)
    return out[0] if out else ("hangs", None)


def verdict(ok, what, hangs=False):
    return ("hangs" if hangs else "passes" if ok else "fails"), what


def quiet():
    """A child's traceback is not part of the table."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


# T1


def produce(q, n):
    quiet()
    for i in range(n):
        q.put(torch.full((8,), i))


def t1():
    total = 100_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    q = mp.Queue(1000)
    p = mp.Process(target=produce, args=(q, total), daemon=True)
    p.start()
    kept = []
    while len(kept) < total:
        try:
            kept.append(q.get(timeout=PATIENCE))
        except BaseException as e:
            return verdict(False, f"{len(kept):,} of {total:,} arrive, then {said(e)}", isinstance(e, queue.Empty))
    maps = len(open("/proc/self/maps").readlines())
    return verdict(True, f"all arrive; the receiver has {maps:,} mappings")


# T2


def hoard(n):
    quiet()
    kept = []
    try:
        for _ in range(n):
            kept.append(torch.zeros(MB, dtype=torch.uint8).share_memory_())
            kept[-1].fill_(1)
    except BaseException:
        os._exit(7)
    os._exit(0)


def t2():
    small_shm(64)
    ps = [mp.Process(target=hoard, args=(100,)) for _ in range(2)]
    for p in ps:
        p.start()
    for p in ps:
        p.join()
    codes = [p.exitcode for p in ps]
    how = ["an exception" if c == 7 else signal.Signals(-c).name if c < 0 else "no error" for c in codes]
    return verdict(all(c == 7 for c in codes), f"two processes, 200 MiB into 64: {', '.join(how)}")


def small_shm(mib):
    """Gives this process a /dev/shm of its own: its user has a mount namespace for that."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", "/dev/shm"], check=True)


# T3


def echo(inbox, outbox):
    quiet()
    while True:
        i, t = inbox.get()
        outbox.put((i, t * 2))


def t3():
    kills = 60
    inbox, outbox, rng = mp.Queue(), mp.Queue(), random.Random(1)
    crew = [mp.Process(target=echo, args=(inbox, outbox), daemon=True) for _ in range(4)]
    for p in crew:
        p.start()
    got, sent, killed, errors = collections.Counter(), 0, 0, collections.Counter()
    while killed < kills:
        for _ in range(20):
            inbox.put((sent, torch.full((100,), sent)))
            sent += 1
        try:
            while True:
                i, t = outbox.get(timeout=PATIENCE if len(got) + killed < sent - 20 or not got else 0.02)
                got[i] += int((t == 2 * i).all())
        except queue.Empty:
            pass
        except Exception as e:
            errors[said(e)] += 1
        before = len(got)
        k = rng.randrange(4)
        crew[k].kill()
        crew[k].join()
        killed += 1
        crew[k] = mp.Process(target=echo, args=(inbox, outbox), daemon=True)
        crew[k].start()
        end = time.monotonic() + PATIENCE
        inbox.put((sent, torch.full((100,), sent)))
        sent += 1
        while len(got) == before and time.monotonic() < end:
            state, v = ends(lambda: outbox.get(timeout=PATIENCE), PATIENCE + 1)
            if state == "returns":
                got[v[0]] += 1
            elif state == "hangs" or isinstance(v, queue.Empty):
                break
            else:
                errors[said(v)] += 1
        if len(got) == before:
            return verdict(False, f"after {killed} of {kills} kills nothing arrives any more", True)
    # What the dead did not have in their hands arrives.
    while True:
        state, v = ends(lambda: outbox.get(timeout=2), 4)
        if state != "returns":
            if state == "raises" and not isinstance(v, queue.Empty):
                errors[said(v)] += 1
                continue
            break
        got[v[0]] += 1
    lost = sent - len(got)
    ok = lost <= kills and not errors and max(got.values()) == 1
    why = f"; {sum(errors.values())} gets fail, most with {errors.most_common(1)[0][0]}" if errors else ""
    return verdict(ok, f"{kills} kills: {lost} of {sent:,} tensors do not arrive{why}")


# T4


def die(how):
    if how == "exit":
        os._exit(7)
    if how == "exception":
        raise RuntimeError("it fails")
    os.kill(os.getpid(), getattr(signal, how))
    time.sleep(60)


def in_lock(how, lock, there):
    quiet()
    lock.acquire()
    there.set()
    die(how)


def in_get(how, q, there):
    quiet()
    threading.Timer(0.5, lambda: (there.set(), die(how))).start()
    q.get()


def in_barrier(how, b, there):
    quiet()
    there.set()
    die(how)


def in_task(how):
    quiet()
    die(how)


def t4():
    cells = {}
    for how in ("SIGKILL", "SIGSEGV", "exit", "exception"):
        lock, there = mp.Lock(), mp.Event()
        p = mp.Process(target=in_lock, args=(how, lock, there))
        p.start()
        there.wait()
        p.join()
        cells["a lock", how] = "returns" if lock.acquire(timeout=PATIENCE) else "hangs"

        q, there = mp.Queue(), mp.Event()
        p = mp.Process(target=in_get, args=(how, q, there))
        p.start()
        there.wait()
        if how == "exception":  # of another thread, as a process does not die of that: it is killed
            p.kill()
        p.join()
        q.put(torch.ones(1))
        state, v = ends(lambda: q.get(timeout=PATIENCE), PATIENCE + 2)
        cells["a get", how] = "hangs" if isinstance(v, queue.Empty) else state

        q, there = mp.Queue(), mp.Event()
        p = mp.Process(target=in_barrier, args=(how, q, there))
        p.start()
        p.join()
        state, v = ends(lambda: q.get(timeout=PATIENCE), PATIENCE + 2)
        cells["the only sender", how] = "hangs" if isinstance(v, queue.Empty) else state

        b, there = mp.Barrier(2), mp.Event()
        p = mp.Process(target=in_barrier, args=(how, b, there))
        p.start()
        p.join()
        state, _ = ends(lambda: b.wait())
        cells["a barrier", how] = state

        pool = mp.Pool(2)
        state, _ = ends(lambda r=pool.apply_async(in_task, (how,)): r.get())
        cells["a pool's task", how] = state
        pool.terminate()
    hung = collections.Counter(place for (place, _), state in cells.items() if state == "hangs")
    what = ", ".join(f"{place} ({n} of 4)" for place, n in hung.items())
    return verdict(not hung, f"{sum(hung.values())} of {len(cells)} cells: the survivor waits for ever for {what}",
                   bool(hung))


# T5


def put_and_end(q, at_once):
    quiet()
    for i in range(64):
        q.put(torch.full((2 * MB,), i, dtype=torch.float64))
    if at_once:
        os._exit(0)


def arrivals(q):
    """How many of 64 tensors arrive, and why no more."""
    good, error = 0, ""
    for i in range(64):
        state, v = ends(q.get, 3)
        if state == "hangs":
            return good, error or "it waits for ever", True
        if state == "raises":
            error = error or said(v)
        else:
            good += bool((v == i).all())
    return good, error, False


def t5():
    q = mp.SimpleQueue()
    p = mp.Process(target=put_and_end, args=(q, True))
    p.start()
    p.join(60)
    if p.is_alive():
        return verdict(False, "the sender does not end", True)
    good, error, hangs = arrivals(q)
    return verdict(good == 64, f"{good} of 64 tensors of 16 MiB arrive from a sender that has ended"
                   + (f": {error}" if error else ""), hangs)


# T6


def reads(data, there, over):
    quiet()
    if isinstance(data, list):
        sum(len(s) for s in data)
    else:
        data.sum()
    there.release()
    over.wait()


def rollup(pid, *names):
    total = 0
    for line in open(f"/proc/{pid}/smaps_rollup"):
        if line.split(":")[0] in names:
            total += int(line.split()[1]) << 10
    return total


def shares(data, workers, *names):
    there, over = mp.Semaphore(0), mp.Event()
    ps = [mp.Process(target=reads, args=(data, there, over)) for _ in range(workers)]
    for p in ps:
        p.start()
    for _ in ps:
        there.acquire()
    sums = [rollup(p.pid, *names) for p in ps]
    mine = rollup(os.getpid(), *names)
    over.set()
    for p in ps:
        p.join()
    return mine, sums


def t6():
    shared = torch.zeros(64 * MB, dtype=torch.uint8).share_memory_()
    total = {}
    for n in (1, 4):
        mine, theirs = shares(shared, n, "Pss_Shmem")
        total[n] = (mine + sum(theirs)) / MB
    records = [f"a sample with the number {i}" for i in range(400_000)]
    held = sum(sys.getsizeof(s) for s in records) / MB
    _, idle = shares([], 2, "Private_Dirty")
    _, read = shares(records, 2, "Private_Dirty")
    copied = (sum(read) - sum(idle)) / 2 / MB
    tensors = total[4] < 1.25 * total[1]
    return verdict(tensors and copied < held / 4,
                   f"a tensor of 64 MiB: {total[1]:.0f} MiB with one worker, {total[4]:.0f} with four; a list of "
                   f"{held:.0f} MiB: {copied:.0f} MiB more for each worker that reads it")


# T7


def pass_on(source, to):
    quiet()
    to.put(source.get())
    time.sleep(600)


def t7():
    q = [mp.SimpleQueue() for _ in range(3)]
    ps = [mp.Process(target=pass_on, args=(q[i], q[i + 1]), daemon=True) for i in range(2)]
    for p in ps:
        p.start()
    q[0].put(torch.full((1000,), 2.0))
    end = time.monotonic() + 30
    while q[2].empty() and time.monotonic() < end:
        time.sleep(0.01)
    for p in ps:
        p.kill()
        p.join()
    state, v = ends(q[2].get)
    if state == "returns":
        return verdict(float(v.sum()) == 2000, f"the sum is {float(v.sum()):.0f}")
    return verdict(False, said(v) if v else "the last receiver waits for ever", state == "hangs")


# T8


def keeps(q, told):
    """Receives and keeps, and says how many mappings and descriptors it has."""
    quiet()
    kept = []
    while True:
        x = q.get()
        if x is None:
            return
        kept.append(x)
        os.write(told, b"%9d%9d" % (len(open("/proc/self/maps").readlines()), len(os.listdir("/proc/self/fd")))
                 if SAYS else b"." * 18)


SAYS = True


def receiver():
    q, (hears, told) = mp.SimpleQueue(), os.pipe()
    mp.Process(target=keeps, args=(q, told), daemon=True).start()

    def send(x):
        q.put(x)
        return os.read(hears, 18)

    return q, send


def between_marks(n):
    """What runs under strace."""
    global SAYS
    SAYS = False
    q, send = receiver()
    all = [torch.zeros(64).share_memory_() for _ in range(n + 1)]
    send(all.pop())
    os.path.exists("/mark")
    for x in all:
        send(x)
    os.path.exists("/mark")
    q.put(None)


def t8():
    length = set()
    for size in [4 << (7 * k) for k in range(5)]:
        x = torch.empty(0, dtype=torch.uint8).set_(torch.UntypedStorage._new_shared(size))  # without its pages
        length.add(len(bytes(ForkingPickler.dumps(x))))
    _, send = receiver()
    n, said = 50, []
    for _ in range(n + 1):
        said.append(send(torch.zeros(64).share_memory_()).split())
    maps, fds = [(int(said[-1][k]) - int(said[0][k])) / n for k in (0, 1)]
    calls = None
    with tempfile.NamedTemporaryFile() as f:
        r = subprocess.run(["strace", "-f", "-o", f.name, sys.executable, __file__, "between_marks", STRATEGY],
                           capture_output=True, timeout=120)
        lines = f.read().decode().splitlines()
        marks = [i for i, l in enumerate(lines) if '"/mark"' in l]
        if r.returncode == 0 and len(marks) == 2:  # less a read and a write for the answer
            calls = sum("resumed>" not in l for l in lines[marks[0]:marks[1]]) / 20 - 2
    what = f"messages of {min(length)} to {max(length)} bytes for 4 B to 1 GiB, so no copy; each tensor costs its " \
           f"receiver {maps:.1f} mappings and {fds:.1f} descriptors"
    if calls is not None:
        what += f", and both processes {calls:.0f} system calls"
    return verdict(maps < 0.1 and fds < 0.1 and calls is not None and calls < 1, what)


# T9


def stranger(address, live):
    multiprocessing.current_process().authkey = b"acceptance"
    c = multiprocessing.connection.Client(address, authkey=b"acceptance")
    c.send_bytes(ForkingPickler.dumps(torch.full((1000,), 3.0)))
    if live == "1":
        c.recv_bytes()
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def t9():
    mp.current_process().authkey = b"acceptance"
    seen = []
    for live in "1", "0":
        address = tempfile.mktemp()
        with multiprocessing.connection.Listener(address, authkey=b"acceptance") as l:
            p = subprocess.Popen([sys.executable, __file__, "stranger", STRATEGY, address, live])
            c = l.accept()
            data = c.recv_bytes()
            if live == "0":
                p.wait()
            state, v = ends(lambda: ForkingPickler.loads(data))
            seen.append(v is not None and state == "returns" and float(v.sum()) == 3000)
            error = said(v) if state == "raises" else state
            if live == "1":
                c.send_bytes(b"x")
            p.wait()
    return verdict(all(seen), f"from a stranger that lives {'it arrives' if seen[0] else 'it does not arrive'}; "
                   f"from one that was killed {'it arrives' if seen[1] else 'it does not: ' + error}")


# T10

FORKED = False


def was_forked(q):
    quiet()
    q.put(FORKED)


def multiplies(q):
    quiet()
    q.put(float((torch.ones(600, 600) @ torch.ones(600, 600)).sum()))


def t10():
    global FORKED
    FORKED = True  # a program that is executed again does not have this
    q = mp.SimpleQueue()
    mp.Process(target=was_forked, args=(q,)).start()
    forked = q.get()
    ps = [mp.Process(target=was_forked, args=(q,)) for _ in range(64)]
    for p in ps:
        p.start()
    born = sum(ends(q.get, 60)[0] == "returns" for _ in ps)
    torch.set_num_threads(2)
    torch.ones(600, 600) @ torch.ones(600, 600)
    p = mp.Process(target=multiplies, args=(q,), daemon=True)
    p.start()
    state, _ = ends(q.get, 2 * PATIENCE)
    p.kill()
    return verdict(not forked and born == 64 and state == "returns",
                   f"the start method is {mp.get_start_method()}: {'fork without exec' if forked else 'with exec'}; "
                   f"{born} of 64 workers start; after a product by two threads a forked worker's product "
                   f"{'hangs' if state == 'hangs' else 'is computed'}", state == "hangs")


# T11


def numbered(q, first, n):
    quiet()
    for i in range(first, first + n):
        q.put(torch.full((16,), i))
    time.sleep(600)


def consumes(q, out, n):
    quiet()
    for _ in range(n):
        t = q.get()
        out.put((int(t[0]), bool((t == t[0]).all())))


def t11():
    n = 4000
    q, out = mp.Queue(100), mp.Queue()
    ps = [mp.Process(target=numbered, args=(q, i * n // 2, n // 2), daemon=True) for i in range(2)]
    ps += [mp.Process(target=consumes, args=(q, out, n // 2), daemon=True) for _ in range(2)]
    for p in ps:
        p.start()
    got, bad = collections.Counter(), 0
    for _ in range(n):
        state, v = ends(lambda: out.get(timeout=PATIENCE), PATIENCE + 2)
        if state != "returns":
            break
        got[v[0]] += 1
        bad += not v[1]
    x = torch.full((100,), 5.0).share_memory_()
    stale = bytes(ForkingPickler.dumps(x))
    torch.equal(ForkingPickler.loads(stale), x)
    del x
    state, v = ends(lambda: ForkingPickler.loads(stale))
    again = "is an error" if state == "raises" else "hangs" if state == "hangs" else f"gives {float(v[0]):.0f}"
    return verdict(len(got) == n and max(got.values()) == 1 and not bad and state == "raises",
                   f"{len(got):,} of {n:,} tensors arrive once; a handle whose memory is gone {again}", state == "hangs")


# T12


class Augmented(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.tensor([float(i), float(torch.rand(()))])


def t12():
    epochs = {}
    for workers in (0, 1, 2, 7):
        torch.manual_seed(3)
        g = torch.Generator().manual_seed(3)
        epochs[workers] = torch.cat(list(DataLoader(Augmented(), 8, shuffle=True, num_workers=workers, generator=g)))
    order = all(torch.equal(e[:, 0], epochs[0][:, 0]) for e in epochs.values())
    same = sum(torch.equal(e, epochs[0]) for e in epochs.values())
    return verdict(order and same == 4, f"0, 1, 2 and 7 workers: the order is {'one' if order else 'not one'}, "
                   f"and {len({tuple(e.flatten().tolist()) for e in epochs.values()})} different epochs of random numbers")


# T13


class Uneven(Dataset):
    def __len__(self):
        return 1600

    def __getitem__(self, i):
        time.sleep(0.1 if i % 100 == 0 else 0.001)
        return i


def t13():
    n, worst = 1600, {}
    work = n // 100 * 0.1 + (n - n // 100) * 0.001
    for workers in (1, 2, 4, 8):
        for in_order in (True, False):
            g = torch.Generator().manual_seed(1)
            l = DataLoader(Uneven(), 32, shuffle=True, num_workers=workers, persistent_workers=True, generator=g,
                           in_order=in_order)
            sum(len(b) for b in l)  # the workers start
            took = []
            for _ in range(3):  # the least disturbed of three: other programs run here
                begin = time.monotonic()
                got = sum(len(b) for b in l)
                took.append(time.monotonic() - begin)
                if got != n:
                    return verdict(False, f"{got} of {n} samples")
            over = min(took) / (work / workers) - 1
            worst[in_order] = max(worst.get(in_order, (0, 0)), (over, workers))
            del l
    return verdict(worst[True][0] < 0.15,
                   "in the best of three epochs the samples take beyond their own time up to " + ", ".join(
                       f"{over:.0%} with {w} workers {'in order' if o else 'as they come'}"
                       for o, (over, w) in worst.items()))


# T14


def t14():
    group = f"/sys/fs/cgroup/cpu/shoal-acceptance-{os.getpid()}"
    try:
        os.mkdir(group)
    except OSError as e:
        return "none", f"not tried: no control group can be made here ({said(e)})"
    try:
        for name, v in ("cfs_period_us", 100_000), ("cfs_quota_us", 100_000):
            open(f"{group}/cpu.{name}", "w").write(str(v))
        out = subprocess.run(["sh", "-c", f"echo 0 >{group}/tasks && exec {sys.executable} -c "
                              "'import torch; print(torch.get_num_threads())'"], capture_output=True, text=True)
        n = int(out.stdout)
    except (OSError, ValueError) as e:
        return "none", f"not tried: {said(e)}"
    finally:
        for _ in range(100):
            try:
                os.rmdir(group)
                break
            except OSError:
                time.sleep(0.05)
    if os.cpu_count() < 2:
        return "none", "not tried: this machine has one processor"
    return verdict(n == 1, f"with a real quota of one processor, torch computes with {n} threads")


# T15


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(100))


def t15():
    all = collections.Counter()
    for _ in range(2):  # ranks: nothing tells them apart either
        for b in DataLoader(Stream(), 3, num_workers=2):
            all.update(b.tolist())
    return verdict(set(all.values()) == {1}, f"2 ranks with 2 workers read each of {len(all)} records "
                   f"{max(all.values())} times, unless the data set divides itself")


# T16


class Big(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.zeros(30 * MB, dtype=torch.uint8)


def t16():
    small_shm(64)
    state, v = ends(lambda: sum(len(b) for b in DataLoader(Big(), 1, num_workers=2)), 40)
    with_little = f"{v} of 8" if state == "returns" else said(v) if v else "it hangs"
    good = state == "returns" and v == 8
    subprocess.run(["mount", "-o", "ro", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
    state2, v2 = ends(lambda: torch.zeros(100).share_memory_())
    without = "memory is shared" if state2 == "returns" else said(v2)
    return verdict(good and state2 == "returns",
                   f"a loader of 30 MiB batches in a /dev/shm of 64 MiB: {with_little}; without a /dev/shm to "
                   f"write to: {without}", state == "hangs")


# T17

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]
LAYOUTS = {"contiguous": lambda t: t, "transposed": lambda t: t.t(), "strided": lambda t: t[1:, ::2],
           "expanded": lambda t: t[:1].expand(5, t.shape[1]), "empty": lambda t: t[:0], "scalar": lambda t: t[1, 1]}


def sends_lambda(q):
    quiet()
    q.put(lambda: 0)
    q.put(torch.ones(1))
    time.sleep(600)


def t17():
    q, wrong = mp.SimpleQueue(), []
    for d in DTYPES:
        base = torch.arange(24, dtype=torch.uint8).view(4, 6)
        t = base.to(getattr(torch, d))
        for name, f in LAYOUTS.items():
            x = f(t)
            try:
                q.put(x)
                y = q.get()
                same = x.dtype == y.dtype and x.stride() == y.stride() and x.shape == y.shape and (
                    x.contiguous().view(torch.uint8).equal(y.contiguous().view(torch.uint8)) if x.dim() else
                    x.item() == y.item())
                if not same:
                    wrong.append((d, name))
            except BaseException as e:
                wrong.append((d, name, said(e)))
    q = mp.Queue()
    p = mp.Process(target=sends_lambda, args=(q,), daemon=True)
    p.start()
    state, v = ends(lambda: q.get(timeout=PATIENCE), PATIENCE + 2)
    silent = state == "returns" and isinstance(v, torch.Tensor)
    p.kill()
    n = len(DTYPES) * len(LAYOUTS)
    return verdict(not wrong and not silent,
                   f"{n - len(wrong)} of {n} arrive as they were" + (f", not {wrong[0]}" if wrong else "")
                   + ("; a put of a lambda returns, the message is dropped, and a thread prints why" if silent else ""))


# T19


class Slow(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, i):
        time.sleep(0.005)
        return i


def t19():
    l = DataLoader(Slow(), 4, num_workers=2)
    it, got, error = iter(l), [], ""
    try:
        for n, b in enumerate(it):
            got.extend(b.tolist())
            if n == 10:
                os.kill(it._workers[0].pid, signal.SIGKILL)
    except RuntimeError as e:
        error = f", then {said(e)}"
    return verdict(not error and got == list(range(200)),
                   f"after a worker's death {len(got)} of 200 samples came{error}")


if __name__ == "__main__":
    STRATEGY = sys.argv[2]
    mp.set_sharing_strategy(STRATEGY)
    torch.set_num_threads(1)  # a forked worker may hang in its first product otherwise: see T10
    if sys.argv[1] == "between_marks":
        between_marks(20)
        os._exit(0)
    elif sys.argv[1] == "stranger":
        stranger(*sys.argv[3:])
    else:
        print(json.dumps(globals()[sys.argv[1].lower()]()), flush=True)
        os._exit(0)  # threads that hang are no part of the outcome
