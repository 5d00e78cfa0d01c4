"""A training script that is killed before its workers have begun. What a worker of a spawn context imports waits for the end of the script."""
import os
import signal
import sys
import time

if __name__ == "__mp_main__":
    open(os.path.join(sys.argv[2], str(os.getpid())), "w").close()
    while os.getppid() == int(os.environ["SCRIPT"]):
        time.sleep(0.01)

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __init__(self):
        self.shoal_dataset, self.n = "squares", 10

    def __len__(self):
        return self.n


def own(samples):
    return samples


if __name__ == "__main__":
    os.environ["SCRIPT"] = str(os.getpid())
    torch.multiprocessing.set_executable(sys.argv[1])
    batches = iter(DataLoader(Squares(), num_workers=2, collate_fn=own, multiprocessing_context="spawn"))
    while len(os.listdir(sys.argv[2])) < 2:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
