import time
import torch
import torch.distributed as dist
import fault

def rank(n):
    if n == 1:
        time.sleep(1000)
    dist.all_reduce(torch.ones(4))

if __name__ == "__main__":
    fault.run_ranks(rank, 3, culprit=1)
