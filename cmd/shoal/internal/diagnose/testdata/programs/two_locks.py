import time
import fault

def work(mine, other, held):
    with mine:
        held.wait()
        with other:
            pass

if __name__ == "__main__":
    ctx = fault.context()
    a, b, held = ctx.Lock(), ctx.Lock(), ctx.Barrier(3)
    workers = [ctx.Process(target=work, args=locks + (held,)) for locks in ((a, b), (b, a))]
    for w in workers:
        w.start()
    held.wait()
    time.sleep(0.5)
    fault.ready(workers[0].pid)
    for w in workers:
        w.join()
