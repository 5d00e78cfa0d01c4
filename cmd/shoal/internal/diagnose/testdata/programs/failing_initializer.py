import os, threading
import fault

def initialize():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # many tracebacks
    raise ImportError("no such module")

if __name__ == "__main__":
    threading.Timer(0.5, fault.ready, (os.getpid(),)).start()
    with fault.context().Pool(2, initializer=initialize) as pool:
        pool.map(abs, range(10))
