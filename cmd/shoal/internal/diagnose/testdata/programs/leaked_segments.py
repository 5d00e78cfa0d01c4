# The program and its resource tracker are killed, and leave SharedMemory.
import os, signal, time
from multiprocessing import resource_tracker, shared_memory
import fault

if __name__ == "__main__":
    kept = [shared_memory.SharedMemory(create=True, size=1 << 20) for _ in range(4)]
    for k in kept:
        k.buf[:] = bytes(k.size)
    fault.ready(os.getpid())
    time.sleep(0.5)
    os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
