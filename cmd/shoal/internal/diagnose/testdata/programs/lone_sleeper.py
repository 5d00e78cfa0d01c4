# The only worker sleeps for ever.
import threading, time
import torch
from torch.utils.data import DataLoader, Dataset
import fault

class Numbers(Dataset):
    def __len__(self):
        return 100000
    def __getitem__(self, i):
        if i == 5:
            time.sleep(1000)
        return torch.full((8,), i)

if __name__ == "__main__":
    loader = DataLoader(Numbers(), batch_size=1, num_workers=1, multiprocessing_context=fault.context())
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    threading.Timer(0.5, fault.ready, (batches._workers[0].pid,)).start()
    next(batches)
