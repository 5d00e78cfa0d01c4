import os, signal
import torch
from torch.utils.data import DataLoader, Dataset
import fault

class Numbers(Dataset):
    def __len__(self):
        return 100000
    def __getitem__(self, i):
        return torch.full((8,), i)

if __name__ == "__main__":
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context=fault.context())
    batches = iter(loader)
    next(batches)
    worker = batches._workers[1].pid
    os.kill(worker, signal.SIGSTOP)
    fault.ready(worker)
    for _ in batches:
        pass
