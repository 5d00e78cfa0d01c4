import os, threading, time
import fault

def work(queue, got):
    while True:
        queue.get()
        got.release()

if __name__ == "__main__":
    ctx = fault.context()
    queue, got = ctx.JoinableQueue(), ctx.Semaphore(0)
    for _ in range(2):
        ctx.Process(target=work, args=(queue, got), daemon=True).start()
    for i in range(4):
        queue.put(i)
    for _ in range(4):
        got.acquire()
    threading.Timer(0.5, fault.ready, (os.getpid(),)).start()
    queue.join()
