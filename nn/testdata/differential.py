"""Records what PyTorch makes of random inputs, values and gradients, for differential_test.go:

    python differential.py differential.jsonl.gz differential_layers.jsonl.gz

The second file has the layers of later. The first line of each is {"torch": version}. The others are {"op", "in", "grad", "args", "out", "dy", "din"} or, where PyTorch refuses,
{..., "error"}. A tensor is "dtype[shape] element element ...". "grad" lists the inputs that need a gradient, "din" their
gradients for the gradient "dy" of the first output. Inputs are random in shape (0-dim, empty, broadcast), in what they hold (numbers,
ties, NaN, infinities, zeros) and, in Go, in how they lie in memory. The same version of PyTorch writes the same file.
"""

import gzip
import io
import json
import math
import random
import sys
import warnings

import numpy
import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
torch.set_num_threads(1)
R = random.Random(20261122)
inf, nan = math.inf, math.nan
f32, f64, i64, bool_ = torch.float32, torch.float64, torch.int64, torch.bool


def element(x, dtype):
    if dtype == bool_:
        return str(int(x))
    if not dtype.is_floating_point:
        return str(x)
    kind = {torch.float16: numpy.float16, f64: numpy.float64}.get(dtype, numpy.float32)
    if dtype == f64 and math.isfinite(x):
        return f"{x:.13g}".removesuffix(".0")
    return str(kind(x)).removesuffix(".0")


def write(t):
    t = t.detach()
    shape = ",".join(map(str, t.shape))
    return " ".join([f"{str(t.dtype).removeprefix('torch.')}[{shape}]"] + [element(x, t.dtype) for x in t.flatten().tolist()])


lines = []
counts = {}


def case(op, f, inputs, *args, grad=None):
    """Writes what f(*inputs) is, and the gradients of the inputs that need one: by default of all that are floats."""
    ins = [t.detach().clone() for t in inputs]
    if grad is None:
        grad = [i for i, t in enumerate(ins) if t.dtype.is_floating_point]
    line = {"op": op, "in": [write(t) for t in ins], "grad": grad, "args": args}
    counts[op] = counts.get(op, 0) + 1
    lines.append(line)
    for i in grad:
        ins[i].requires_grad_(True)
    try:
        out = f(*ins)
    except (RuntimeError, IndexError, ValueError, TypeError) as e:
        line["error"] = str(e).split("\n")[0][:60]
        return
    out = [out] if isinstance(out, torch.Tensor) else list(out)
    line["out"] = [write(t) for t in out]
    if grad and out[0].requires_grad:
        dy = torch.tensor([R.choice([1, 1, -1, 0.5, 2, -0.25]) for _ in range(out[0].numel())], dtype=out[0].dtype).reshape(out[0].shape)
        out[0].backward(dy)
        line["dy"] = write(dy)
        line["din"] = [write(torch.zeros_like(ins[i]) if ins[i].grad is None else ins[i].grad) for i in grad]


# What inputs hold.

def number():
    return R.randint(-24, 24) / 8


MOODS = {
    "numbers": lambda: number(),
    "ties": lambda: R.choice([-1, 0, 0, 1, 2]),
    "special": lambda: R.choice([nan, inf, -inf, 0, -0.0, 1, -1, number(), number(), number()]),
    "zeros": lambda: R.choice([0, 0, 0, number()]),
    "large": lambda: R.choice([1e4, -1e4, 88, -88, 104, 1e-6, -1e-6, number()]),
    "equal": None,
}


def mood():
    return R.choice(["numbers"] * 4 + ["ties", "special", "special", "zeros", "large", "equal"])


def tensor(shape, dtype=f32, of=None):
    of = of or mood()
    make = MOODS[of]
    if make is None:
        same = number()
        make = lambda: same
    n = math.prod(shape)
    v = [make() for _ in range(n)]
    if not dtype.is_floating_point:
        v = [int(x) if math.isfinite(x) else 0 for x in v]
        if dtype == torch.uint8:
            v = [abs(x) % 256 for x in v]
        if dtype == torch.int8:
            v = [x if abs(x) < 128 else 1 for x in v]
        if dtype == torch.int16:
            v = [x for x in v]
        if dtype == bool_:
            v = [bool(x) for x in v]
    return torch.tensor(v, dtype=dtype).reshape(shape)


def fl():
    return f64 if R.random() < 0.3 else f32


def size(low=0):
    return R.choice([s for s in (0, 1, 1, 2, 2, 3, 3, 4, 5) if s >= low])


def shape(dims=None, low=0):
    dims = R.choice([0, 1, 1, 2, 2, 2, 3, 4]) if dims is None else dims
    s = [size(max(low, 1)) for _ in range(dims)]
    if low == 0 and dims and R.random() < 0.12:
        s[R.randrange(dims)] = 0
    return s


def broadcast(s):
    """A shape that broadcasts with s."""
    s = [1 if R.random() < 0.25 else n for n in s]
    return s[R.choice([0] * 3 + list(range(len(s) + 1))):]


def dim(s):
    """A dimension of a shape; of a scalar 0 or -1."""
    n = max(1, len(s))
    return R.randrange(-n, n)


def some(s):
    """Some dimensions, in some order, or none, which are all."""
    k = R.choice([0, 0, 1, 1, 2, 3])
    d = list(range(len(s)))
    R.shuffle(d)
    return [x if R.random() < 0.6 else x - len(s) for x in d[:k]]


REAL = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, i64, torch.float16, torch.bfloat16, f32, f64]

N = 70

# Element by element.

UNARY = {"Neg": torch.neg, "Exp": torch.exp, "Log": torch.log, "Sqrt": torch.sqrt, "Abs": torch.abs, "Tanh": torch.tanh,
         "Sigmoid": torch.sigmoid, "ReLU": F.relu, "Log1p": torch.log1p, "Expm1": torch.expm1, "Rsqrt": torch.rsqrt,
         "Reciprocal": torch.reciprocal, "Sin": torch.sin, "Cos": torch.cos, "Erf": torch.erf, "GELU": F.gelu, "SiLU": F.silu}
for op, f in UNARY.items():
    for _ in range(N):
        case(op, f, [tensor(shape(), fl())])
    case(op, f, [torch.tensor([nan, inf, -inf, 0.0, -0.0, 1e30, -1e30, 1e-30, -1e-30, 88.8, -104.0, 0.5])])
    case(op, f, [torch.tensor([nan, inf, -inf, 0.0, -0.0, 1e300, -1e300, 1e-300, 709.9, -746.0, 0.5], dtype=f64)])
for op, f in {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Power": torch.pow, "Maximum": torch.maximum,
              "Minimum": torch.minimum}.items():
    for _ in range(2 * N):
        s, d = shape(), fl()
        a, b = (s, broadcast(s)) if R.random() < 0.7 else (broadcast(s), s)
        case(op, f, [tensor(a, d), tensor(b, d)])
    v = [nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.5]
    case(op, f, [torch.tensor(v).reshape(-1, 1), torch.tensor(v)])
    case(op, f, [torch.tensor(v, dtype=f64), torch.tensor(v, dtype=f64).reshape(-1, 1)])
    case(op, f, [torch.ones(2), torch.ones(3)])
for _ in range(2 * N):
    p = R.choice([0, 1, 2, 3, -1, 0.5, -0.5, 2.5, 1.5])
    case("Pow", lambda x: torch.pow(x, p), [tensor(shape(), fl())], p)
    lo, hi = sorted([number(), number()])
    case("Clamp", lambda x: torch.clamp(x, lo, hi), [tensor(shape(), fl())], lo, hi)
    c = number()
    case("AddScalar", lambda x: x + c, [tensor(shape(), fl())], c)
    case("MulScalar", lambda x: x * c, [tensor(shape(), fl())], c)
    slope = R.choice([0.01, 0.1, 0.5, 0, -0.5])
    case("LeakyReLU", lambda x: F.leaky_relu(x, slope), [tensor(shape(), fl())], slope)
    s = shape()
    case("Where", torch.where, [tensor(broadcast(s), bool_), tensor(s), tensor(broadcast(s))], grad=[1, 2])
    case("MaskedFill", lambda x, m: x.masked_fill(m, c), [tensor(s, fl()), tensor(broadcast(s), bool_)], c)
    case("MaskedSelect", torch.masked_select, [tensor(s), tensor(broadcast(s), bool_)])
for lo, hi in [(-1, 1), (0, 0), (-0.5, 6)]:
    case("Clamp", lambda x: torch.clamp(x, lo, hi), [torch.tensor([-1.0, 1, 0, -0.5, 6, nan, inf, -inf])], lo, hi)
for op, f in {"Eq": torch.eq, "Ne": torch.ne, "Lt": torch.lt, "Le": torch.le, "Gt": torch.gt, "Ge": torch.ge, "And": torch.logical_and,
              "Or": torch.logical_or, "Xor": torch.logical_xor, "Remainder": torch.remainder, "FloorDivide": torch.floor_divide}.items():
    for _ in range(N // 2):
        s, d = shape(), R.choice([f32, f64, torch.int32, i64, torch.uint8])
        if not d.is_floating_point and op in ("Remainder", "FloorDivide"):
            b = tensor(broadcast(s), d, "numbers")
            b[b == 0] = 3
        else:
            b = tensor(broadcast(s), d)
        case(op, f, [tensor(s, d), b], grad=[])
for op, f in {"Sign": torch.sign, "Floor": torch.floor, "Ceil": torch.ceil, "Round": torch.round, "Trunc": torch.trunc, "IsNaN": torch.isnan,
              "IsInf": torch.isinf, "IsFinite": torch.isfinite, "Not": torch.logical_not}.items():
    for _ in range(N // 2):
        case(op, f, [tensor(shape(), R.choice([f32, f64, f32, i64]))], grad=[])

# Reductions, orders.

REDUCE = {"Sum": torch.sum, "Mean": torch.mean, "Amax": torch.amax, "Amin": torch.amin, "Variance": torch.var, "Std": torch.std,
          "Prod": torch.prod, "All": torch.all, "Any": torch.any}


def reduce(op, f, t, dims, keep, grad=None):
    def g(x):
        if op == "Prod" and dims:
            for d in sorted((d % max(1, len(x.shape)) for d in dims), reverse=True):
                x = f(x, dim=d, keepdim=keep)
            return x
        if dims:
            return f(x, dim=dims, keepdim=keep)
        y = f(x)
        return y.reshape([1] * x.dim()) if keep else y
    case(op, g, [t], dims, keep, grad=grad)


for op, f in REDUCE.items():
    for _ in range(2 * N):
        s = shape()
        logical = op in ("All", "Any")
        dims = some(s) if s else R.choice([[], [0], [-1]])
        # What PyTorch makes of infinities there depends on the order in which it takes the dimensions, and whether there are any.
        plain = op == "Prod" and len(dims) > 1 or op in ("Variance", "Std") and math.prod(s) == 1
        t = tensor(s, R.choice(REAL) if logical else fl(), "zeros" if plain else None)
        reduce(op, f, t, dims, R.random() < 0.3, grad=[] if logical else None)
    for s in [(0,), (1,), (2, 0), (0, 3), (1, 1), ()]:
        for dims in [[], [-1]]:
            reduce(op, f, torch.ones(s), dims, False, grad=[] if op in ("All", "Any") else None)
for d in REAL:
    for op in ("All", "Any"):
        for v in ([0, 1], [0, 0], [1, 1], [], [2, 3]):
            reduce(op, REDUCE[op], torch.tensor(v).to(d), [], False, grad=[])
            reduce(op, REDUCE[op], torch.tensor(v).to(d), [0], True, grad=[])
for _ in range(2 * N):
    s = shape()
    k = dim(s)
    case("Max", lambda x: torch.max(x, dim=k), [tensor(s, fl())], k)
    case("Min", lambda x: torch.min(x, dim=k), [tensor(s, fl())], k)
    down = R.random() < 0.5
    case("Sort", lambda x: torch.sort(x, dim=k, descending=down, stable=True), [tensor(s, fl())], k, down)
    case("CumSum", lambda x: torch.cumsum(x, dim=k), [tensor(s, fl())], k)
    case("Argmax", lambda x: torch.argmax(x, dim=k), [tensor(s, fl())], k, grad=[])
    case("Argmin", lambda x: torch.argmin(x, dim=k), [tensor(s, fl())], k, grad=[])
    n = math.prod(s)
    distinct = torch.tensor(R.sample(range(max(100, n)), n), dtype=f32).reshape(s)
    top = R.randint(0, s[k] if s else 1)
    case("TopK", lambda x: torch.topk(x, top, dim=k), [distinct], top, k)
for op, f in {"Max": torch.max, "Min": torch.min}.items():
    for k in (0, -1, 1):
        case(op, lambda x: f(x, dim=k), [torch.tensor(2.5)], k)
for k in (0, -1, 1):
    case("Sort", lambda x: torch.sort(x, dim=k, stable=True), [torch.tensor(2.5)], k, False)

# Shapes.

for _ in range(N):
    s = shape()
    t = tensor(s, fl(), "numbers")
    to = s[:]
    R.shuffle(to)
    if to and math.prod(s) and R.random() < 0.5:
        to[R.randrange(len(to))] = -1
    if R.random() < 0.3:
        to = [-1] if math.prod(s) else [0]
    case("Reshape", lambda x: x.reshape(to), [t], to)
    order = list(range(len(s)))
    R.shuffle(order)
    order = [d if R.random() < 0.7 else d - len(s) for d in order]
    case("Permute", lambda x: x.permute(order), [t], order)
    a, b = dim(s), dim(s)
    case("Transpose", lambda x: x.transpose(a, b), [t], a, b)
    which = some(s) if len(s) else []
    case("Flip", lambda x: torch.flip(x, which), [t], which)
    case("Squeeze", lambda x: x.squeeze(tuple(which)) if which else x.squeeze(), [t], which)
    at = R.randrange(-len(s) - 1, len(s) + 1)
    case("Unsqueeze", lambda x: x.unsqueeze(at), [t], at)
    wide = [R.choice([2, 3]) for _ in range(R.choice([0, 0, 1]))] + [R.choice([n, -1, n]) if n != 1 else R.choice([1, 3, 0]) for n in s]
    if wide[:1] == [-1] and len(wide) > len(s):
        wide[0] = 2
    case("Expand", lambda x: x.expand(wide), [t], wide)
    k = dim(s)
    n = s[k] if s else 1
    i = R.randint(-n - 1, n)
    case("Select", lambda x: x.select(k, i), [t], k, i)
    start = R.randint(0, n)
    length = R.randint(0, n - start) if R.random() < 0.95 else n + 1
    case("Narrow", lambda x: x.narrow(k, start, length), [t], k, start, length)
    if s:
        lo, hi, step = R.randint(-n - 1, n + 1), R.randint(-n - 1, n + 2), R.choice([1, 1, 2, 3])

        def sliced(x):
            index = [slice(None)] * x.dim()
            index[k] = slice(lo, hi, step)
            return x[tuple(index)]

        case("Slice", sliced, [t], k, lo, hi, step)
        part = R.randint(1, 4)
        case("Split", lambda x: x.split(part, dim=k), [t], part, k)
        case("Chunk", lambda x: x.chunk(part, dim=k), [t], part, k, grad=[])
    others = [tensor([size() if d == k % max(1, len(s)) else m for d, m in enumerate(s)], t.dtype, "numbers") for _ in range(R.randint(0, 2))]
    if R.random() < 0.25:
        others.insert(R.randint(0, len(others)), torch.zeros(0, dtype=t.dtype))
    case("Cat", lambda *x: torch.cat(x, dim=k), [t] + others, k)
    case("Stack", lambda *x: torch.stack(x, dim=at), [t, tensor(s, t.dtype, "numbers")], at)
    if len(s) > 0:
        case("Flatten", lambda x: x.flatten(1), [t] if len(s) > 1 else [t.reshape(-1, 1)])
case("Cat", lambda *x: torch.cat(x, dim=0), [torch.zeros(0), torch.zeros(0)], 0)
case("Cat", lambda *x: torch.cat(x, dim=1), [torch.zeros(0), torch.ones(2, 3)], 1)
case("Cat", lambda *x: torch.cat(x, dim=-1), [torch.ones(2, 3), torch.zeros(0), torch.ones(2, 1)], -1)
case("Cat", lambda *x: torch.cat(x, dim=1), [torch.zeros(0, 2), torch.ones(2, 3)], 1)
for s, n, k in [((0,), 3, 0), ((2, 0), 2, 1), ((0, 2), 5, 0), ((3,), 0, 0)]:
    case("Chunk", lambda x: x.chunk(n, dim=k), [torch.ones(s)], n, k, grad=[])

# Indices.


def indices(s, n, bad=0.05):
    """Numbers of a dimension of size n, seldom one that it does not have."""
    return torch.tensor([R.randrange(-n, n) if n and R.random() > bad / 4 else (n if R.random() < bad else 0) for _ in range(math.prod(s))], dtype=i64).reshape(s)


def positive(s, n):
    return torch.tensor([R.randrange(n) if n else 0 for _ in range(math.prod(s))], dtype=i64).reshape(s)


for _ in range(N):
    s = shape(R.choice([1, 2, 3]), 1)
    t = tensor(s, fl())
    k = dim(s)
    small = [R.randint(0, n) if d != k % len(s) else size() for d, n in enumerate(s)]
    idx = positive(small, s[k])
    case("Gather", lambda x, i: torch.gather(x, k, i), [t, idx], k)
    src = tensor(small, t.dtype)
    case("ScatterAdd", lambda x, i, y: torch.scatter_add(x, k, i, y), [t, idx, src], k)
    case("IndexSelect", lambda x, i: torch.index_select(x, k, i), [t, positive([size()], s[k])], k)
    wide = broadcast([2, 3])
    case("Index", lambda x, i: x[i], [t, indices(shape(R.choice([0, 1, 2])), s[0])])
    if len(s) > 1:
        case("Index", lambda x, i, j: x[i, j], [t, indices([2, 3], s[0]), indices(wide, s[1])])
    rows, width = size(1), size()
    w = tensor([rows, width], fl())
    pad = R.choice([[], [], [R.randrange(rows)]])
    case("Embedding", lambda w, i: F.embedding(i, w, padding_idx=pad[0] if pad else None), [w, positive(shape(R.choice([0, 1, 2])), rows)], *pad)

# Products.

for _ in range(N):
    n, k, m, d = size(), size(), size(), fl()
    batch = shape(R.choice([0, 0, 1, 2]))
    for a, b in [([n, k], [k, m]), ([k], [k, m]), ([n, k], [k]), ([k], [k]), (batch + [n, k], broadcast(batch) + [k, m])]:
        case("MatMul", torch.matmul, [tensor(a, d, R.choice(["numbers"] * 3 + ["special"])), tensor(b, d, "numbers")])
    case("BMM", torch.bmm, [tensor([2, n, k], d, "numbers"), tensor([2, k, m], d, "numbers")])
    x, w = tensor(batch + [k], d, R.choice(["numbers"] * 3 + ["special"])), tensor([m, k], d, "numbers")
    case("Linear", F.linear, [x, w, tensor([m], d, "numbers")])
    case("Linear", F.linear, [x, w])
case("MatMul", torch.matmul, [torch.ones(2, 3), torch.ones(2, 3)])
case("Linear", F.linear, [torch.ones(4, 0), torch.ones(3, 0), torch.tensor([1.0, 2, 3])])
case("Linear", F.linear, [torch.ones(0, 2), torch.ones(3, 2), torch.tensor([1.0, 2, 3])])

# Layers.

for _ in range(N):
    s, d = shape(R.choice([1, 2, 2, 3])), fl()
    case("Softmax", lambda x: F.softmax(x, -1), [tensor(s, d)])
    case("LogSoftmax", lambda x: F.log_softmax(x, -1), [tensor(s, d)])
    k = R.randint(1, len(s))
    tail = s[-k:]
    # Of equal elements only a rounding error would be left, which differs.
    x = tensor(s, d if math.prod(tail) > 1 else f64, R.choice(["numbers", "numbers", "ties", "special"]))
    w, b = tensor(tail, x.dtype, "numbers"), tensor(tail, x.dtype, "numbers")
    case("LayerNorm", lambda x, w, b: F.layer_norm(x, tail, w, b), [x, w, b])
    n, c, h, v = size(), size(1), size(1), size(1)
    x = tensor([n, c, h, v], d, R.choice(["numbers", "numbers", "ties", "special"]))
    w, b = tensor([c], d, "numbers"), tensor([c], d, "numbers")
    if n:  # statistics of nothing are refused in package autograd
        case("BatchNorm2d", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [x, w, b])
        case("BatchNorm2d", lambda x: F.batch_norm(x, None, None, None, None, True), [x])
    mean, var = tensor([c], d, "numbers"), tensor([c], d, "numbers").abs() + 0.5
    case("BatchNorm2dBy", lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, False), [x, w, b, mean, var], grad=[0, 1, 2])
    h, v = R.randint(1, 7), R.randint(1, 7)
    x = tensor([R.choice([0, 1, 2, 2]), R.randint(1, 2), h, v], d, R.choice(["numbers", "numbers", "ties", "special"]))
    window = [R.randint(1, 3), R.randint(1, 3)]
    stride = [R.randint(1, 3), R.randint(1, 3)]
    padding = [R.randint(0, window[0] // 2), R.randint(0, window[1] // 2)]
    case("MaxPool2d", lambda x: F.max_pool2d(x, window, stride, padding), [x], window, stride, padding)
    case("AvgPool2d", lambda x: F.avg_pool2d(x, window, stride, padding), [x], window, stride, padding)
    w = tensor([R.randint(1, 3), x.shape[1]] + window, d, "numbers")
    x = tensor(list(x.shape), d, R.choice(["numbers", "numbers", "zeros", "special"]))
    padding = [R.randint(0, 2), R.randint(0, 2)]
    case("Conv2d", lambda x, w, b: F.conv2d(x, w, b, stride, padding), [x, w, tensor([w.shape[0]], d, "numbers")], stride, padding)
    case("Conv2d", lambda x, w: F.conv2d(x, w, None, stride, padding), [x, w], stride, padding)

# Losses.

REDUCTIONS = ["mean", "sum", "none"]
for _ in range(2 * N):
    r = R.choice(REDUCTIONS)
    s, d = shape(), fl()
    x, y = tensor(s, d), tensor(s, d)
    case("MSELoss", lambda x, y: F.mse_loss(x, y, reduction=r), [x, y], r)
    beta = R.choice([0, 0.5, 1, 2])
    case("SmoothL1Loss", lambda x, y: F.smooth_l1_loss(x, y, reduction=r, beta=beta), [x, y], r, beta)
    target = tensor(s, d, R.choice(["ties", "numbers"])).abs().clamp(0, 1)
    case("BCEWithLogitsLoss", lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction=r), [x, target], r)
    weight = tensor(broadcast(s), d, "numbers").abs()
    case("WeightedBCEWithLogitsLoss", lambda x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w, reduction=r), [x, target, weight], r, grad=[0, 1])
    n, c = size(), size(1)
    x = tensor([n, c], d, R.choice(["numbers", "numbers", "large", "special"]))
    t = torch.tensor([R.choice([-100] + list(range(c)) * 3) for _ in range(n)], dtype=i64)
    w = tensor([c], d, R.choice(["numbers", "zeros"])).abs()
    smooth = R.choice([0, 0, 0.1, 0.5, 1])
    case("NLLLoss", lambda x, t: F.nll_loss(x, t, reduction=r), [x, t], r)
    case("NLLLoss", lambda x, t, w: F.nll_loss(x, t, w, reduction=r), [x, t, w], r, grad=[0])
    case("CrossEntropy", lambda x, t: F.cross_entropy(x, t, reduction=r, label_smoothing=smooth), [x, t], r, smooth)
    case("CrossEntropy", lambda x, t, w: F.cross_entropy(x, t, w, reduction=r, label_smoothing=smooth), [x, t, w], r, smooth, grad=[0])
for smooth in (0, 0.3, 1):
    for r in REDUCTIONS:
        case("CrossEntropy", lambda x, t, w: F.cross_entropy(x, t, w, reduction=r, label_smoothing=smooth),
             [torch.tensor([[1.0, 2, 3], [0, 1, 0]]), torch.tensor([0, 2]), torch.zeros(3)], r, smooth, grad=[0])
        case("CrossEntropy", lambda x, t: F.cross_entropy(x, t, reduction=r, label_smoothing=smooth),
             [torch.tensor([[1.0, 2, 3], [0, 1, 0]]), torch.tensor([-100, -100])], r, smooth)
v = [nan, inf, -inf, 0.0, 1.0]
for r in REDUCTIONS:
    for beta in (0, 1):
        case("SmoothL1Loss", lambda x, y: F.smooth_l1_loss(x, y, reduction=r, beta=beta),
             [torch.tensor(v).repeat(5), torch.tensor(v).repeat_interleave(5)], r, beta)

# Creation.

for _ in range(N):
    lo, hi, n = R.randint(-50, 50), R.randint(-50, 50), R.choice([0, 1, 2, R.randint(0, 9), R.randint(0, 40)])
    for d in [torch.uint8] * (lo >= 0 and hi >= 0) + [torch.int8, torch.int32, i64, f32, f64]:
        case("Linspace", lambda: torch.linspace(lo, hi, n, dtype=d), [], str(d).removeprefix("torch."), lo, hi, n)

# Optimizers: some steps on one parameter. The inputs are the parameter and the gradient of each step.

for _ in range(3 * N):
    s, d, steps = shape(), fl(), R.randint(1, 4)
    p = tensor(s, d, R.choice(["numbers", "numbers", "zeros"]))
    grads = [tensor(s, d, R.choice(["numbers", "numbers", "zeros", "ties"])) for _ in range(steps)]
    if R.random() < 0.2 and grads[0].numel():
        grads[0].view(-1)[R.randrange(grads[0].numel())] = nan
    decay = R.choice([0, 0, 0.1])
    lr = R.choice([0.001, 0.01, 0.5])
    name = R.choice(["SGD", "Adam", "AdamW", "RMSprop"])
    if name == "SGD":
        momentum = R.choice([0, 0.5, 0.9])
        opts = {"lr": lr, "momentum": momentum, "weight_decay": decay, "nesterov": momentum > 0 and R.random() < 0.3}
        if not opts["nesterov"]:
            opts["dampening"] = R.choice([0, 0, 0.3])
    elif name == "RMSprop":
        opts = {"lr": lr, "alpha": R.choice([0.99, 0.5]), "eps": R.choice([1e-8, 1e-3]), "weight_decay": decay, "momentum": R.choice([0, 0.9]),
                "centered": R.random() < 0.3}
    else:
        opts = {"lr": lr, "betas": R.choice([[0.9, 0.999], [0.5, 0.9]]), "eps": R.choice([1e-8, 1e-3]), "weight_decay": decay}

    def stepped(p, *grads):
        q = torch.nn.Parameter(p.clone())
        o = getattr(torch.optim, name)([q], foreach=False, **opts)
        for g in grads:
            q.grad = g.clone()
            o.step()
        return q.detach()

    case(name, stepped, [p] + grads, opts, grad=[])


def save(path):
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=9, mtime=0) as f:
        head = {"torch": torch.__version__, "cases": len(lines)}
        for line in [head] + lines:
            f.write((json.dumps(line, separators=(",", ":")) + "\n").encode())
    with open(path, "wb") as f:
        f.write(raw.getvalue())
    print(len(lines), "cases,", len(raw.getvalue()), "bytes;", "refused:", sum("error" in x for x in lines))
    lines.clear()


save(sys.argv[1])

# Layers of later. They begin with a seed of their own, so that what is above may grow.

R.seed(20261123)
N = 40
ACTIVATIONS = {
    "GELUTanh": (lambda x: F.gelu(x, approximate="tanh"), []), "ELU": (F.elu, [1, 0.5, 2]), "SELU": (F.selu, []), "CELU": (F.celu, [1, 0.5, 2]),
    "Softplus": (F.softplus, [1, 2, 0.5]), "LogSigmoid": (F.logsigmoid, []), "Softsign": (F.softsign, []), "Mish": (F.mish, []),
    "ReLU6": (F.relu6, []), "Hardsigmoid": (F.hardsigmoid, []), "Hardswish": (F.hardswish, []), "Softshrink": (F.softshrink, [0.5, 0, 1]),
    "Hardshrink": (F.hardshrink, [0.5, 0, 1]), "Tanhshrink": (F.tanhshrink, []),
}
# What gradient NaN gets there depends in PyTorch on whether a whole register of the processor held it.
# Of GELUTanh it overflows.
UNSURE = ["ELU", "SELU", "CELU", "Hardswish", "Softshrink", "Hardshrink", "Hardtanh", "ReLU6"]


def pointwise(op, f, x, *args):
    case(op, f, [x], *args, grad=[] if op in UNSURE and x.isnan().any() or op == "GELUTanh" and (x.abs() > 1e9).any() else None)


for op, (f, choices) in ACTIVATIONS.items():
    for c in choices or [None]:
        g = f if c is None else lambda x: f(x, c)
        args = [] if c is None else [c]
        for _ in range(N):
            # Of float64 PyTorch's constant for Hardsigmoid has the digits of a float32.
            pointwise(op, g, tensor(shape(), f32 if op == "Hardsigmoid" else fl()), *args)
        pointwise(op, g, torch.tensor([nan, inf, -inf, 0.0, -0.0, 1e30, -1e30, 1e-30, 88.8, -104.0, 0.5, -0.5, 1, -1, 3, -3, 6, 20, 21, 10.1]), *args)
        pointwise(op, g, torch.tensor([inf, -inf, 0.0, -0.0, 1e30, -1e30, 1e-30, 88.8, -104.0, 0.5, -0.5, 1, -1, 3, -3, 6, 20, 21, 10.1]), *args)
        if op != "Hardsigmoid":
            pointwise(op, g, torch.tensor([inf, -inf, 0.0, -0.0, 1e300, -1e300, 1e-300, 709.9, -746.0, 0.5, 3, -3, 6], dtype=f64), *args)
for _ in range(N):
    lo, hi = sorted(R.sample([-2, -1, -0.5, 0, 0.5, 1, 6], 2))
    pointwise("Hardtanh", lambda x: F.hardtanh(x, lo, hi), tensor(shape(), fl()), lo, hi)
    c, other = number(), number()
    case("Threshold", lambda x: F.threshold(x, c, other), [tensor(shape(), fl())], c, other)
    s, d = shape(R.choice([2, 3, 4])), fl()
    case("PReLU", F.prelu, [tensor(s, d), tensor([R.choice([1, s[1], s[1], 7])], d, "numbers")])
    k = dim(s)
    case("GLU", lambda x: F.glu(x, k), [tensor(s, d)], k)

for _ in range(2 * N):
    s, d = shape(R.choice([1, 2, 3])), fl()
    tail = s[-R.randint(1, len(s)):]
    x = tensor(s, d if math.prod(tail) > 2 else f64, R.choice(["numbers", "numbers", "ties", "special"]))
    case("LayerNormOver", lambda x: F.layer_norm(x, tail), [x], tail)
    groups = R.choice([1, 1, 2, 3])
    s = [size(1), groups * R.randint(1, 3)] + [size(1) for _ in range(R.choice([0, 1, 2]))]
    if math.prod(s[1:]) <= 2 * groups:  # of two elements the gradient is almost 0
        d = f64
    x = tensor(s, d, R.choice(["numbers", "numbers", "ties", "special"]))
    w, b = tensor([s[1]], d, "numbers"), tensor([s[1]], d, "numbers")
    case("GroupNorm", lambda x, w, b: F.group_norm(x, groups, w, b), [x, w, b], groups)
    case("GroupNorm", lambda x: F.group_norm(x, groups), [x], groups)
    case("GroupNorm", lambda x: F.group_norm(x, s[1] + 1), [x], s[1] + 1)
    s, d = [size(1), size(1)] + [size(1) for _ in range(R.choice([0, 1, 3]))], fl()
    x = tensor(s, d, R.choice(["numbers", "numbers", "ties", "special"]))
    w, b = tensor([s[1]], d, "numbers"), tensor([s[1]], d, "numbers")
    case("BatchNorm", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [x, w, b])
    mean, var = tensor([s[1]], d, "numbers"), tensor([s[1]], d, "numbers").abs() + 0.5
    case("BatchNormBy", lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, False), [x, w, b, mean, var], grad=[0, 1, 2])

for _ in range(2 * N):
    d = fl()
    groups, window, stride, dilation = R.choice([1, 2, 3]), [R.randint(1, 3), R.randint(1, 3)], [R.randint(1, 2), R.randint(1, 2)], [R.randint(1, 3), R.randint(1, 2)]
    padding = [R.randint(0, 2), R.randint(0, 2)]
    x = tensor([R.choice([0, 1, 2]), groups * R.randint(1, 2), R.randint(1, 5), R.randint(1, 5)], d, R.choice(["numbers", "numbers", "zeros", "special"]))
    w = tensor([groups * R.randint(1, 2), x.shape[1] // groups] + window, d, "numbers")
    b = tensor([w.shape[0]], d, "numbers")
    case("Conv2d", lambda x, w, b: F.conv2d(x, w, b, stride, padding, dilation, groups), [x, w, b], stride, padding, dilation, groups)
    case("Conv2d", lambda x, w: F.conv2d(x, w, None, stride, padding, dilation, groups + 1), [x, w], stride, padding, dilation, groups + 1)
    x = tensor([R.choice([1, 2]), 1, R.randint(1, 4), R.randint(1, 4)], d, "numbers")
    pads = [R.randint(0, 4) for _ in range(4)]
    for mode in ["constant", "reflect", "replicate", "circular"]:
        case("Pad2d", lambda x: F.pad(x, pads[2:] + pads[:2], mode), [x], pads, mode)
    h, v = R.randint(1, 7), R.randint(1, 7)
    x = tensor([1, R.randint(1, 2), h, v], d, R.choice(["numbers", "numbers", "ties", "special"]))
    window, stride = [R.randint(1, 3), R.randint(1, 3)], [R.randint(1, 4), R.randint(1, 4)]
    padding = [R.randint(0, window[0] // 2), R.randint(0, window[1] // 2)]
    case("MaxPool2d", lambda x: F.max_pool2d(x, window, stride, padding, ceil_mode=True), [x], window, stride, padding)
    inside = R.random() < 0.5
    ceil = R.random() < 0.8
    case("AvgPool2d", lambda x: F.avg_pool2d(x, window, stride, padding, ceil_mode=ceil, count_include_pad=not inside), [x], window, stride, padding, ceil, inside)

for _ in range(4 * N):
    r, d = R.choice(REDUCTIONS), fl()
    smooth = R.choice([0, 0, 0.1, 1])
    s = R.choice([[size(1)], [size(), size(1)], [size(1), size(1), size(1)], [2, 3, size(1), size(1)]])
    at = 0 if len(s) == 1 else 1
    x = tensor(s, d, R.choice(["numbers", "numbers", "large"]))
    w = tensor([s[at]], d, "numbers").abs()
    t = tensor(s[:at] + s[at + 1:], i64, "zeros").abs() % s[at]
    if t.dim() and t.numel() and R.random() < 0.4:
        t.view(-1)[R.randrange(t.numel())] = -100
    p = tensor(s, d, "numbers").abs()
    case("NLLLoss", lambda x, t, w: F.nll_loss(x, t, w, reduction=r), [x, t, w], r, grad=[0])
    case("CrossEntropy", lambda x, t: F.cross_entropy(x, t, reduction=r, label_smoothing=smooth), [x, t], r, smooth)
    case("CrossEntropy", lambda x, t, w: F.cross_entropy(x, t, w, reduction=r, label_smoothing=smooth), [x, t, w], r, smooth, grad=[0])
    case("CrossEntropy", lambda x, t: F.cross_entropy(x, t, reduction=r, label_smoothing=smooth), [x, p], r, smooth, grad=[0])
    case("CrossEntropy", lambda x, t, w: F.cross_entropy(x, t, w, reduction=r, label_smoothing=smooth), [x, p, w], r, smooth, grad=[0])

save(sys.argv[2])
