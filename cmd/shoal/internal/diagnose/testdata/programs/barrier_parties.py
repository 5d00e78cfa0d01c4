import time
import fault

def work(barrier, entered):
    entered.put(1)
    barrier.wait()

if __name__ == "__main__":
    ctx = fault.context()
    barrier, entered = ctx.Barrier(4), ctx.SimpleQueue()
    workers = [ctx.Process(target=work, args=(barrier, entered)) for _ in range(3)]
    for w in workers:
        w.start()
        entered.get()
    time.sleep(0.5)
    fault.ready(workers[0].pid)
    for w in workers:
        w.join()
