"""Compares samples of data hosts with those of the same files here: python service.py HOST HOST PID OPTIONS. It kills the first host in the middle."""
import json
import os
import signal
import sys

import torch
from torch.utils.data import DataLoader

from go import Go

if __name__ == "__main__":
    torch.multiprocessing.set_executable("./loader")                                       # line one
    far = Go("service", hosts=sys.argv[1:3], key="key", patience=20, **json.loads(sys.argv[4]))
    here = Go("npy", paths=["x.npy", "y.npy"])
    assert len(far) == len(here) == 4000, (len(far), len(here))

    def loader(ds):
        return DataLoader(ds, batch_size=10, shuffle=True, num_workers=2, multiprocessing_context="spawn",
                          generator=torch.Generator().manual_seed(5))                      # line two

    seen = []
    for n, (a, b) in enumerate(zip(loader(far), loader(here), strict=True)):
        if n == 20:
            os.kill(int(sys.argv[3]), signal.SIGKILL)
        assert len(a) == len(b) and all(x.dtype == y.dtype and torch.equal(x, y) for x, y in zip(a, b)), (n, a, b)
        seen += a[1].flatten().tolist()
    assert sorted(seen) == list(range(4000)), seen
    print("the same")
