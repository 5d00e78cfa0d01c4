"""A random_split whose training part has Go workers; a Python data set of the script's own around the other one validates."""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, random_split

from journal import Journal, arguments
from plain_loop import Digits


class Dimmed(Dataset):
    """Images as they would be at dusk: Python, whoever loads the others."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, i):
        image, label = self.dataset[i]
        return image * 0.5, label


if __name__ == "__main__":
    args = arguments()
    if args.loader:
        torch.multiprocessing.set_executable(args.loader)  # line one
    torch.set_num_threads(1)
    torch.manual_seed(1)
    n = len(np.load(os.path.join(args.data, "labels.npy")))
    whole = ConcatDataset([Digits(args.data, 0, n // 2), Digits(args.data, n // 2, n)])
    train, valid = random_split(whole, [0.8, 0.2], generator=torch.Generator().manual_seed(42))
    loader = DataLoader(train, batch_size=32, shuffle=True, num_workers=2,
                        multiprocessing_context="spawn" if args.loader else None)  # line two
    python = DataLoader(Dimmed(valid), batch_size=50, num_workers=1, persistent_workers=True, multiprocessing_context="spawn")
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    journal, validation = Journal(args), Journal(args, "validation")
    for epoch in range(args.epochs):
        for images, labels in journal.watch(loader):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for images, labels in validation.watch(python):
                right += (model(images).argmax(1) == labels).sum().item()
        print(f"epoch {epoch}: {right} of {len(valid)} right at dusk")
    journal.close()
    validation.close()
