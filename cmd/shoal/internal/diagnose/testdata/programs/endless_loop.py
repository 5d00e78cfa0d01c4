import time
import torch
from torch.utils.data import DataLoader, Dataset
import fault

def spin():
    n = 0
    while True:
        n += 1

class Numbers(Dataset):
    def __len__(self):
        return 100000
    def __getitem__(self, i):
        if i == 5:
            spin()
        return torch.full((8,), i)

if __name__ == "__main__":
    loader = DataLoader(Numbers(), batch_size=1, num_workers=3, multiprocessing_context=fault.context())
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    time.sleep(0.5)
    fault.ready(batches._workers[5 % 3].pid)
    next(batches)
