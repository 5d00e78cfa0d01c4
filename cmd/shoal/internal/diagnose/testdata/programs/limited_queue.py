import os, time
import fault

def work(queue):
    for i in range(20):
        queue.put(i)

if __name__ == "__main__":
    ctx = fault.context()
    queue = ctx.Queue(5)
    worker = ctx.Process(target=work, args=(queue,))
    worker.start()
    while not queue.full():
        time.sleep(0.01)
    time.sleep(0.3)
    fault.ready(os.getpid())
    worker.join()
