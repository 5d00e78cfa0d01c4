import time
import fault

def work(event, entered):
    entered.put(1)
    event.wait()

if __name__ == "__main__":
    ctx = fault.context()
    event, entered = ctx.Event(), ctx.SimpleQueue()
    worker = ctx.Process(target=work, args=(event, entered))
    worker.start()
    entered.get()
    time.sleep(0.5)
    fault.ready(worker.pid)
    worker.join()
