# A worker is killed for lack of memory and reaped. Another worker keeps the queue open.
import multiprocessing, threading
import fault

def fill(path):
    fault.join_group(path)
    kept = []
    while True:
        kept.append(b"x" * (1 << 20))

def idle(queue, done):
    done.get()

if __name__ == "__main__":
    ctx = fault.context()
    path = fault.group("memory", "oom", limit_in_bytes=64 << 20)
    queue, done = ctx.Queue(), ctx.Queue()
    ctx.Process(target=idle, args=(queue, done), daemon=True).start()
    worker = ctx.Process(target=fill, args=(path,))
    worker.start()
    fault.wait_dead(worker.pid)
    multiprocessing.active_children()  # reaps it
    threading.Timer(0.5, fault.ready, (worker.pid,)).start()
    queue.get()
