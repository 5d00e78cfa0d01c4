"""An IterableDataset of JSON lines in shards, which the workers share among themselves."""
import glob
import json
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from journal import Journal, arguments


class Lines(IterableDataset):
    def __init__(self, pattern):
        self.paths = sorted(glob.glob(pattern))
        self.shoal_dataset = "lines"

    def __iter__(self):
        info = get_worker_info()
        mine = self.paths if info is None else self.paths[info.id::info.num_workers]
        for path in mine:
            with open(path) as f:
                for line in f:
                    row = json.loads(line)
                    yield torch.tensor(row["x"]), torch.tensor(row["y"])


if __name__ == "__main__":
    args = arguments()
    if args.loader:
        torch.multiprocessing.set_executable(args.loader)  # line one
    torch.set_num_threads(1)
    torch.manual_seed(1)
    loader = DataLoader(Lines(os.path.join(args.data, "shards", "*.jsonl")), batch_size=32, num_workers=2,
                        multiprocessing_context="spawn" if args.loader else None)  # line two
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    journal = Journal(args)
    for epoch in range(args.epochs):
        for x, y in journal.watch(loader):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.5f}")
    journal.close()
