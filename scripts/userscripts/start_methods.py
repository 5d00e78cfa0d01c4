"""PyTorch's DataLoader with spawn, with forkserver and without a context, over arrays of numpy."""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from journal import Journal, arguments

if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    paths = [os.path.join(args.data, name) for name in ("images.npy", "labels.npy")]
    if args.loader:
        import shoal
        train = shoal.Npy(paths)
    else:
        train = TensorDataset(*(torch.from_numpy(np.load(path)) for path in paths))
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    journal = Journal(args)
    for method in None, "spawn", "forkserver":
        loader = DataLoader(train, batch_size=32, shuffle=True, num_workers=2, persistent_workers=True,
                            multiprocessing_context=method)
        for epoch in range(args.epochs):
            for images, labels in journal.watch(loader):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images.float() / 255), labels)
                loss.backward()
                optimizer.step()
            print(f"{method}, epoch {epoch}: loss {loss.item():.5f}")
        del loader
    journal.close()
