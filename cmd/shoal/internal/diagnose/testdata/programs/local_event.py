import threading, time
import fault

event = threading.Event()

def work():
    event.wait()

if __name__ == "__main__":
    worker = fault.context().Process(target=work)
    worker.start()
    event.set()
    time.sleep(0.5)
    fault.ready(worker.pid)
    worker.join()
