import os, signal, time
import fault

def work(queue, done):
    queue.put(os.getpid())
    done.get()

if __name__ == "__main__":
    ctx = fault.context()
    queue, done = ctx.Queue(), ctx.Queue()
    worker = ctx.Process(target=work, args=(queue, done))
    worker.start()
    queue.get()
    os.kill(worker.pid, signal.SIGKILL)
    fault.wait_dead(worker.pid)
    fault.ready(worker.pid)
    queue.get()
