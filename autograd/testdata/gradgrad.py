"""Records derivatives and derivatives of derivatives from PyTorch, for gradgrad_test.go:

    python gradgrad.py gradgrad.jsonl.gz

The first line is {"torch": version, "cases": n}. The others are {"op", "args", "in", "grad", "dy", "din", "ddin", "ddy", "dd"}:
"din" are the derivatives that autograd.grad gives for the inputs that "grad" lists, from "dy", that of the output; with
"ddin", those of "din", they become one number, and "dd" are its derivatives for the inputs, and "ddy" that for dy. A
tensor is "dtype[shape] element element ...", and null where the number does not depend on the input. The same version of
PyTorch writes the same file.
"""

import gzip
import io
import json
import math
import pathlib
import random
import sys
import warnings

import torch
import torch.nn.functional as F

warnings.simplefilter("ignore")
torch.set_num_threads(1)
R = random.Random(20261123)
f64 = torch.float64
lines = []


def write(t):
    if t is None:
        return None
    shape = ",".join(map(str, t.shape))
    if t.dtype.is_floating_point:
        t = t + torch.zeros(t.shape, dtype=t.dtype)  # some zeros have no storage
    return " ".join([f"{str(t.dtype).removeprefix('torch.')}[{shape}]"] + [f"{x:.13g}" for x in t.detach().flatten().tolist()])


def case(op, f, inputs, *args, grad=None):
    ins = [t.detach().clone() for t in inputs]
    grad = [i for i, t in enumerate(ins) if t.dtype.is_floating_point] if grad is None else grad
    xs = [ins[i].requires_grad_(True) for i in grad]
    y = f(*ins)
    dy = numbers(y.shape).requires_grad_(True)
    din = torch.autograd.grad(y, xs, dy, create_graph=True, allow_unused=True)
    ddin = [None if d is None else numbers(d.shape) for d in din]
    total = sum((d * w).sum() for d, w in zip(din, ddin) if d is not None)
    *dd, ddy = torch.autograd.grad(total, xs + [dy], allow_unused=True)
    lines.append({"op": op, "args": args, "in": [write(t) for t in ins], "grad": grad, "dy": write(dy), "din": [write(t) for t in din],
                  "ddin": [write(t) for t in ddin], "dd": [write(t) for t in dd], "ddy": write(ddy)})


def numbers(shape, low=-3.0):
    n = math.prod(shape)
    steps = int((3 - low) * 8)
    return torch.tensor([low + R.randrange(steps) / 8 + 1 / 16 for _ in range(n)], dtype=f64).reshape(tuple(shape))


def positive(shape):
    return numbers(shape, 0.25)


def shape(dims=None):
    return [R.choice([1, 2, 2, 3, 4]) for _ in range(R.choice([0, 1, 2, 2, 3]) if dims is None else dims)]


def broadcast(s):
    s = [1 if R.random() < 0.3 else n for n in s]
    return s[R.choice([0, 0] + list(range(len(s) + 1))):]


def dim(s):
    n = max(1, len(s))
    return R.randrange(-n, n)


def ints(s, n):
    return torch.tensor([R.randrange(n) for _ in range(math.prod(s))], dtype=torch.int64).reshape(s)


N = 8
for op, f in {"Neg": torch.neg, "Exp": torch.exp, "Abs": torch.abs, "Tanh": torch.tanh, "Sigmoid": torch.sigmoid, "ReLU": F.relu, "Expm1": torch.expm1,
              "Sin": torch.sin, "Cos": torch.cos, "Erf": torch.erf, "GELU": F.gelu, "SiLU": F.silu, "Reciprocal": torch.reciprocal}.items():
    for _ in range(N):
        case(op, f, [numbers(shape())])
for op, f in {"Log": torch.log, "Sqrt": torch.sqrt, "Log1p": torch.log1p, "Rsqrt": torch.rsqrt}.items():
    for _ in range(N):
        case(op, f, [positive(shape())])
for op, f in {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Maximum": torch.maximum, "Minimum": torch.minimum}.items():
    for _ in range(N):
        s = shape()
        case(op, f, [numbers(s), numbers(broadcast(s))])
for _ in range(N):
    s = shape()
    case("Power", torch.pow, [positive(s), numbers(broadcast(s))])
    case("Maximum", torch.maximum, [torch.round(numbers(s)), torch.round(numbers(broadcast(s)))])
    p, c = R.choice([0, 1, 2, 3, -1, 0.5, -0.5, 2.5]), R.choice([-2, 0.5, 3])
    if p:
        case("Pow", lambda x: torch.pow(x, p), [positive(s)], p)
    case("AddScalar", lambda x: x + c, [numbers(s)], c)
    case("MulScalar", lambda x: x * c, [numbers(s)], c)
    case("Clamp", lambda x: torch.clamp(x, -0.5, 1), [numbers(s)], -0.5, 1)
    case("LeakyReLU", lambda x: F.leaky_relu(x, 0.1), [numbers(s)], 0.1)
    mask = ints(s, 2).bool()
    case("MaskedFill", lambda x: x.masked_fill(mask, 2), [numbers(s)], write(mask.to(f64)))
    case("Where", lambda x, y: torch.where(mask, x, y), [numbers(s), numbers(broadcast(s))], write(mask.to(f64)))
    s = shape(R.choice([1, 2, 3]))
    k = dim(s)
    for op, f in {"Softmax": F.softmax, "LogSoftmax": F.log_softmax, "LogSumExp": torch.logsumexp, "CumSum": torch.cumsum, "Sum": torch.sum, "Mean": torch.mean,
                  "Prod": torch.prod, "Amax": torch.amax, "Amin": torch.amin}.items():
        case(op, lambda x: f(x, dim=k), [numbers(s)], k)
    case("Norm", lambda x: torch.linalg.vector_norm(x, dim=k), [numbers(s)], k)
    case("Amax", lambda x: torch.amax(x, dim=k), [torch.round(numbers(s))], k)
    zeros = numbers(s)
    zeros[numbers(s) < -2] = 0
    case("Prod", lambda x: torch.prod(x, dim=k), [zeros], k)
    if s[k] > 1:
        case("Variance", lambda x: torch.var(x, dim=k), [numbers(s)], k)
        case("Std", lambda x: torch.std(x, dim=k), [numbers(s)], k)
    case("Max", lambda x: torch.max(x, dim=k).values, [numbers(s)], k)
    case("Sort", lambda x: torch.sort(x, dim=k, stable=True).values, [numbers(s)], k)
    case("Flip", lambda x: torch.flip(x, [k]), [numbers(s)], k)
    case("Select", lambda x: x.select(k, 0), [numbers(s)], k, 0)
    case("Narrow", lambda x: x.narrow(k, s[k] - 1, 1), [numbers(s)], k, s[k] - 1, 1)
    case("Transpose", lambda x: x.transpose(k, 0), [numbers(s)], k, 0)
    case("Reshape", lambda x: x.reshape(-1), [numbers(s)], -1)
    case("Cat", lambda x, y: torch.cat([x, y], dim=k), [numbers(s), numbers(s)], k)
    case("Stack", lambda x, y: torch.stack([x, y], dim=k), [numbers(s), numbers(s)], k)
    n = R.randint(1, 4)
    case("Gather", lambda x, i: torch.gather(x, k, i), [numbers(s), ints(s, s[k])], k)
    case("IndexSelect", lambda x, i: torch.index_select(x, k, i), [numbers(s), ints([n], s[k])], k)
    case("ScatterAdd", lambda x, i, y: torch.scatter_add(x, k, i, y), [numbers(s), ints(s, s[k]), numbers(s)], k)
    case("Index", lambda x, i: x[i], [numbers(s), ints([n], s[0])])
    case("Embedding", lambda w, i: F.embedding(i, w), [numbers([3, 2]), ints([n, 2], 3)])
    a, b, c = R.randint(1, 3), R.randint(1, 4), R.randint(1, 3)
    for x, y in [([a, b], [b, c]), ([b], [b, c]), ([a, b], [b]), ([b], [b]), ([2, a, b], [b, c]), ([a, b], [2, b, c])]:
        case("MatMul", torch.matmul, [numbers(x), numbers(y)])
    case("Linear", F.linear, [numbers([a, b]), numbers([c, b]), numbers([c])])
    case("Linear", F.linear, [numbers([2, a, b]), numbers([c, b])])
    images = numbers([R.randint(1, 2), 2, R.randint(3, 5), R.randint(3, 5)])
    stride, padding = [R.randint(1, 2), R.randint(1, 2)], [R.randint(0, 1), R.randint(0, 1)]
    w = numbers([R.randint(1, 3), 2, R.randint(1, 3), R.randint(1, 3)])
    case("Conv2d", lambda x, w, b: F.conv2d(x, w, b, stride, padding), [images, w, numbers([w.shape[0]])], stride, padding)
    case("Conv2d", lambda x, w: F.conv2d(x, w, None, stride, padding), [images, w], stride, padding)
    case("MaxPool2d", lambda x: F.max_pool2d(x, 2, stride, padding), [images], stride, padding)
    case("AvgPool2d", lambda x: F.avg_pool2d(x, 2, stride, padding), [images], stride, padding)
    case("BatchNorm2d", lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [images, numbers([2]), numbers([2])])
    case("BatchNorm2dBy", lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b, False), [images, numbers([2]), numbers([2]), numbers([2]), positive([2])],
         grad=[0, 1, 2])
    tail = shape(R.choice([1, 2]))
    if math.prod(tail) > 1:
        case("LayerNorm", lambda x, w, b: F.layer_norm(x, tail, w, b), [numbers([2] + tail), numbers(tail), numbers(tail)])
    for r in ["mean", "sum", "none"]:
        s = shape()
        case("MSELoss", lambda x, y: F.mse_loss(x, y, reduction=r), [numbers(s), numbers(s)], r)
        case("SmoothL1Loss", lambda x, y: F.smooth_l1_loss(x, y, reduction=r, beta=1.3), [numbers(s), numbers(s)], r, 1.3)
        case("BCEWithLogitsLoss", lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction=r), [numbers(s), torch.sigmoid(numbers(s)).round(decimals=3)], r)
        n, c = R.randint(1, 4), R.randint(2, 4)
        t = ints([n], c)
        case("NLLLoss", lambda x, t: F.nll_loss(x, t, reduction=r), [numbers([n, c]), t], r)
        smooth = R.choice([0, 0.2])
        case("CrossEntropy", lambda x, t: F.cross_entropy(x, t, reduction=r, label_smoothing=smooth), [numbers([n, c]), t], r, smooth)

# A gradient penalty, of a critic with two layers, and the loss after a step of descent.


def penalty(x, w1, b1, w2):
    y = F.linear(torch.tanh(F.linear(x, w1, b1)), w2).sum()
    dx, = torch.autograd.grad(y, x, create_graph=True)
    return ((torch.linalg.vector_norm(dx, dim=1) - 1) ** 2).mean()


def step(x, w, t):
    dw, = torch.autograd.grad(F.cross_entropy(F.linear(x, w), t), w, create_graph=True)
    return F.cross_entropy(F.linear(x, w - 0.5 * dw), t)


for _ in range(N):
    n, d, h = R.randint(1, 4), R.randint(2, 4), R.randint(2, 4)
    case("GradientPenalty", penalty, [numbers([n, d]), numbers([h, d]), numbers([h]), numbers([1, h])], grad=[1, 2, 3, 0])
    case("MetaStep", step, [numbers([n, d]), numbers([h, d]), ints([n], h)], grad=[1])



def recurrent(module, reverse=False):
    """The function of a layer: of a sequence, first states, and weights."""
    def run(x, h, *rest):
        states, (w_ih, w_hh, *biases) = ((h, rest[0]), rest[1:]) if module == "LSTM" else (h, rest)
        x = x.flip(0) if reverse else x
        states = tuple(s[None] for s in states) if module == "LSTM" else states[None]
        y, *last = getattr(torch, module.lower())(x, states, [w_ih, w_hh, *biases], bool(biases), 1, 0.0, False, False, False)
        y = y.flip(0) if reverse else y
        return torch.cat([y.flatten(), *[t.flatten() for t in last]])
    return run


for _ in range(N):
    lead, L, S, E, V = R.choice([[], [2], [1, 2], [2, 2]]), R.randint(1, 3), R.randint(1, 4), R.randint(1, 3), R.randint(1, 3)
    ins, scale, small = [numbers(lead + [L, E]) / 2, numbers(lead + [S, E]) / 2, numbers(lead + [S, V])], R.choice([None, 0.5]), R.choice([[L, S], [1, S]])
    attend = lambda causal: lambda q, k, v, m=None: F.scaled_dot_product_attention(q, k, v, m, is_causal=causal, scale=scale)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):  # the others have no second derivative
        case("ScaledDotProductAttention", attend(False), ins, scale or 0, False)
        case("ScaledDotProductAttention", attend(True), ins, scale or 0, True)
        case("ScaledDotProductAttention", attend(False), ins + [numbers(small)], scale or 0, False)
        seen = ints([L, S], 2).bool()
        seen[:, 0] = True
        seen[0] = R.random() < 0.5  # a query that sees nothing, or all
        case("ScaledDotProductAttention", attend(False), ins + [seen], scale or 0, False, grad=[0, 1, 2])
    n, d, h = R.randint(1, 2), R.randint(1, 3), R.randint(1, 3)
    for module, gates, states in [("LSTM", 4, 2), ("GRU", 3, 1)]:
        ins = [numbers([L, n, d])] + [numbers([n, h])] * states + [numbers([gates * h, d]) / 2, numbers([gates * h, h]) / 2]
        case(module, recurrent(module), ins + [numbers([gates * h]), numbers([gates * h])], False)
        case(module, recurrent(module, True), ins, True)

# what has no case above is in the table of operations
covered = {line["op"] for line in lines}
for o in map(json.loads, open(pathlib.Path(__file__).parents[2] / "tensor/testdata/operations.jsonl")):
    if not o["NoGradient"] and o["Name"] not in covered:
        for _ in range(N):
            s = shape()
            case(o["Name"], getattr(torch, o["Torch"]), [numbers(s)] + [numbers(broadcast(s))] * (o["Arity"] - 1))

raw = io.BytesIO()
with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=9, mtime=0) as f:
    for line in [{"torch": torch.__version__, "cases": len(lines)}] + lines:
        f.write((json.dumps(line, separators=(",", ":")) + "\n").encode())
with open(sys.argv[1], "wb") as f:
    f.write(raw.getvalue())
print(len(lines), "cases,", len(raw.getvalue()), "bytes")
