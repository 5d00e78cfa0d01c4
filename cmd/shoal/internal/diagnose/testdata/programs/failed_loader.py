# The program continues after the DataLoader has reported a dead worker.
import multiprocessing, os, signal, threading, time
import torch
from torch.utils.data import DataLoader, Dataset
import fault

class Numbers(Dataset):
    def __len__(self):
        return 100000
    def __getitem__(self, i):
        if i == 5:
            time.sleep(0.5)  # until the batches before are received
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((8,), i)

if __name__ == "__main__":
    ctx = fault.context()
    loader = DataLoader(Numbers(), batch_size=1, num_workers=2, multiprocessing_context=ctx)
    batches = iter(loader)
    culprit = batches._workers[1].pid
    results = ctx.Queue()
    try:
        for _ in batches:
            pass
    except RuntimeError as err:
        failed = err  # so that the DataLoader stays
    fault.wait_dead(culprit)
    multiprocessing.active_children()  # reaps it
    threading.Timer(0.5, fault.ready, (culprit,)).start()
    results.get()
