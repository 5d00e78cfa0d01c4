"""torchrun --nproc_per_node 2 torchrun_shared.py: a DistributedSampler in each rank, and no context named."""
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from journal import Journal, arguments

if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    paths = [os.path.join(args.data, name) for name in ("images.npy", "labels.npy")]
    if args.loader:
        import shoal
        train = shoal.Npy(paths)
    else:
        train = TensorDataset(*(torch.from_numpy(np.load(path)) for path in paths))
    sampler = DistributedSampler(train, shuffle=True, seed=3)
    loader = DataLoader(train, batch_size=32, sampler=sampler, num_workers=2)
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(784, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    journal = Journal(args, rank)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for images, labels in journal.watch(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images.float() / 255), labels)
            loss.backward()
            optimizer.step()
        dist.all_reduce(loss.detach())
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.5f}")
    journal.close()
    dist.destroy_process_group()
