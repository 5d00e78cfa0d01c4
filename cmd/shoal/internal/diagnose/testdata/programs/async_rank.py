# The ranks start a collective and wait for it later, but one has not started it.
import time
import torch
import torch.distributed as dist
import fault

def rank(n):
    if n == 1:
        time.sleep(1000)
    work = dist.all_reduce(torch.ones(4), async_op=True)
    work.wait()

if __name__ == "__main__":
    fault.run_ranks(rank, 3, culprit=1)
