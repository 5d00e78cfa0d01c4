import time
import fault

def work(condition, entered):
    with condition:
        entered.put(1)
        condition.wait()

if __name__ == "__main__":
    ctx = fault.context()
    condition, entered = ctx.Condition(), ctx.SimpleQueue()
    with condition:
        condition.notify_all()
    worker = ctx.Process(target=work, args=(condition, entered))
    worker.start()
    entered.get()
    time.sleep(0.5)
    fault.ready(worker.pid)
    worker.join()
