"""Trains on digits that Go loads: python3 train.py PROGRAM [directory of MNIST]"""
import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, n, root=None):
        self.shoal_dataset = "digits"  # the name in the Go program
        self.n, self.root = n, root

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        raise RuntimeError('Go loads the samples: the DataLoader needs num_workers of 1 or more and multiprocessing_context="spawn"')


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.path.isfile(sys.argv[1]) or not os.access(sys.argv[1], os.X_OK):
        sys.exit("train.py PROGRAM [directory of MNIST]; go build -o loader ./examples/torchloader makes PROGRAM")
    torch.multiprocessing.set_executable(sys.argv[1])  # line one
    root = sys.argv[2] if len(sys.argv) > 2 else None
    loader = DataLoader(Digits(60_000 if root else 6_000, root), batch_size=64, shuffle=True, num_workers=2,
                        multiprocessing_context="spawn")  # line two
    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 12 * 12, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.5)
    right = 0
    for images, labels in loader:
        optimizer.zero_grad()
        logits = net(images)
        nn.functional.cross_entropy(logits, labels).backward()
        optimizer.step()
        right += (logits.argmax(1) == labels).sum().item()
    print(f"{right / len(loader.dataset):.3f} of the samples were right while training")
