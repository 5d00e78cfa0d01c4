# The trainers beside the evaluator of main.go: ordinary data parallel training, and three functions that meet a rank of Go.
import json
import os
from multiprocessing import current_process
from multiprocessing.connection import Listener

import torch
import torch.distributed as dist
import torch.multiprocessing  # so that connections carry tensors

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port, start = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), os.environ["TORCHELASTIC_RESTART_COUNT"]
tcp = dist.TCPStore(host, port, None, False, wait_for_workers=False)
group = dist.PrefixStore("gloo/" + start, tcp)  # without it PyTorch 2.15 finds addresses of an earlier start
dist.init_process_group("gloo", store=group, rank=rank, world_size=world - 1)  # the rank of Go is no member
store = dist.PrefixStore("shoal/" + start, tcp)


def barrier(name, turn):
    key = f"barrier/{name}/{turn}"
    if store.add(key, 1) == world:
        store.set(key + "/done", "1")
    store.wait([key + "/done"])


def give(name, turn, value):
    store.set(f"gather/{name}/{turn}/{rank}", json.dumps(value))


def share(name, tensor):
    key = current_process().authkey
    listener = Listener(family="AF_UNIX", authkey=key)
    at = {"network": "unix", "address": listener.address, "authkey": key.hex()}
    store.set(f"share/{name}", json.dumps(at))
    conn = listener.accept()
    conn.send(tensor)
    return conn  # as long as it is open, this process and the tensor live


weights = torch.zeros(4)
if rank == 0:
    conn = share("weights", weights)
for epoch in range(3):
    grad = torch.full((4,), float(rank + 1))
    dist.all_reduce(grad)
    weights += grad
    give("metrics", epoch, {"loss": 1 / (epoch + rank + 1)})
    barrier("trained", epoch)
    barrier("evaluated", epoch)
dist.destroy_process_group()
