import os, signal, threading, time
import fault

def work(x):
    if x == 3:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    return x

def announce(workers):
    while all(w.is_alive() for w in workers):
        time.sleep(0.01)
    time.sleep(1)
    fault.ready(os.getpid())

if __name__ == "__main__":
    with fault.context().Pool(3) as pool:
        pool.map(time.sleep, [0.3] * 3, chunksize=1)  # all workers have started
        workers = list(pool._pool)
        result = pool.map_async(work, range(8), chunksize=1)
        threading.Thread(target=announce, args=(workers,), daemon=True).start()
        result.get()
