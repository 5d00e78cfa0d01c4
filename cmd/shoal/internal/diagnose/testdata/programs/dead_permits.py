# Two processes with the two permits of a semaphore are killed.
import os, signal, threading, time
import fault

def die(permits, held):
    with permits:
        held.release()
        time.sleep(1000)

def work(permits, go):
    go.acquire()
    with permits:
        pass

if __name__ == "__main__":
    ctx = fault.context()
    permits, held, go = ctx.Semaphore(2), ctx.Semaphore(0), ctx.Semaphore(0)
    worker = ctx.Process(target=work, args=(permits, go))
    worker.start()
    holders = [ctx.Process(target=die, args=(permits, held)) for _ in range(2)]
    for h in holders:
        h.start()
        held.acquire()
    for h in holders:
        os.kill(h.pid, signal.SIGKILL)
        fault.wait_dead(h.pid)
    go.release()
    threading.Timer(0.5, fault.ready, (holders[1].pid,)).start()
    worker.join()
