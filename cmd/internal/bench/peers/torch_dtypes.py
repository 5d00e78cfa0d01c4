"""The rows of shoal bench dtypes, done with torch in one thread.

Says hello in one line of JSON, then does what each line of stdin asks for and answers in a line: ns of processor time for the call in the middle of so many.
"""

import functools
import json
import os
import statistics
import sys

import torch_ops  # it sets the number of threads before torch is loaded

import torch

DTYPES = {str(dtype).split(".")[1]: dtype for dtype in (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64)}
ROWS = torch.randint(0, 4, (4,))
SIDE = 512


class Layout:
    """Two operands that lie alike, one whose elements change, and a mask for a row."""

    def __init__(self, operand, dtype):
        self.x, self.y = operand(dtype), operand(dtype)
        self.own = operand(dtype)
        if self.own.stride(0) == 0:
            self.own = dense(dtype)
        self.mask = torch.rand(SIDE) > 0.5


def dense(dtype):
    return (torch.rand(SIDE, SIDE) * 4 + 1).to(dtype)


@functools.lru_cache(maxsize=1)
def layouts(dtype):
    """The operands of a dtype: those of the dtype before are let go of."""
    return [Layout(operand, DTYPES[dtype]) for operand in (
        dense, lambda dt: dense(dt).T, lambda dt: torch.cat((dense(dt), dense(dt)), 1)[:, ::2],
        lambda dt: dense(dt).view(16, SIDE // 16, SIDE).transpose(0, 1), lambda dt: dense(dt)[:1].expand(SIDE, SIDE))]


def one(f):
    return lambda p: f(p.x)


def two(f):
    return lambda p: f(p.x, p.y)


OPERATIONS = {
    "add": two(torch.add), "sub": two(torch.sub), "mul": two(torch.mul), "div": two(torch.div), "maximum": two(torch.maximum),
    "minimum": two(torch.minimum), "remainder": two(torch.remainder), "floor_divide": two(torch.floor_divide), "eq": two(torch.eq),
    "lt": two(torch.lt), "and": two(torch.logical_and), "or": two(torch.logical_or), "power": two(torch.pow), "atan2": two(torch.atan2),
    "hypot": two(torch.hypot), "logaddexp": two(torch.logaddexp),
    "not": one(torch.logical_not), "neg": one(torch.neg), "abs": one(torch.abs), "relu": one(torch.relu), "exp": one(torch.exp),
    "log": one(torch.log), "sqrt": one(torch.sqrt), "tanh": one(torch.tanh), "sigmoid": one(torch.sigmoid), "erf": one(torch.erf),
    "cube": one(lambda x: x.pow(3)), "clamp": one(lambda x: x.clamp(1, 2)),
    "sum": one(torch.sum), "sum_0": one(lambda x: x.sum(0)), "sum_1": one(lambda x: x.sum(-1)), "mean_1": one(lambda x: x.mean(-1)),
    "std": one(torch.std), "amax_0": one(lambda x: x.amax(0)), "amax_1": one(lambda x: x.amax(-1)), "argmax_1": one(lambda x: x.argmax(-1)),
    "max_0": one(lambda x: x.max(0)), "all_1": one(lambda x: x.all(-1)), "any_0": one(lambda x: x.any(0)),
    "cumsum_1": one(lambda x: x.cumsum(-1)), "sort_1": one(lambda x: x.sort(-1)), "topk": one(lambda x: x.topk(3, -1)),
    "nonzero": one(torch.nonzero), "flip": one(lambda x: x.flip(-1)), "index": one(lambda x: x[ROWS]),
    "index_select": one(lambda x: x.index_select(-1, ROWS)), "matmul": one(lambda x: x.matmul(x.transpose(-1, -2))),
    "contiguous": one(lambda x: x.transpose(0, 1).contiguous()), "to_float32": one(lambda x: x.to(torch.float32)),
    "to_float16": one(lambda x: x.to(torch.float16)), "to_int64": one(lambda x: x.to(torch.int64)),
    "cat": two(lambda x, y: torch.cat((x, y))), "stack": two(lambda x, y: torch.stack((x, y))),
    "where": lambda p: torch.where(p.mask, p.x, p.y), "equal": one(lambda x: torch.equal(x, x)),
    "copy_": lambda p: p.own.copy_(p.x), "clamp_": lambda p: p.own.clamp_(1, 2), "masked_fill_": lambda p: p.own.masked_fill_(p.mask, 1),
    "index_add_": lambda p: p.own.index_add_(0, ROWS, p.x[:4]), "uniform_": lambda p: p.own.uniform_(0, 1),
    "normal_": lambda p: p.own.normal_(0, 1),
}


def work(name):
    """Returns what does an operation, named DTYPE_OPERATION, with all layouts; an error says that torch has it not."""
    dtype, _, operation = name.partition("_")
    all_of, do = layouts(dtype), OPERATIONS[operation]

    def run():
        for p in all_of:
            do(p)

    return run


def variants():
    """Yields the names of what torch has."""
    for dtype in DTYPES:
        for operation in OPERATIONS:
            name = dtype + "_" + operation
            try:
                work(name)()
            except (RuntimeError, TypeError, NotImplementedError):
                continue
            yield name


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    torch.set_num_threads(1)
    print(json.dumps({"Name": "torch " + torch.__version__, "Detail": "Python %s, one thread" % sys.version.split()[0],
                      "Variants": {name: ["one thread"] for name in variants()}}), file=out, flush=True)
    for line in sys.stdin:
        r = json.loads(line)
        try:
            answer = {"Value": max(statistics.median(torch_ops.calls(work(r["op"]), r["rounds"])), 1)}
        except Exception as e:
            answer = {"Error": f"{r['op']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
