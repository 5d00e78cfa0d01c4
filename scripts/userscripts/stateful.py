"""torchdata's StatefulDataLoader, stopped in the middle of an epoch and resumed from a checkpoint by a new loader."""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset
from torchdata.stateful_dataloader import StatefulDataLoader

from journal import Journal, arguments

WORKERS = 2


def make_loader(args):
    paths = [os.path.join(args.data, name) for name in ("images.npy", "labels.npy")]
    if args.loader:
        import shoal
        train = shoal.Npy(paths)
    else:
        train = TensorDataset(*(torch.from_numpy(np.load(path)) for path in paths))
    return StatefulDataLoader(train, batch_size=32, shuffle=True, num_workers=WORKERS)


if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    journal = Journal(args)
    checkpoint = os.path.join(args.journal, "checkpoint.pt")

    def train_on(batches, most=None):
        for step, (images, labels) in enumerate(batches, 1):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images.float() / 255), labels)
            loss.backward()
            optimizer.step()
            if step == most:
                break
        return loss.item()

    for epoch in range(args.epochs):
        loader = make_loader(args)
        print(f"epoch {epoch}, first part: loss {train_on(journal.watch(loader), 3):.5f}")
        torch.save(loader.state_dict(), checkpoint)
        del loader
        loader = make_loader(args)
        loader.load_state_dict(torch.load(checkpoint, weights_only=False))
        print(f"epoch {epoch}, second part: loss {train_on(journal.watch(loader)):.5f}")
    os.remove(checkpoint)
    journal.close()
