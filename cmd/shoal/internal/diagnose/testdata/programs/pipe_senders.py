# Both ends of a duplex Pipe send more than its buffers hold.
import os, threading
import fault

def work(pipe):
    pipe.send(1)
    pipe.send(b"x" * (4 << 20))

if __name__ == "__main__":
    ctx = fault.context()
    here, there = ctx.Pipe()
    worker = ctx.Process(target=work, args=(there,), daemon=True)
    worker.start()
    here.recv()
    threading.Timer(0.5, fault.ready, (os.getpid(),)).start()
    here.send(b"x" * (4 << 20))
