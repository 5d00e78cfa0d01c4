"""The same loop by torch.distributed with gloo: ranks, then pairs of bytes and rounds."""

import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, size, path, pairs):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=size)
    for bytes_, rounds in zip(pairs[::2], pairs[1::2]):
        t = torch.zeros(bytes_ // 4)
        for _ in range(2 + rounds // 10):
            dist.all_reduce(t)
        dist.barrier()
        begin = time.perf_counter_ns()
        for _ in range(rounds):
            dist.all_reduce(t)
        mine = torch.tensor([(time.perf_counter_ns() - begin) / rounds])
        dist.all_reduce(mine, dist.ReduceOp.MAX)
        if rank == 0:
            print(int(mine.item()), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    size, path, pairs = int(sys.argv[1]), sys.argv[2], [int(a) for a in sys.argv[3:]]
    mp.spawn(work, (size, path, pairs), nprocs=size)
