# Both ends of a duplex Pipe receive.
import os, threading
import fault

def work(pipe):
    while True:
        pipe.send(pipe.recv())

if __name__ == "__main__":
    ctx = fault.context()
    here, there = ctx.Pipe()
    worker = ctx.Process(target=work, args=(there,), daemon=True)
    worker.start()
    here.send(1)
    here.recv()
    threading.Timer(0.5, fault.ready, (os.getpid(),)).start()
    here.recv()
