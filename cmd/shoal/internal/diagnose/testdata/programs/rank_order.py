# One rank has one batch less.
import torch
import torch.distributed as dist
import fault

def rank(n):
    t = torch.ones(4)
    for batch in range(3 if n == 2 else 4):
        dist.all_reduce(t)
    dist.broadcast(t, 0)

if __name__ == "__main__":
    fault.run_ranks(rank, 3, culprit=2)
