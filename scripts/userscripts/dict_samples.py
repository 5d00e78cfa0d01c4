"""Samples that are dicts, with strings, numbers and tuples in them; and a worker_init_fn, as the documentation has one."""
import os
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from journal import Journal, arguments


class Records(Dataset):
    def __init__(self, root):
        self._images = np.load(os.path.join(root, "images.npy"))
        self._labels = np.load(os.path.join(root, "labels.npy"))
        self.shoal_dataset = "records"
        self.root = root

    def __len__(self):
        return len(self._labels)

    def __getitem__(self, i):
        rows = np.flatnonzero(self._images[i].mean(1) > 120)
        return {
            "image": torch.from_numpy(self._images[i]).float(),
            "label": int(self._labels[i]),
            "weight": 1.0 + i % 3,
            "meta": {"name": f"digit {i}", "rows": (len(rows), 28)},
        }


def seed_worker(worker_id):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


if __name__ == "__main__":
    args = arguments()
    if args.loader:
        torch.multiprocessing.set_executable(args.loader)  # line one
    torch.set_num_threads(1)
    torch.manual_seed(1)
    loader = DataLoader(Records(args.data), batch_size=32, shuffle=True, num_workers=2, worker_init_fn=seed_worker,
                        generator=torch.Generator().manual_seed(7), multiprocessing_context="spawn" if args.loader else None)  # line two
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    journal = Journal(args)
    for epoch in range(args.epochs):
        names = set()
        for batch in journal.watch(loader):
            optimizer.zero_grad()
            losses = nn.functional.cross_entropy(model(batch["image"]), batch["label"], reduction="none")
            (losses * batch["weight"]).mean().backward()
            optimizer.step()
            names.update(batch["meta"]["name"])
        print(f"epoch {epoch}: loss {losses.mean().item():.5f}, {len(names)} names, rows {batch['meta']['rows'][0].sum()}")
    journal.close()
