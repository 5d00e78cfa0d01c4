"""Programs without a fault. The arguments are a name and a start method. Each prints one line, READY
pid=THE PROCESS, and runs until it is killed."""

import os
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from multiprocessing import shared_memory
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import fault


def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))


class Samples(Dataset):
    def __init__(self, length=10**6, sleep=0.0, busy=0.0, shape=(16,)):
        self.length, self.sleep, self.busy, self.shape = length, sleep, busy, shape

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        time.sleep(self.sleep)
        spin(self.busy)
        return torch.full(self.shape, float(i))


class Stream(IterableDataset):
    def __iter__(self):
        while True:
            time.sleep(0.002)
            yield torch.ones(8)


def ready():
    fault.ready(0)


def loop(loader, compute=0.0, epochs=10**6):
    said = False
    for _ in range(epochs):
        for _ in loader:
            spin(compute)
            if not said:
                said = True
                ready()


def loader(ctx, data, compute=0.0, **options):
    loop(DataLoader(data, multiprocessing_context=ctx, **options), compute)


def fast_loader(ctx):
    loader(ctx, Samples(), num_workers=2, batch_size=8, compute=0.002)


def slow_loader(ctx):
    loader(ctx, Samples(sleep=0.03), num_workers=2, batch_size=8)


def slow_computing_loader(ctx):
    loader(ctx, Samples(busy=0.02), num_workers=2, batch_size=16)


def one_worker(ctx):
    loader(ctx, Samples(busy=0.3), num_workers=1, batch_size=4)


def compute_bound(ctx):
    loader(ctx, Samples(), num_workers=2, batch_size=8, compute=0.5)


def large_batches(ctx):
    options = dict(num_workers=2, batch_size=4, collate_fn=list_collate)
    loader(ctx, Samples(shape=(1 << 16,)), compute=0.2, **options)


def list_collate(samples):
    return [s.numpy().tobytes() for s in samples]


def short_epochs(ctx):
    loader(ctx, Samples(length=64), num_workers=2, batch_size=8, persistent_workers=True, compute=0.01)


def stream(ctx):
    loader(ctx, Stream(), num_workers=2, batch_size=8)


def no_workers(ctx):
    loop(DataLoader(TensorDataset(torch.ones(100, 2))), 0.01)


def square(x):
    time.sleep(0.05)
    return x * x


def pool(ctx):
    with ctx.Pool(2) as p:
        p.map(square, range(2))
        ready()
        while True:
            p.map(square, range(100))


def idle_pool(ctx):
    with ctx.Pool(3) as p:
        p.map(square, range(6))
        ready()
        threading.Event().wait()


def long_task(x):
    time.sleep(5)


def slow_pool(ctx):
    with ctx.Pool(2) as p:
        p.map(square, range(4))
        result = p.map_async(long_task, range(10**6))
        ready()
        result.get()


def rare_items():
    while True:
        time.sleep(4)
        yield 1


def lazy_pool(ctx):
    with ctx.Pool(2) as p:
        p.map(square, range(4))
        results = p.imap(square, rare_items())
        ready()
        for _ in results:
            pass


def executor(ctx):
    with ProcessPoolExecutor(2, mp_context=ctx) as e:
        list(e.map(square, range(8)))
        ready()
        threading.Event().wait()


def serve(started):
    server = socket.create_server(("127.0.0.1", 0))
    started.release()
    server.accept()


def servers(ctx):
    started = ctx.Semaphore(0)
    for _ in range(2):
        ctx.Process(target=serve, args=(started,), daemon=True).start()
    for _ in range(2):
        started.acquire()
    server = socket.create_server(("127.0.0.1", 0))
    ready()
    server.accept()


def between_epochs(ctx):
    batches = DataLoader(Samples(length=64), num_workers=2, batch_size=8, persistent_workers=True,
                         multiprocessing_context=ctx)
    for _ in batches:
        pass
    ready()
    while True:
        time.sleep(3)
        for _ in batches:
            pass


def finish_tasks(queue):
    while True:
        queue.get()
        time.sleep(1.2)
        queue.task_done()


def joined_queue(ctx):
    queue = ctx.JoinableQueue()
    ctx.Process(target=finish_tasks, args=(queue,), daemon=True).start()
    queue.put(0)
    queue.join()
    ready()
    while True:
        for i in range(3):
            queue.put(i)
        queue.join()


def consumer_group(ctx):
    queue, started = ctx.Queue(), ctx.Semaphore(0)
    for _ in range(4):
        ctx.Process(target=take_one, args=(queue, started), daemon=True).start()
    for _ in range(4):
        started.acquire()
    ready()
    time.sleep(10**6)


def take_one(queue, started):
    started.release()
    queue.get()


def produce(queue):
    while True:
        queue.put(torch.ones(64))
        time.sleep(0.01)


def pipeline(ctx):
    queue = ctx.Queue(16)
    for _ in range(2):
        ctx.Process(target=produce, args=(queue,), daemon=True).start()
    queue.get()
    ready()
    while True:
        queue.get()


def consume(queue, results):
    while (t := queue.get()) is not None:
        results.put(t.sum())


def fan_out(ctx):
    queue, results = ctx.Queue(), ctx.Queue()
    for _ in range(3):
        ctx.Process(target=consume, args=(queue, results), daemon=True).start()
    queue.put(torch.ones(4))
    results.get()
    ready()
    while True:
        queue.put(torch.ones(4))
        results.get()
        time.sleep(0.2)


def echo(pipe):
    while True:
        pipe.send(pipe.recv())


def ping_pong(ctx):
    here, there = ctx.Pipe()
    ctx.Process(target=echo, args=(there,), daemon=True).start()
    here.send(0)
    here.recv()
    ready()
    while True:
        here.send(torch.ones(4))
        here.recv()


def contend(lock, started):
    started.release()
    while True:
        with lock:
            time.sleep(0.4)
        time.sleep(0.01)


def long_critical_section(ctx):
    lock, started = ctx.Lock(), ctx.Semaphore(0)
    for _ in range(3):
        ctx.Process(target=contend, args=(lock, started), daemon=True).start()
    for _ in range(3):
        started.acquire()
    ready()
    time.sleep(10**6)


def wait_for(event, started):
    started.release()
    event.wait()


def idle_workers(ctx):
    event, started = ctx.Event(), ctx.Semaphore(0)
    for _ in range(2):
        ctx.Process(target=wait_for, args=(event, started), daemon=True).start()
    started.acquire()
    started.acquire()
    ready()
    threading.Event().wait()


def sleep_for(seconds):
    time.sleep(seconds)


def join_in_order(ctx):
    workers = [ctx.Process(target=sleep_for, args=(s,), daemon=True) for s in (10**6, 0)]
    for w in workers:
        w.start()
    time.sleep(0.5)
    ready()
    for w in workers:
        w.join()


def update(values, key):
    while True:
        values[key] = values.get(key, 0) + 1
        time.sleep(0.01)


def manager(ctx):
    with ctx.Manager() as m:
        values = m.dict()
        for key in range(2):
            ctx.Process(target=update, args=(values, key), daemon=True).start()
        while len(values) < 2:
            time.sleep(0.01)
        ready()
        time.sleep(10**6)


def train(model, started):
    torch.set_num_threads(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    started.release()
    while True:
        optimizer.zero_grad()
        model(torch.rand(8, 16)).sum().backward()
        optimizer.step()


def hogwild(ctx):
    model, started = torch.nn.Linear(16, 1), ctx.Semaphore(0)
    model.share_memory()
    workers = [ctx.Process(target=train, args=(model, started), daemon=True) for _ in range(2)]
    for w in workers:
        w.start()
    for _ in workers:
        started.acquire()
    ready()
    for w in workers:
        w.join()


def run_ranks(ctx, rank, *args):
    ranks = fault.start_ranks(ctx, rank, 2, *args)
    ready()
    for r in ranks:
        r.join()


def train_ddp(n, slow):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(16, 1))
    while True:
        model(torch.rand(8, 16)).sum().backward()
        if n == 0:
            spin(slow)


def ddp(ctx):
    run_ranks(ctx, train_ddp, 0)


def ddp_slow_rank(ctx):
    run_ranks(ctx, train_ddp, 0.3)


def ddp_very_slow_rank(ctx):
    run_ranks(ctx, train_ddp, 3)


def train_later(n, slow):
    while True:
        if n == 0:
            spin(slow)
        work = dist.all_reduce(torch.ones(1 << 16), async_op=True)
        spin(0.01)
        work.wait()


def async_ranks(ctx):
    run_ranks(ctx, train_later, 0)


def async_slow_rank(ctx):
    run_ranks(ctx, train_later, 2.5)


def train_loaded(n):
    for _ in DataLoader(Samples(sleep=2.5 * n), num_workers=1, batch_size=1):
        dist.all_reduce(torch.ones(4))


def rank_with_slow_loader(ctx):
    run_ranks(ctx, train_loaded)


def sleepy_worker(ctx):
    loader(ctx, Samples(sleep=3), num_workers=1, batch_size=1)


class Uneven(Samples):
    def __getitem__(self, i):
        spin(3 if i % 20 == 19 else 0.001)
        return torch.ones(4)


def heavy_sample(ctx):
    loader(ctx, Uneven(), num_workers=1, batch_size=1)


def answer_slowly(pipe):
    while True:
        x = pipe.recv()
        time.sleep(3)
        pipe.send(x)


def slow_answers(ctx):
    here, there = ctx.Pipe()
    ctx.Process(target=answer_slowly, args=(there,), daemon=True).start()
    ready()
    while True:
        here.send(1)
        here.recv()


def answer_locked(pipe, lock, sent):
    while True:
        with lock:
            x = pipe.recv()
        time.sleep(3)
        with sent:
            pipe.send(x)


def shared_pipe(ctx):
    here, there = ctx.Pipe()
    lock, sent = ctx.Lock(), ctx.Lock()
    for _ in range(2):
        ctx.Process(target=answer_locked, args=(there, lock, sent), daemon=True).start()
    ready()
    while True:
        here.send(1)
        here.recv()


def hold(permits, started):
    started.release()
    while True:
        with permits:
            time.sleep(1.5)


def permits(ctx):
    permits, started = ctx.Semaphore(2), ctx.Semaphore(0)
    for _ in range(3):
        ctx.Process(target=hold, args=(permits, started), daemon=True).start()
    for _ in range(3):
        started.acquire()
    ready()
    threading.Event().wait()


def consume_segments(names, started):
    started.release()
    while True:
        block = shared_memory.SharedMemory(name=names.get())
        time.sleep(0.5)
        block.close()
        block.unlink()


def segments(ctx):
    names, started = ctx.Queue(4), ctx.Semaphore(0)
    block = shared_memory.SharedMemory(create=True, size=1 << 16)  # the workers use the tracker of this process
    ctx.Process(target=consume_segments, args=(names, started), daemon=True).start()
    started.acquire()
    ready()
    while True:
        names.put(block.name)
        block.close()
        time.sleep(0.6)
        block = shared_memory.SharedMemory(create=True, size=1 << 16)


def put_rarely(queue):
    while True:
        time.sleep(3)
        queue.put(1)


def finished_workers(ctx):
    queue = ctx.Queue()
    finished = [ctx.Process(target=square, args=(2,)) for _ in range(2)]
    for f in finished:
        f.start()
    for f in finished:
        f.join()
    ctx.Process(target=put_rarely, args=(queue,), daemon=True).start()
    queue.get()
    ready()
    while True:
        queue.get()


def large_arguments(ctx):
    ready()
    while True:  # each process imports PyTorch before it reads its argument
        p = ctx.Process(target=len, args=(b"x" * 10**7,))
        p.start()
        p.join()


def stop_handler(ctx):
    """A handler of the process that joins sets the event."""
    event, started = ctx.Event(), ctx.Semaphore(0)
    signal.signal(signal.SIGTERM, lambda *_: event.set())
    worker = ctx.Process(target=wait_for, args=(event, started), daemon=True)
    worker.start()
    started.acquire()
    ready()
    worker.join()


def timed_event(ctx):
    """A thread of the process that joins sets the event later."""
    event, started = ctx.Event(), ctx.Semaphore(0)
    worker = ctx.Process(target=wait_for, args=(event, started), daemon=True)
    worker.start()
    started.acquire()
    timer = threading.Timer(10**6, event.set)
    timer.daemon = True
    timer.start()
    ready()
    worker.join()


def tasks_per_child(ctx):
    """A Pool replaces its worker after each task."""
    with ctx.Pool(1, maxtasksperchild=1) as pool:
        pool.map(square, range(2))
        ready()
        pool.map(square, range(10**6), chunksize=1)


def file_system(ctx):
    mp.set_sharing_strategy("file_system")
    loader(ctx, Samples(), num_workers=2, batch_size=8, compute=0.01)


def threads(ctx):
    stop = threading.Event()
    for _ in range(4):
        threading.Thread(target=stop.wait, daemon=True).start()
    loader(ctx, Samples(sleep=0.01), num_workers=2, batch_size=2)


if __name__ == "__main__":
    globals()[sys.argv[1]](mp.get_context(sys.argv[2]))
