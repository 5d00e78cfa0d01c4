import time
import fault

def work(mine, other, held):
    with mine:
        held.release()
        time.sleep(0.5)
        with other:
            pass

if __name__ == "__main__":
    ctx = fault.context()
    a, b, held = ctx.Lock(), ctx.Lock(), ctx.Semaphore(0)
    workers = [ctx.Process(target=work, args=locks + (held,)) for locks in ((a, b), (b, a))]
    for w in workers:
        w.start()
    for _ in workers:
        held.acquire()
    time.sleep(1)
    fault.ready(workers[0].pid)
    for w in workers:
        w.join()
