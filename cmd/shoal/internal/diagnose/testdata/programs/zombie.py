import time
import fault

def work():
    pass

if __name__ == "__main__":
    ctx = fault.context()
    worker = ctx.Process(target=work)
    worker.start()
    fault.wait_dead(worker.pid)
    fault.ready(worker.pid)
    while True:
        time.sleep(0.1)
