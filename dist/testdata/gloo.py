"""Records what torch.distributed's gloo makes of the elements of two ranks, for each dtype and operation: writes gloo.json.

python gloo.py > gloo.json
"""

import json
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

DTYPES = {"bool": torch.bool, "uint8": torch.uint8, "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
          "float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64,
          "complex64": torch.complex64, "complex128": torch.complex128}
OPS = {"sum": dist.ReduceOp.SUM, "mean": dist.ReduceOp.AVG, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN, "prod": dist.ReduceOp.PRODUCT,
       "band": dist.ReduceOp.BAND, "bor": dist.ReduceOp.BOR, "bxor": dist.ReduceOp.BXOR}
# Of each rank, elements that are exact in every dtype.
ELEMENTS = [[0, 1, 0, 1, 5, 12, 3], [0, 0, 1, 1, 3, 10, 2]]


def numbers(t):
    if t.dtype == torch.bool:
        return t.int().tolist()
    return torch.view_as_real(t).tolist() if t.is_complex() else t.tolist()


def rank_main(rank, path, out):
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=2)
    rows = []
    for name, dtype in DTYPES.items():
        for op, kind in OPS.items():
            t = torch.tensor(ELEMENTS[rank]).to(dtype)
            try:
                dist.all_reduce(t, kind)
                rows.append({"dtype": name, "op": op, "got": numbers(t)})
            except (RuntimeError, ValueError) as e:
                rows.append({"dtype": name, "op": op, "error": str(e).splitlines()[0]})
    if rank == 0:
        with open(out, "w") as f:
            json.dump({"torch": torch.__version__, "rows": rows}, f)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "out")
        mp.spawn(rank_main, (os.path.join(d, "meet"), out), nprocs=2)
        with open(out) as f:
            got = json.load(f)
    rows = ",\n".join(json.dumps(r) for r in got["rows"])
    sys.stdout.write('{"torch": %s, "elements": %s, "rows": [\n%s\n]}\n' % (json.dumps(got["torch"]), json.dumps(ELEMENTS), rows))
