"""A loop of Hugging Face Accelerate: a prepared loader, skip_first_batches, and a loader that is dispatched from the first process."""
import os

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
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
    journal = Journal(args)
    for dispatch in False, True:
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=dispatch))
        model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        loader = DataLoader(train, batch_size=32, shuffle=True, num_workers=2)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for epoch in range(args.epochs):
            batches = accelerator.skip_first_batches(loader, 5) if epoch == 0 else loader  # as after a restart
            for images, labels in journal.watch(batches):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images.float() / 255), labels)
                accelerator.backward(loss)
                optimizer.step()
            print(f"dispatched {dispatch}, epoch {epoch}: loss {loss.item():.5f}")
        accelerator.free_memory()
    journal.close()
