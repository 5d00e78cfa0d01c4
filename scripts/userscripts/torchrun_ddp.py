"""Distributed data parallel: torchrun --nproc_per_node 2 torchrun_ddp.py, with a DistributedSampler."""
import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from journal import Journal, arguments
from plain_loop import Digits

if __name__ == "__main__":
    args = arguments()
    if args.loader:
        torch.multiprocessing.set_executable(args.loader)  # line one
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    dataset = Digits(args.data, 0, len(np.load(os.path.join(args.data, "labels.npy"))))
    sampler = DistributedSampler(dataset, shuffle=True, seed=3)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=2,
                        multiprocessing_context="spawn" if args.loader else None)  # line two
    model = DistributedDataParallel(nn.Sequential(nn.Flatten(), nn.Linear(784, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    journal = Journal(args, rank)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for images, labels in journal.watch(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        dist.all_reduce(loss.detach())
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.5f}")
    journal.close()
    dist.destroy_process_group()
