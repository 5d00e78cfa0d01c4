import os, signal, threading, time
import fault

def die(lock, go):
    lock.acquire()
    os.kill(os.getpid(), signal.SIGKILL)

def work(lock, go):
    go.recv()
    for _ in range(int(os.environ.get("FAULT_THREADS", "1")) - 1):
        threading.Thread(target=lock.acquire, daemon=True).start()
    with lock:
        pass

if __name__ == "__main__":
    ctx = fault.context()
    lock = ctx.Lock()
    here, there = ctx.Pipe()
    second = ctx.Process(target=work, args=(lock, there))
    second.start()
    first = ctx.Process(target=die, args=(lock, None))
    first.start()
    fault.wait_dead(first.pid)
    here.send(1)
    time.sleep(0.3)
    fault.ready(first.pid)
    lock.acquire()
