# Two ranks of PyTorch beside one of Go's: they train in a process group of two, and share weights and metrics with the third.
import json
import os
import sys
from multiprocessing import current_process
from multiprocessing.connection import Client, Listener

import torch
import torch.distributed as dist
import torch.multiprocessing  # so that connections carry tensors

rank, trainers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]) - 1
tcp = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), None, False, wait_for_workers=False)
start = os.environ["TORCHELASTIC_RESTART_COUNT"]
# With the store of its own choice, PyTorch 2.15 finds the addresses that an earlier start has left there.
dist.init_process_group("gloo", store=dist.PrefixStore("gloo/" + start, tcp), rank=rank, world_size=trainers)
store = dist.PrefixStore("shoal/" + start, tcp)


def barrier(name, turn=0, members=trainers + 1):
    key = f"barrier/{name}/{turn}"
    if store.add(key, 1) == members:
        store.set(key + "/done", "1")
    store.wait([key + "/done"])


barrier("start")
grad = torch.full((3,), float(rank + 1))
dist.all_reduce(grad)
assert grad.tolist() == [3, 3, 3], grad
if rank == 0:
    weights = torch.arange(6.0)
    key = current_process().authkey
    with Listener(family="AF_UNIX", authkey=key) as listener:
        store.set("share/weights", json.dumps({"network": "unix", "address": listener.address, "authkey": key.hex()}))
        conn = listener.accept()
    conn.send(weights)
    assert conn.recv() == "mapped"
    weights += grad[0]
    conn.send("trained")
    assert conn.recv() == "changed" and weights[5] == 42, weights
else:
    at = json.loads(store.get("share/data"))
    current_process().authkey = bytes.fromhex(at["authkey"])
    with Client(at["address"], authkey=current_process().authkey) as conn:
        batch = conn.recv()
        batch *= 2
        conn.send("doubled")
store.set(f"gather/metrics/0/{rank}", json.dumps({"rank": rank, "loss": 0.5 * rank}))
barrier("end")
assert json.loads(store.get("gather/metrics/0/2"))["loss"] == 1
dist.destroy_process_group()
print(f"python {rank} is done", flush=True)
