"""Hogwild by torch.multiprocessing.spawn: two processes train one shared model, each with a DataLoader of its own half."""
import os

import numpy as np
import torch
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, Subset

from journal import Journal, arguments
from plain_loop import Digits


def train(rank, model, ranks, args):
    torch.set_num_threads(1)
    torch.manual_seed(1 + rank)
    if args.loader:
        mp.set_executable(args.loader)  # line one, in the process that has the loader
    dataset = Digits(args.data, 0, len(np.load(os.path.join(args.data, "labels.npy"))))
    loader = DataLoader(Subset(dataset, range(rank, len(dataset), ranks)), batch_size=32, shuffle=True, num_workers=1,
                        multiprocessing_context="spawn" if args.loader else None)  # line two
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    journal = Journal(args, rank)
    for _ in range(args.epochs):
        for images, labels in journal.watch(loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
    journal.close()


if __name__ == "__main__":
    args = arguments()
    if args.loader:
        mp.set_executable(args.loader)  # and here, where a script has it that validates in its first process
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    before = model[1].weight.detach().clone()
    model.share_memory()
    mp.spawn(train, args=(model, 2, args), nprocs=2)
    print(f"trained: {bool((model[1].weight != before).any())}")
