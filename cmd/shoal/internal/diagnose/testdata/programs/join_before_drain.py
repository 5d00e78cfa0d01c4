import os, time
import fault

def work(queue):
    queue.put(b"x" * (4 << 20))

if __name__ == "__main__":
    ctx = fault.context()
    queue = ctx.Queue()
    worker = ctx.Process(target=work, args=(queue,))
    worker.start()
    queue._reader.poll(None)
    time.sleep(0.5)
    fault.ready(os.getpid())
    worker.join()
