"""A trainer of the example pythontrainers: it adds batches of Go to weights that Go serves."""
import shoal.multiprocessing as mp
from shoal.multiprocessing import names


def acquire(lock):
    """Acquires a lock, also after its holder has died. The weights are replaced as a whole, so they are sound."""
    while True:
        try:
            return lock.acquire()
        except mp.OwnerDiedError:
            pass


batches, weights, lock = names.lookup("batches"), names.lookup("weights"), names.lookup("lock")
while (batch := batches.get()) is not None:
    acquire(lock)
    try:
        state = weights.load()
        weights.store({"weights": state["weights"] + batch, "seen": state["seen"] + 1})
    finally:
        lock.release()
