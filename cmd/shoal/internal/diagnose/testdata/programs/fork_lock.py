import threading, time
import torch
import fault

lock = threading.Lock()
held = threading.Event()

def hold():
    with lock:
        held.set()
        time.sleep(1000)

def work(pipe):
    pipe.send(1)
    with lock:
        pass

if __name__ == "__main__":
    ctx = fault.context()
    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    here, there = ctx.Pipe()
    worker = ctx.Process(target=work, args=(there,))
    worker.start()
    here.recv()
    time.sleep(0.3)
    fault.ready(worker.pid)
    worker.join()
