"""A plain training loop over images in .npy files, and a validation after each epoch."""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from journal import Journal, arguments


class Digits(Dataset):
    def __init__(self, root, first, last):
        self.images = np.load(os.path.join(root, "images.npy"), mmap_mode="r")[first:last]
        self.labels = np.load(os.path.join(root, "labels.npy"))[first:last]
        self.shoal_dataset = "digits"
        self.shoal_args = {"root": root, "first": first, "last": last}

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i].astype(np.float32) / 255)
        return image.unsqueeze(0), int(self.labels[i])


def run(args):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    n = len(np.load(os.path.join(args.data, "labels.npy")))
    workers = dict(num_workers=2, multiprocessing_context="spawn" if args.loader else None)  # line two
    train = DataLoader(Digits(args.data, 0, n * 3 // 4), batch_size=32, shuffle=True, drop_last=True, **workers)
    valid = DataLoader(Digits(args.data, n * 3 // 4, n), batch_size=50, **workers)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    journal = Journal(args)
    for epoch in range(args.epochs):
        for images, labels in journal.watch(train):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        right = 0
        with torch.no_grad():
            for images, labels in journal.watch(valid):
                right += (model(images).argmax(1) == labels).sum().item()
        print(f"epoch {epoch}: loss {loss.item():.5f}, {right} of {len(valid.dataset)} right")
    journal.close()


if __name__ == "__main__":
    args = arguments()
    if args.loader:
        torch.multiprocessing.set_executable(args.loader)  # line one
    run(args)
