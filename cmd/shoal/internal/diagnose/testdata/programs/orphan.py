import os, signal, time
import fault

def work(queue):
    queue.put(1)
    while True:
        time.sleep(0.01)

if __name__ == "__main__":
    ctx = fault.context()
    queue = ctx.Queue()
    worker = ctx.Process(target=work, args=(queue,))
    worker.start()
    queue.get()
    fault.ready(worker.pid)
    os.kill(os.getpid(), signal.SIGKILL)
