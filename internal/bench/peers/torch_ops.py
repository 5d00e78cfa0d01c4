"""The rows of shoal bench ops, done with torch in one thread.

Says hello in one line of JSON, then does what each line of stdin asks for and answers in a line: ns of processor time for the call in the middle of so many, or for one in the mean.
"""

import json
import os
import statistics
import sys
import time

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import torch
from torch import nn
from torch.nn import functional as F

import torch_layers
import torch_train


def operations():
    x, y, row, col = torch.randn(512, 512), torch.randn(512, 512), torch.randn(512), torch.randn(512, 1)
    short, short_row, short_col = torch.randn(32768, 8), torch.randn(8), torch.randn(32768, 1)
    images, channels = torch.randn(16, 16, 32, 32), torch.randn(16, 1, 1)
    positive, mask, byte = x.abs(), x > y, torch.randint(0, 256, (512, 512)).to(torch.uint8)
    whole, half, picks = x.to(torch.int64), x.half(), torch.randint(0, 512, (512,))
    places = torch.randint(0, 512, (512, 512))
    transposed = y.t()
    return {
        "add": lambda: x + y,
        "add_number": lambda: x + 0,
        "mul_row": lambda: x * row,
        "mul_col": lambda: x * col,
        "add_short_row": lambda: short + short_row,
        "add_short_col": lambda: short + short_col,
        "add_channels": lambda: images + channels,
        "add_transposed": lambda: x + transposed,
        "div": lambda: x / y,
        "maximum": lambda: torch.maximum(x, y),
        "gt": lambda: x > y,
        "gt_number": lambda: x > 0,
        "eq_int64": lambda: whole == whole,
        "add_int64": lambda: whole + whole,
        "where": lambda: torch.where(mask, x, y),
        "masked_fill": lambda: x.masked_fill(mask, 0),
        "clamp": lambda: x.clamp(-1, 1),
        "neg": lambda: -x,
        "abs": lambda: x.abs(),
        "relu": lambda: x.relu(),
        "sqrt": lambda: positive.sqrt(),
        "rsqrt": lambda: positive.rsqrt(),
        "reciprocal": lambda: x.reciprocal(),
        "floor": lambda: x.floor(),
        "round": lambda: x.round(),
        "exp": lambda: x.exp(),
        "log": lambda: positive.log(),
        "tanh": lambda: x.tanh(),
        "sigmoid": lambda: x.sigmoid(),
        "square": lambda: x.pow(2),
        "sum": lambda: x.sum(),
        "sum_0": lambda: x.sum(0),
        "sum_1": lambda: x.sum(1),
        "sum_short": lambda: short.sum(1),
        "mean_channels": lambda: images.mean((0, 2, 3)),
        "var_0": lambda: x.var(0),
        "var_1": lambda: x.var(1),
        "amax": lambda: x.amax(),
        "amax_0": lambda: x.amax(0),
        "amax_1": lambda: x.amax(1),
        "argmax_0": lambda: x.argmax(0),
        "argmax_1": lambda: x.argmax(1),
        "argmax_short": lambda: short.argmax(1),
        "any_1": lambda: mask.any(1),
        "cumsum": lambda: x.cumsum(1),
        "cat_0": lambda: torch.cat([x, y], 0),
        "cat_1": lambda: torch.cat([x, y], 1),
        "transpose": lambda: x.t().contiguous(),
        "channels_last": lambda: images.permute(0, 2, 3, 1).contiguous(),
        "to_float64": lambda: x.double(),
        "to_int64": lambda: x.long(),
        "to_float16": lambda: x.half(),
        "to_bfloat16": lambda: x.bfloat16(),
        "byte_to_float32": lambda: byte.float(),
        "int64_to_float32": lambda: whole.float(),
        "float16_to_float32": lambda: half.float(),
        "bool_to_float32": lambda: mask.float(),
        "index_select_0": lambda: x.index_select(0, picks),
        "index_select_1": lambda: x.index_select(1, picks),
        "gather_0": lambda: x.gather(0, places),
        "gather_1": lambda: x.gather(1, places),
        "masked_select": lambda: x.masked_select(mask),
        "nonzero": lambda: mask.nonzero(),
        "sort": lambda: x.sort(1),
    }


def passes():
    """Yields the name of each pass, its parameters, what it does, and the shape of what it gets."""
    yield "softmax", [], lambda x: x.softmax(-1), (512, 512)
    yield "log_softmax", [], lambda x: x.log_softmax(-1), (512, 512)
    norm = nn.LayerNorm(512)
    yield "layer_norm", norm.parameters(), norm, (512, 512)
    classes = torch.randint(0, 512, (512,))
    yield "cross_entropy", [], lambda x: F.cross_entropy(x, classes), (512, 512)
    yield "attention", [], lambda x: F.scaled_dot_product_attention(x, x, x), (8, 4, 128, 64)
    block = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0)
    yield "transformer_block", block.parameters(), block, (128, 8, 256)


def trainings():
    """Returns what takes steps, by name and way."""
    perceptron = nn.Sequential(nn.Flatten(), nn.Linear(28 * 28, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                               nn.Linear(512, 10), nn.LogSoftmax(-1))
    every = {("mlp_step", "contiguous"): torch_train.Trainer(perceptron, torch.contiguous_format)}
    for name, layout in torch_train.FORMATS.items():
        every["cnn_step", name] = torch_train.Trainer(torch_train.Net().to(memory_format=layout), layout)
    return every


def calls(work, rounds):
    """Yields the processor time of each call."""
    for _ in range(rounds):
        begin = time.process_time_ns()
        work()
        yield time.process_time_ns() - begin


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    torch.set_num_threads(1)
    works = {(name, "one thread"): work for name, work in operations().items()}
    works.update({(name, "one thread"): work for name, work in torch_layers.works(passes()).items()})
    works.update({key: lambda t=t: t.train(1) for key, t in trainings().items()})
    variants = {}
    for name, variant in works:
        variants.setdefault(name, []).append(variant)
    print(json.dumps({"Name": "torch " + torch.__version__, "Detail": "Python %s, one thread" % sys.version.split()[0],
                      "Variants": variants}), file=out, flush=True)
    for line in sys.stdin:
        r = json.loads(line)
        try:
            work = works[r["op"], r["variant"]]
            value = statistics.mean if r["args"] else statistics.median
            answer = {"Value": max(value(calls(work, r["rounds"])), 1)}
        except Exception as e:
            answer = {"Error": f"{r['op']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
