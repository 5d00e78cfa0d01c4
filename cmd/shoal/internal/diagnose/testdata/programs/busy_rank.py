# One rank computes for ever, while the others wait in a collective.
import torch
import torch.distributed as dist
import fault

def rank(n):
    for batch in range(200):
        dist.all_reduce(torch.ones(4))
    if n == 1:
        fault.spin()
    dist.all_reduce(torch.ones(4))

if __name__ == "__main__":
    fault.run_ranks(rank, 3, culprit=1, wait=13)
