import os, signal, time
from multiprocessing import resource_tracker
import fault

def work(queue):
    while True:
        queue.get()

if __name__ == "__main__":
    ctx = fault.context()
    resource_tracker.ensure_running()  # with fork, only SharedMemory needs it
    queue = ctx.Queue()
    worker = ctx.Process(target=work, args=(queue,), daemon=True)
    worker.start()
    queue.put(1)
    time.sleep(0.3)
    tracker = resource_tracker._resource_tracker._pid
    os.kill(tracker, signal.SIGKILL)
    fault.wait_dead(tracker)
    fault.ready(tracker)
    while True:
        queue.put(1)
        time.sleep(0.05)
