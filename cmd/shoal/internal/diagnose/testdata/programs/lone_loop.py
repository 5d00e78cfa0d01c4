# The only worker computes for ever.
import threading
import torch
from torch.utils.data import DataLoader, Dataset
import fault

class Numbers(Dataset):
    def __len__(self):
        return 100000
    def __getitem__(self, i):
        if i == 300:
            fault.spin()
        return torch.full((8,), i)

if __name__ == "__main__":
    loader = DataLoader(Numbers(), batch_size=1, num_workers=1, multiprocessing_context=fault.context())
    batches = iter(loader)
    for _ in range(300):
        next(batches)
    threading.Timer(12, fault.ready, (batches._workers[0].pid,)).start()
    next(batches)
