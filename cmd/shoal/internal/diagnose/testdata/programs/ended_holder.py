import threading, time
import fault

lock, held, release = threading.Lock(), threading.Event(), threading.Event()

def hold():
    with lock:
        held.set()
        release.wait()

def work():
    with lock:
        pass

if __name__ == "__main__":
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    worker = fault.context().Process(target=work)
    worker.start()
    release.set()
    holder.join()
    time.sleep(0.5)
    fault.ready(worker.pid)
    worker.join()
