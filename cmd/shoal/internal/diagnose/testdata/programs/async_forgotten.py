# Two ranks start a collective and never wait for it. The third one does not start it.
import threading
import torch
import torch.distributed as dist
import fault

def rank(n):
    if n != 1:
        kept = dist.all_reduce(torch.ones(4), async_op=True)
    threading.Event().wait()

if __name__ == "__main__":
    fault.run_ranks(rank, 3, culprit=1)
