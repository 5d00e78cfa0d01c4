# Both ranks receive, and none sends.
import torch
import torch.distributed as dist
import fault

def rank(n):
    dist.recv(torch.ones(4), src=1 - n)

if __name__ == "__main__":
    fault.run_ranks(rank, 2, culprit=0)
