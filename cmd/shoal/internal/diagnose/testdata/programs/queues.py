# Queues with known depths.
import os, time
import fault

def wait(done, *queues):
    done.acquire()

if __name__ == "__main__":
    ctx = fault.context()
    limited, unlimited, simple, done = ctx.Queue(16), ctx.Queue(), ctx.SimpleQueue(), ctx.Semaphore(0)
    here, there = ctx.Pipe()
    ctx.Process(target=wait, args=(done, limited, unlimited, simple, there), daemon=True).start()
    for i in range(5):
        limited.put(i)
    for i in range(300):
        unlimited.put(i)
    simple.put(b"x" * 1000)
    here.send(b"x" * 2000)
    there.close()
    time.sleep(0.3)
    fault.ready(0)
    done.acquire()
