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


def sweep():
    """Returns the rows of all other operations, by name."""
    N = 512
    n = N * N
    x = torch.randn(N, N)
    y = torch.randn(N, N)
    p = torch.rand(N, N).clamp(0.01, 1)
    x64, y64 = (x.double(), y.double())
    h, h2 = (x.half(), y.half())
    b, b2 = (x.bfloat16(), y.bfloat16())
    i64 = torch.randint(1, 500, (N, N))
    j64 = torch.randint(1, 500, (N, N))
    i32, j32 = (i64.int(), j64.int())
    u8 = torch.randint(1, 100, (N, N)).byte()
    v8 = torch.randint(1, 100, (N, N)).byte()
    m = x > y
    m2 = y > p
    fi = torch.randint(0, N, (n,))
    fj = torch.randint(0, N, (n,))
    r = torch.randint(0, N, (N,))
    c = r[:, None]
    k8 = torch.randint(0, N, (8,))
    xt = x.t()
    perm = torch.randperm(N)
    vec = torch.randn(N)
    w = x.clone()
    ten = torch.randn(10)
    ten2 = torch.randn(10)
    img = torch.randn(16, 16, 32, 32)
    q3 = torch.randn(16, 128, 64)
    k3 = torch.randn(16, 64, 128)
    flat = x.view(n)
    big = torch.randint(0, 1 << 40, (N, N))
    return {
        "cos": lambda: x.cos(),
        "sin": lambda: x.sin(),
        "erf": lambda: x.erf(),
        "expm1": lambda: x.expm1(),
        "log1p": lambda: p.log1p(),
        "trunc": lambda: x.trunc(),
        "ceil": lambda: x.ceil(),
        "sign": lambda: x.sign(),
        "isfinite": lambda: x.isfinite(),
        "isnan": lambda: x.isnan(),
        "isinf": lambda: x.isinf(),
        "not": lambda: ~m,
        "pow3": lambda: x ** 3,
        "pow_half": lambda: p ** 0.5,
        "pow_frac": lambda: p ** 2.5,
        "pow_inverse": lambda: p ** (-1),
        "atan2": lambda: torch.atan2(x, y),
        "hypot": lambda: torch.hypot(x, y),
        "logaddexp": lambda: torch.logaddexp(x, y),
        "floor_divide": lambda: x // y,
        "remainder": lambda: x % y,
        "power": lambda: p ** y,
        "minimum": lambda: torch.minimum(x, y),
        "and": lambda: m & m2,
        "xor": lambda: m ^ m2,
        "ne": lambda: x != y,
        "le": lambda: x <= y,
        "sub": lambda: x - y,
        "add_f64": lambda: x64 + y64,
        "exp_f64": lambda: x64.exp(),
        "log_f64": lambda: x64.abs().log(),
        "tanh_f64": lambda: x64.tanh(),
        "sqrt_f64": lambda: x64.sqrt(),
        "sum_f64": lambda: x64.sum(),
        "sum0_f64": lambda: x64.sum(0),
        "sum1_f64": lambda: x64.sum(1),
        "add_f16": lambda: h + h2,
        "mul_f16": lambda: h * h2,
        "exp_f16": lambda: h.exp(),
        "sum_f16": lambda: h.sum(),
        "sum1_f16": lambda: h.sum(1),
        "gt_f16": lambda: h > h2,
        "add_bf16": lambda: b + b2,
        "mul_bf16": lambda: b * b2,
        "exp_bf16": lambda: b.exp(),
        "sum_bf16": lambda: b.sum(),
        "sum1_bf16": lambda: b.sum(1),
        "relu_bf16": lambda: b.relu(),
        "mul_i64": lambda: i64 * j64,
        "floordiv_i64": lambda: i64 // j64,
        "rem_i64": lambda: i64 % j64,
        "div_i64": lambda: i64 / j64,
        "max_i64": lambda: torch.maximum(i64, j64),
        "sum_i64": lambda: i64.sum(),
        "sum1_i64": lambda: i64.sum(1),
        "amax_i64": lambda: i64.amax(1),
        "add_i32": lambda: i32 + j32,
        "mul_i32": lambda: i32 * j32,
        "add_u8": lambda: u8 + v8,
        "max_u8": lambda: torch.maximum(u8, v8),
        "sum_u8": lambda: u8.sum(),
        "eq_u8": lambda: u8 == v8,
        "add_u8_f32": lambda: u8 + x,
        "add_i64_f32": lambda: i64 + x,
        "all": lambda: m.all(),
        "all_1": lambda: m.all(1),
        "amin": lambda: x.amin(),
        "amin_0": lambda: x.amin(0),
        "prod": lambda: x.prod(),
        "prod_1": lambda: x.prod(1),
        "mean": lambda: x.mean(),
        "mean_1": lambda: x.mean(1),
        "std": lambda: x.std(),
        "std_1": lambda: x.std(1),
        "max_dim0": lambda: x.max(0),
        "max_dim1": lambda: x.max(1),
        "min_dim1": lambda: x.min(1),
        "cumsum_0": lambda: x.cumsum(0),
        "cumsum_i64": lambda: i64.cumsum(1),
        "argmin_1": lambda: x.argmin(1),
        "sum_t": lambda: xt.sum(1),
        "sum_mid": lambda: img.sum(1),
        "sum_last2": lambda: img.sum((2, 3)),
        "mean_f16": lambda: h.mean(),
        "index_two": lambda: x[fi, fj],
        "index_rows": lambda: x[r],
        "index_grid": lambda: x[c, r],
        "index_few": lambda: x[k8, k8],
        "index_select_i64": lambda: i64.index_select(0, r),
        "index_select_u8": lambda: u8.index_select(0, r),
        "index_select_1_f64": lambda: x64.index_select(1, r),
        "scatter_0": lambda: w.scatter_(0, i64, x),
        "scatter_1": lambda: w.scatter_(1, i64, x),
        "scatter_add_0": lambda: w.scatter_add_(0, i64, x),
        "scatter_add_1": lambda: w.scatter_add_(1, i64, x),
        "index_add_0": lambda: w.index_add_(0, r, x),
        "index_add_1": lambda: w.index_add_(1, r, x),
        "index_copy_0": lambda: w.index_copy_(0, perm, x),
        "topk10": lambda: x.topk(10, 1),
        "topk10_flat": lambda: flat.topk(10),
        "argsort_0": lambda: x.argsort(0),
        "argsort_1": lambda: x.argsort(1, descending=True),
        "sort_flat": lambda: flat.sort(),
        "sort_i64": lambda: i64.sort(1),
        "sort_big": lambda: big.sort(1),
        "nonzero_f32": lambda: x.nonzero(),
        "flip_1": lambda: x.flip(1),
        "flip_0": lambda: x.flip(0),
        "where_bc": lambda: torch.where(m, x, vec),
        "where_i64": lambda: torch.where(m, i64, j64),
        "masked_select_i64": lambda: i64.masked_select(m),
        "arange": lambda: torch.arange(0, n, 1, dtype=torch.float32),
        "arange_i64": lambda: torch.arange(n),
        "linspace": lambda: torch.linspace(0, 1, n),
        "eye": lambda: torch.eye(N),
        "full": lambda: torch.full((N, N), 3.0),
        "zeros": lambda: torch.zeros(N, N),
        "rand": lambda: torch.rand(N, N),
        "randn": lambda: torch.randn(N, N),
        "randint": lambda: torch.randint(0, 1000, (N, N)),
        "randperm": lambda: torch.randperm(n),
        "bernoulli": lambda: w.bernoulli_(0.5),
        "uniform": lambda: w.uniform_(-1, 1),
        "normal": lambda: w.normal_(),
        "stack": lambda: torch.stack((x, y)),
        "stack_2": lambda: torch.stack((x, y), 2),
        "clone": lambda: x.clone(),
        "copy_t": lambda: w.copy_(xt),
        "copy_f64": lambda: w.copy_(x64),
        "t_clone_f64": lambda: x64.t().contiguous(),
        "t_clone_u8": lambda: u8.t().contiguous(),
        "t_clone_f16": lambda: h.t().contiguous(),
        "expand_contig": lambda: vec.unsqueeze(1).expand(N, N).contiguous(),
        "slice_step": lambda: x[:, ::2].contiguous(),
        "add_t": lambda: x + xt,
        "add_tt": lambda: xt + xt,
        "add_slice": lambda: x[:, ::2] + y[:, ::2],
        "exp_t": lambda: xt.exp(),
        "exp_slice": lambda: x[:, ::2].exp(),
        "mm": lambda: x @ y,
        "mm_t": lambda: x @ y.t(),
        "mm_f64": lambda: x64 @ y64,
        "mm_bf16": lambda: b @ b2,
        "mm_f16": lambda: h @ h2,
        "mm_i64": lambda: i64 @ j64,
        "mv": lambda: x @ vec,
        "vm": lambda: vec @ x,
        "mv_t": lambda: xt @ vec,
        "dot": lambda: flat @ flat,
        "bmm": lambda: torch.bmm(q3, k3),
        "mm_small": lambda: x[:8, :8] @ y[:8, :8],
        "mm_thin": lambda: x[:4] @ y,
        "add_scalar_": lambda: w.add_(1),
        "mul_scalar_": lambda: w.mul_(1),
        "axpy_": lambda: w.add_(x, alpha=0.1),
        "fill_": lambda: w.fill_(1),
        "zero_": lambda: w.zero_(),
        "equal": lambda: torch.equal(x, x),
        "allclose": lambda: torch.allclose(x, x, 1e-05, 1e-08),
        "add_": lambda: w.add_(x),
        "clamp_": lambda: w.clamp_(-1, 1),
        "exp_": lambda: w.fill_(0).exp_(),
        "add10": lambda: ten + ten2,
        "sum10": lambda: ten.sum(),
        "exp10": lambda: ten.exp(),
        "amax10": lambda: ten.amax(0),
        "cat10": lambda: torch.cat((ten, ten2)),
        "to10": lambda: ten.double(),
        "argmax10": lambda: ten.argmax(0),
        "sort10": lambda: ten.sort(),
        "item": lambda: ten[3].item(),
        "view10": lambda: ten.view(2, 5),
        "std10": lambda: ten.std(),
        "where10": lambda: torch.where(m[0, :10], ten, ten2),
        "index10": lambda: ten.index_select(0, k8[:1].remainder(10)),
        "lt": lambda: x < y,
        "ge": lambda: x >= y,
        "or": lambda: m | m2,
        "keep": lambda: x.mean(1, keepdim=True),
        "ones": lambda: torch.ones(n),
        "add_mm": lambda: w.zero_().addmm_(x, y),
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
    """Yields the processor time of each call, after as many that do not count."""
    for _ in range(rounds):
        work()
    for _ in range(rounds):
        begin = time.process_time_ns()
        work()
        yield time.process_time_ns() - begin


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    torch.set_num_threads(1)
    works = {(name, "one thread"): work for name, work in (operations() | sweep()).items()}
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
