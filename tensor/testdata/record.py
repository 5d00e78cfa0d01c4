"""Records what PyTorch makes of small tensors, for pytorch_test.go: python record.py > ops.jsonl

A line is {"torch": version}, {"name", "value"} of an input, or {"op", "in", "args", "out" or "error"}. A tensor is written as
"dtype[shape] element element ...", a complex element as "real,imaginary". Ops are named as in package tensor.
"""

import itertools
import json
import math
import pathlib
import random
import warnings

import numpy
import torch

warnings.simplefilter("ignore")
inf, nan = math.inf, math.nan
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
HALVES = [torch.float16, torch.bfloat16]
FLOATS = HALVES + [torch.float32, torch.float64]
COMPLEX = [torch.complex64, torch.complex128]
REAL = [torch.bool] + INTEGERS + FLOATS
ALL = REAL + COMPLEX
SOME = [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32]


def element(x, dtype):
    if dtype.is_complex:
        part = torch.float32 if dtype == torch.complex64 else torch.float64
        return element(x.real, part) + "," + element(x.imag, part)
    if dtype == torch.bool:
        return str(int(x))
    if not dtype.is_floating_point:
        return str(x)
    kind = {torch.float16: numpy.float16, torch.float64: numpy.float64}.get(dtype, numpy.float32)
    return str(kind(x)).removesuffix(".0")


def write(t):
    shape = ",".join(map(str, t.shape))
    elements = [element(x, t.dtype) for x in t.detach().flatten().tolist()]
    return " ".join([f"{str(t.dtype).removeprefix('torch.')}[{shape}]"] + elements)


def emit(**line):
    print(json.dumps(line, separators=(",", ":")))


names = {}


def name(t):
    """Writes an input when it is first used, and returns its name."""
    value = write(t)
    if value not in names:
        names[value] = f"t{len(names)}"
        emit(name=names[value], value=value)
    return names[value]


def row(op, f, inputs, *args):
    """Writes what f makes of copies of the inputs."""
    ins = [name(t) for t in inputs]
    try:
        out = f(*[t.clone() for t in inputs], *args)
    except (RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError) as e:
        emit(op=op, **{"in": ins}, args=args, error=str(e).split("\n")[0][:60])
        return
    out = [out] if isinstance(out, torch.Tensor) else list(out)
    emit(op=op, **{"in": ins}, args=args, out=[write(t) for t in out])


def tensor(dtype, values):
    if not dtype.is_floating_point and not dtype.is_complex:
        wrap = {torch.uint8: lambda v: abs(v) % 256}.get(dtype, lambda v: v)
        values = numpy.vectorize(lambda v: wrap(int(v)) if math.isfinite(abs(v)) else 0)(numpy.array(values).real)
    if not dtype.is_complex:
        values = numpy.array(values).real
    return torch.tensor(values).to(dtype)


def a(dtype):
    """Six elements; integers have their extremes."""
    if dtype in INTEGERS:
        i = torch.iinfo(dtype)
        return torch.tensor([[i.max, 3, 0], [i.min, 100, i.max // 2]], dtype=dtype)
    if dtype.is_complex:
        return tensor(dtype, [[1 + 2j, -3, 0.5j], [-1 - 1j, 2.25, 4 - 3j]])
    return tensor(dtype, [[1.5, -2.5, 0], [nan, inf, -3.75]])


def b(dtype):
    return tensor(dtype, [2 + 1j, 3, -1.5j + 1]) if dtype.is_complex else tensor(dtype, [2, -3, 1.5])


def binary(op, f, dtypes=ALL):
    for d in dtypes:
        row(op, f, [a(d), b(d)])
    mixed = [(torch.int8, torch.float32), (torch.uint8, torch.int8), (torch.bool, torch.int64), (torch.float16, torch.bfloat16),
             (torch.float64, torch.complex64), (torch.int64, torch.float16), (torch.float32, torch.complex128), (torch.int32, torch.bool)]
    for x, y in mixed:
        if y == torch.float16 and op in ("Remainder", "FloorDivide"):
            continue  # integers too large for float16 are infinite in PyTorch before they are divided, here afterwards
        if x in dtypes and y in dtypes:
            row(op, f, [a(x), b(y)])
            row(op, f, [a(x)[0, 1].clone(), b(y)])
            row(op, f, [a(x), b(y)[0].clone()])
    row(op, f, [torch.zeros(0, 3), torch.ones(3)])
    row(op, f, [torch.ones(2, 1), torch.arange(3.0) + 1])
    row(op, f, [torch.ones(2), torch.ones(3)])


OPERATIONS = [json.loads(line) for line in open(pathlib.Path(__file__).parent / "operations.jsonl")]
NOT_BOOL = {"Remainder", "FloorDivide", "Power"}  # PyTorch has no result, or one that depends on the arguments
REAL_ONLY = {"Power"}
EDGES = torch.tensor([0.0, -0.0, 1.0, -1.0, 1e-30, -1e30, 3e38, inf, -inf, nan])
for o in OPERATIONS:
    if o["Arity"] == 2:
        op, f = o["Name"], getattr(torch, o["Torch"])
        dtypes = INTEGERS + FLOATS if op in NOT_BOOL else ALL if o["Complex"] and op not in REAL_ONLY else REAL
        binary(op, f, dtypes)
        for d in [torch.float32, torch.float64]:
            row(op, f, [EDGES.to(d)[:, None], EDGES.to(d)])
for op, f in {"And": torch.logical_and, "Or": torch.logical_or, "Xor": torch.logical_xor}.items():
    binary(op, f, REAL)
for op, f in {"Remainder": torch.remainder, "FloorDivide": torch.floor_divide}.items():
    for d in [torch.int32, torch.float32]:
        row(op, f, [tensor(d, [7, -7, 7, -7, 0]), tensor(d, [3, 3, -3, -3, 5])])
        row(op, f, [tensor(d, [7, -7]), tensor(d, [0, 0])])
row("FloorDivide", torch.floor_divide, [torch.tensor([1.0, -1.0, 0.3, inf, 5.0]), torch.tensor([inf, inf, 0.1, 2.0, -inf])])
row("Power", torch.pow, [torch.tensor([2, -2, 0, 1, -1, 3]), torch.tensor([5, 3, 0, -2, -3, 40])])
row("Power", torch.pow, [torch.tensor([0.0, -8.0, 2.0, -1.0, nan]), torch.tensor([0.0, 1 / 3, -inf, inf, 0.0])])

NUMBERS = {"AddNumber": torch.add, "MulNumber": torch.mul, "DivNumber": torch.div, "GtNumber": torch.gt, "PowNumber": torch.pow}
for (op, f), v in itertools.product(NUMBERS.items(), [2, 1.5]):
    for d in ALL if op in ("AddNumber", "MulNumber") else REAL:
        if op == "PowNumber" and d == torch.bool:
            continue
        row(op, f, [a(d)], v)
        if d not in HALVES or op != "PowNumber":  # PyTorch rounds the exponent to d, and we do not
            row(op, f, [a(d)[0, 1].clone()], v)

UNARY = {o["Name"]: getattr(torch, o["Torch"]) for o in OPERATIONS if o["Arity"] == 1} | {"Not": torch.logical_not}
ON_COMPLEX = {o["Name"] for o in OPERATIONS if o["Complex"]}
for op, f in UNARY.items():
    for d in ALL if op in ON_COMPLEX else REAL:
        small = d in INTEGERS and op in ("Sin", "Cos", "Exp", "Expm1", "Tanh", "Sigmoid")
        row(op, f, [tensor(d, [0, 1, 2, -3]) if small else a(d)])
    row(op, f, [torch.tensor([-0.0, 0.5, -0.5, 2.5, -inf, 1e-8, -1e-8])])
    row(op, f, [torch.tensor(0.75)])
    row(op, f, [torch.zeros(2, 0)])

for d in REAL:
    row("Clamp", torch.clamp, [a(d)], -2, 3)
    row("Where", torch.where, [torch.tensor([True, False, True]), a(d), b(d)])
row("Clamp", torch.clamp, [torch.tensor([-inf, nan, inf])], -1.5, 1.5)
row("Where", torch.where, [torch.tensor([[True], [False]]), torch.tensor([1, 2]), torch.tensor(0.5)])

# in place
IN_PLACE = {"AddTo": lambda x, y: x.add_(y), "SubTo": lambda x, y: x.sub_(y), "MulTo": lambda x, y: x.mul_(y), "DivTo": lambda x, y: x.div_(y),
            "FloorDivideTo": lambda x, y: x.floor_divide_(y), "RemainderTo": lambda x, y: x.remainder_(y), "CopyTo": lambda x, y: x.copy_(y)}
for op, f in IN_PLACE.items():
    for x, y in [(torch.float32, torch.float32), (torch.int64, torch.int64), (torch.float32, torch.int64), (torch.float16, torch.float32), (torch.int32, torch.uint8)]:
        row(op, f, [a(x), b(y)])
    if op != "CopyTo":
        row(op, f, [a(torch.int64), b(torch.float32)])
    row(op, f, [torch.ones(3), torch.ones(2, 3)])
    row(op + "Expanded", lambda x, y, f=f: f(x.expand(2, 3), y), [torch.ones(3), torch.ones(2, 3)])
    row(op + "Itself", lambda x, f=f: f(x, x), [torch.tensor([3.0, -2.0])])
for op, f in {"AddNumberTo": lambda x, v: x.add_(v), "PowTo": lambda x, v: x.pow_(v), "FillTo": lambda x, v: x.fill_(v), "MulNumberTo": lambda x, v: x.mul_(v)}.items():
    for d in [torch.float32, torch.int32]:
        row(op, f, [a(d)], 2)
    if op != "FillTo":
        row(op, f, [a(torch.int32)], 1.5)
for op, f in {"ExpTo": torch.exp_, "LogTo": torch.log_, "SqrtTo": torch.sqrt_, "TanhTo": torch.tanh_, "SigmoidTo": torch.sigmoid_, "AbsTo": torch.abs_,
              "NegTo": torch.neg_, "ReLUTo": torch.relu_}.items():
    for d in [torch.float32, torch.bfloat16, torch.int32]:
        row(op, f, [a(d)])
for d in [torch.float32, torch.int64, torch.bool]:
    row("MaskedFill", lambda x, m, v: x.masked_fill_(m, v), [a(d), torch.tensor([True, False, True])], 1)
row("AxpyTo", lambda x, y, v: x.add_(y, alpha=v), [a(torch.float32), b(torch.float32)], 0.5)
row("AxpyTo", lambda x, y, v: x.add_(y, alpha=v), [a(torch.int32), b(torch.int32)], 3)
row("AxpyTo", lambda x, y, v: x.add_(y, alpha=v), [a(torch.int32), b(torch.int32)], 0.5)

# reductions
three = torch.arange(24).reshape(2, 3, 4) * 7 % 11


def keep(f):
    def g(x, dims, k):
        if not dims:
            return f(x).reshape([1] * x.dim()) if k else f(x)
        return f(x, dim=dims, keepdim=k)
    return g


def one_by_one(f):
    """Reduces the dimensions one after the other, for functions that take only one."""
    def g(x, dim=None, keepdim=False):
        if dim is None:
            return f(x)
        for d in sorted((d + x.dim() if d < 0 else d for d in dim), reverse=True):
            x = f(x, dim=d, keepdim=keepdim)
        return x
    return g


def one(f):
    return lambda x, dim=None, keepdim=False: f(x) if dim is None else f(x, dim=dim[0], keepdim=keepdim)


REDUCE = {"Sum": torch.sum, "Mean": torch.mean, "Prod": one_by_one(torch.prod), "Amax": torch.amax, "Amin": torch.amin, "Argmax": one(torch.argmax),
          "Argmin": one(torch.argmin), "Var": torch.var, "Std": torch.std, "All": one_by_one(torch.all), "Any": one_by_one(torch.any)}
for op, f in REDUCE.items():
    for d in ALL if op in ("Sum", "Prod", "Mean") else REAL:
        if op in ("All", "Any") and d == torch.uint8:
            continue  # for the sake of its past, PyTorch makes uint8 of uint8
        row(op, keep(f), [a(d)], [1], False)
        row(op, keep(f), [three.to(d) % (2 if op == "Prod" else 100) if not d.is_complex else three.to(d) / 5], [0], True)
    for dims, k in itertools.product([[], [0], [-1]] + ([[0, 2]] if not op.startswith("Arg") else []), [False, True]):
        row(op, keep(f), [three.float() / 4], dims, k)
    row(op, keep(f), [three.float()], [3], False)
    for shape, dims in [((), []), ((), [0]), ((0,), []), ((0, 3), [0]), ((0, 3), [1]), ((2, 0), [0])]:
        row(op, keep(f), [torch.ones(shape)], dims, False)
for op, f in {"Max": torch.max, "Min": torch.min}.items():
    for d in REAL:
        row(op, f, [a(d)], 1)
    row(op, f, [three], -2)
    row(op, f, [torch.tensor([1, 5, 5, 1])], 0)
    row(op, f, [torch.tensor(3.0)], 0)

# along a dimension
for d in REAL:
    if d != torch.bool:
        row("Sort", lambda x, k, desc: torch.sort(x, dim=k, descending=desc, stable=True), [a(d)], 1, False)
    row("CumSum", torch.cumsum, [a(d)], 1)
row("CumSum", torch.cumsum, [a(torch.complex64)], 0)
for k, desc in itertools.product([0, 1, -1], [False, True]):
    row("Sort", lambda x, k, desc: torch.sort(x, dim=k, descending=desc, stable=True), [three], k, desc)
row("Sort", lambda x, k, desc: torch.sort(x, dim=k, descending=desc, stable=True), [torch.tensor([nan, 1, -inf, 2, nan, 1])], 0, False)
row("Sort", lambda x, k, desc: torch.sort(x, dim=k, descending=desc, stable=True), [torch.tensor([nan, 1, -inf, 2, nan, 1])], 0, True)
row("Sort", lambda x, k, desc: torch.sort(x, dim=k, descending=desc, stable=True), [torch.tensor(3)], 0, False)
row("Sort", lambda x, k, desc: torch.sort(x, dim=k, descending=desc, stable=True), [torch.zeros(2, 0)], 1, False)
distinct = torch.tensor([[3.0, 9, 1, 7], [8, 2, nan, 4]])
for k, dim in [(2, 1), (1, 0), (0, 1), (4, -1), (5, 1)]:
    row("TopK", torch.topk, [distinct], k, dim)
for dim in [0, 1, -1]:
    row("CumSum", torch.cumsum, [three], dim)

# views
VIEWS = {"Reshape": lambda x, s: x.reshape(s), "ViewOfTransposed": lambda x, s: x.transpose(0, 1).view(s), "Permute": lambda x, s: x.permute(s), "Expand": lambda x, s: x.expand(s),
         "Transpose": lambda x, s: x.transpose(*s), "Squeeze": lambda x, s: x.squeeze(s[0]) if s else x.squeeze(), "Unsqueeze": lambda x, s: x.unsqueeze(s[0]),
         "Flatten": lambda x, s: x.flatten(*s), "Narrow": lambda x, s: x.narrow(*s), "Select": lambda x, s: x.select(*s), "Slice": lambda x, s: x[:, s[0]:s[1]:s[2]],
         "Split": lambda x, s: x.split(*s), "Chunk": lambda x, s: x.chunk(*s)}
n1 = torch.arange(6).reshape(2, 1, 3)
for op, x, argss in [
    ("Reshape", three, [[4, 6], [-1], [2, -1, 2], [5, 5], [-1, -1], [24, 1], [2, 3, 4]]), ("Reshape", torch.zeros(0, 3), [[0], [3, 0, 2], [-1, 3]]),
    ("Reshape", torch.tensor(5), [[1, 1], []]), ("ViewOfTransposed", three, [[3, 8], [3, 2, 2, 2], [3, 2, 4], [24]]), ("Permute", three, [[2, 0, 1], [0, -1, 1], [0, 0, 1], [0, 1]]),
    ("Expand", n1, [[2, 4, 3], [5, 2, 1, 3], [-1, 2, -1], [2, 3], [2, 4, 6]]), ("Expand", torch.tensor(2), [[2, 2], [0]]), ("Transpose", three, [[0, 2], [-1, 1], [0, 3]]),
    ("Squeeze", n1, [[], [1], [0], [3]]), ("Unsqueeze", n1, [[0], [3], [-1], [-4], [4]]), ("Flatten", three, [[0, 1], [1, 2], [0, 2], [2, 1]]), ("Flatten", torch.tensor(3), [[0, 0]]),
    ("Narrow", three, [[1, 1, 2], [2, 0, 4], [2, -3, 2], [0, 1, 2], [1, 0, 0]]), ("Select", three, [[0, 1], [1, -1], [2, 4]]), ("Slice", three, [[0, 3, 2], [-2, 9, 1], [2, 1, 1]]),
    ("Split", three, [[2, 2], [3, 2], [5, 0]]), ("Chunk", three, [[2, 1], [3, 2], [5, 2]])]:
    for s in argss:
        row(op, VIEWS[op], [x], s)

# joining
for dim in [0, 1, -1, 2]:
    row("Cat", lambda *x: torch.cat(x[:-1], x[-1]), [torch.arange(6).reshape(2, 3), torch.ones(2, 3)], dim)
    row("Stack", lambda *x: torch.stack(x[:-1], x[-1]), [torch.arange(6).reshape(2, 3), torch.arange(6).reshape(2, 3)], dim)
row("Cat", lambda *x: torch.cat(x[:-1], x[-1]), [torch.ones(2, 3), torch.ones(1, 3), torch.zeros(0, 3)], 0)
row("Cat", lambda *x: torch.cat(x[:-1], x[-1]), [torch.ones(2, 3), torch.ones(2, 2)], 0)

# indices
at = torch.tensor([[0, 2, 1], [2, 2, 0]])
for d in [torch.float32, torch.int8, torch.float16, torch.bool, torch.complex64]:
    base = tensor(d, [[1, 2, 0], [3, 0, 4]])
    row("Gather", lambda x, i, k: torch.gather(x, k, i), [base, at], 1)
    row("Scatter", lambda x, i, s, k: x.scatter_(k, i, s), [torch.zeros(2, 3, dtype=d), torch.tensor([[1, 0], [2, 1]]), base], 1)
    row("ScatterAdd", lambda x, i, s, k: x.scatter_add_(k, i, s), [torch.ones(2, 3, dtype=d), at, base], 1)
    row("IndexSelect", lambda x, i, k: torch.index_select(x, k, i), [base, torch.tensor([1, 0, 1, 1])], 0)
    row("IndexAdd", lambda x, i, s, k: x.index_add_(k, i, s), [torch.ones(2, 3, dtype=d), torch.tensor([2, 0, 2]), base], 1)
    row("IndexCopy", lambda x, i, s, k: x.index_copy_(k, i, s), [torch.ones(2, 3, dtype=d), torch.tensor([1, 0]), base], 0)
    row("MaskedSelect", torch.masked_select, [base, torch.tensor([True, False, True])])
    row("Nonzero", torch.nonzero, [base])
row("Gather", lambda x, i, k: torch.gather(x, k, i), [three, torch.tensor([[[1, 0], [0, 1]]])], 0)
row("Gather", lambda x, i, k: torch.gather(x, k, i), [three, torch.tensor([[[3]]])], 1)
row("Gather", lambda x, i, k: torch.gather(x, k, i), [three, torch.tensor([[0]])], 1)
row("Gather", lambda x, i, k: torch.gather(x, k, i), [three.float(), torch.tensor([[0.0]])], 1)
row("Scatter", lambda x, i, s, k: x.scatter_(k, i, s), [torch.zeros(2), torch.tensor([2]), torch.ones(1)], 0)
row("ScatterAdd", lambda x, i, s, k: x.scatter_add_(k, i, s), [torch.zeros(4), torch.tensor([1, 1, 1, 0]), torch.ones(4)], 0)
row("IndexSelect", lambda x, i, k: torch.index_select(x, k, i), [three, torch.tensor([2, 0])], 1)
row("IndexSelect", lambda x, i, k: torch.index_select(x, k, i), [three, torch.tensor([3])], 1)
row("IndexAdd", lambda x, i, s, k: x.index_add_(k, i, s), [torch.zeros(2, 3), torch.tensor([0, 0]), torch.ones(3, 3)], 0)
row("Index", lambda x, i: x[i], [three, torch.tensor([1, 0, -1])])
row("Index", lambda x, i, j: x[i, j], [three, torch.tensor([[1], [0]]), torch.tensor([0, -1, 2])])
row("Index", lambda x, i, j, k: x[i, j, k], [three, torch.tensor([1, 0]), torch.tensor([2, 1]), torch.tensor(3)])
row("Index", lambda x, i, j: x[i, j], [three, torch.tensor([1, 0]), torch.tensor([2, 3])])
row("Index", lambda x, i: x[i], [torch.ones(3, 0), torch.tensor([2, 0])])
row("MaskedSelect", torch.masked_select, [three, three > 5])
row("MaskedSelect", torch.masked_select, [torch.tensor(4), torch.tensor(True)])
row("MaskedSelect", torch.masked_select, [torch.arange(3), torch.tensor([[True], [False], [True]])])
row("Nonzero", torch.nonzero, [torch.zeros(2, 0)])
row("Nonzero", torch.nonzero, [torch.tensor(1.0)])

# products
for d in INTEGERS + FLOATS + COMPLEX:
    row("MatMul", torch.matmul, [tensor(d, [[1, 2, 3], [4, 5, 6]]), tensor(d, [[1, 0], [2, 1], [3, 2]])])
m = torch.arange(12.0)
for x, y in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 2)), ((2, 1, 2, 3), (2, 3, 1)), ((2, 0), (0, 3)), ((2, 3), (2, 3)), ((), (3,)), ((0, 3), (3, 2))]:
    row("MatMul", torch.matmul, [m[:math.prod(x)].reshape(x), m[:math.prod(y)].reshape(y) - 2])
row("BMM", torch.bmm, [m.reshape(2, 2, 3), m.reshape(2, 3, 2)])
row("BMM", torch.bmm, [m.reshape(2, 2, 3), m[:6].reshape(3, 2)])
row("BMM", torch.bmm, [m.reshape(2, 2, 3), m[:6].reshape(1, 3, 2)])

# casting and creation
for x, y in itertools.product(ALL, ALL):
    row("To", lambda t, d: t.to(getattr(torch, d)), [tensor(x, [0, 1, 2.75, 100]) if not x.is_complex else tensor(x, [0, 1, 2.75, 100 + 0.5j])], str(y).removeprefix("torch."))
for d in ["float32", "int64", "float16"]:
    row("Arange", lambda d, *x: torch.arange(*x, dtype=getattr(torch, d)), [], d, 1, 8, 2)
    row("Linspace", lambda d, *x: torch.linspace(*x, dtype=getattr(torch, d)), [], d, -2, 6, 5)
    row("Eye", lambda d, n: torch.eye(n, dtype=getattr(torch, d)), [], d, 3)
    row("Full", lambda d, v, s: torch.full(s, v, dtype=getattr(torch, d)), [], d, 3, [2, 2])
row("Arange", lambda d, *x: torch.arange(*x, dtype=getattr(torch, d)), [], "float64", 1, -1, -0.5)
row("Arange", lambda d, *x: torch.arange(*x, dtype=getattr(torch, d)), [], "float64", 1, -1, 1)
row("Linspace", lambda d, *x: torch.linspace(*x, dtype=getattr(torch, d)), [], "float32", 0, 1, 1)

# Random calls, many of them mistaken: shapes with sizes of 0 and 1, and dimensions and indices that may be out of range. Fractions are
# quarters, so that sums are exact. Zeros have no sign, because PyTorch's own functions disagree about it.
choice, randint = random.Random(39).choice, random.Random(40).randint
QUARTERS = [0, 0.25, 0.5, -0.5, 1, -1, 1.5, -2.25, 2.5, 3, -3.75, 7, 100]
EDGY = QUARTERS + [inf, -inf, nan, 1e-8, 1e4, 88, -88, 20]


def random_shape(most=3):
    n = choice([0, 1, 1, 2, 2, 3][: most + 3])
    return [choice([0, 1, 1, 2, 3, 5] if n > 1 else [0, 1, 2, 5, 19]) for _ in range(n)]


def random_tensor(dtype, shape, values=EDGY):
    if dtype in INTEGERS:
        i = torch.iinfo(dtype)
        values = [0, 1, 2, 3, 5, 100, i.max] + ([] if dtype == torch.uint8 else [-1, -2, -7, i.min])
    elif dtype == torch.bool:
        values = [0, 1]
    return torch.tensor([choice(values) for _ in range(math.prod(shape))]).to(dtype).reshape(shape)


def random_pair(dtypes, values=EDGY):
    x = random_shape()
    y = [n if choice([0, 1, 1]) else 1 for n in x]
    y = choice([y, y, y, y[1:], random_shape()])
    d = choice(dtypes)
    e = choice([d, d, choice(dtypes)])
    return choice([1, -1]), random_tensor(d, x, values), random_tensor(e, y, values)


def random_indices(size, shape):
    wrong = choice([0, 0, 0, 0, 1])
    return torch.tensor([randint(-wrong, max(size - 1, 0) + wrong) for _ in range(math.prod(shape))], dtype=torch.int64).reshape(shape)


def random_dim(x):
    return randint(-x.dim() - 1, x.dim()) if choice([0, 0, 0, 1]) else randint(-x.dim(), max(x.dim() - 1, 0))


def size_along(x, dim):
    return x.shape[dim] if -x.dim() <= dim < x.dim() else 1


DOUBLE = [o for o in OPERATIONS if o["Arity"] == 2]
for _ in range(500):
    o = choice(DOUBLE)
    op = o["Name"]
    order, x, y = random_pair(INTEGERS + FLOATS if op in NOT_BOOL else REAL)
    halves = x.dtype in HALVES or y.dtype in HALVES
    if op in NOT_BOOL and (halves or x.dtype != y.dtype):
        continue  # see binary
    row(op, getattr(torch, o["Torch"]), [x, y][::order])
for op, f in list({"And": torch.logical_and, "Or": torch.logical_or, "Xor": torch.logical_xor}.items()) * 8:
    _, x, y = random_pair(REAL)
    row(op, f, [x, y])
for _ in range(150):
    op = choice(list(UNARY))
    row(op, UNARY[op], [random_tensor(choice(FLOATS + [torch.bool]), random_shape())])
RANDOMLY_REDUCE = REDUCE | {"Prod": one(torch.prod), "All": one(torch.all), "Any": one(torch.any)}
for _ in range(300):
    op = choice(list(REDUCE))
    x = random_tensor(choice(FLOATS + [torch.int64, torch.int8]), random_shape(), QUARTERS)
    if op in ("Argmax", "Argmin", "Prod", "All", "Any"):
        dims = choice([[], [random_dim(x)]])
    else:
        dims = [random_dim(x) for _ in range(choice([0, 1, 1, 2]))]
    row(op, keep(RANDOMLY_REDUCE[op]), [x], dims, choice([False, False, True]))
for _ in range(60):
    x = random_tensor(choice(REAL), random_shape(), QUARTERS)
    row("CumSum", torch.cumsum, [x], random_dim(x))
    for op, f in {"Max": torch.max, "Min": torch.min}.items():
        row(op, f, [x], random_dim(x))
    row("Sort", lambda x, d, down: torch.sort(x, dim=d, descending=down, stable=True), [x], random_dim(x), choice([False, True]))
for op in list(VIEWS) * 8:
    x = random_tensor(torch.int16, [2, 3] if op in ("Slice", "ViewOfTransposed") else random_shape())
    n = x.dim()
    if op in ("Reshape", "ViewOfTransposed", "Expand"):
        s = choice([[-1], [1, -1], [*x.shape, 1], [2, *x.shape], x.shape[::-1], [0, -1], [-1, -1], [-1] * n])
        s = [int(k) for k in s]
        if op == "Expand" and 0 in s and -1 in s:
            continue  # PyTorch takes -1 for a new dimension beside one of size 0
    elif op in ("Permute", "Squeeze"):
        s = [choice([k, k, k - n, random_dim(x)]) for k in range(n)]
    elif op in ("Narrow", "Slice"):
        s = [random_dim(x), randint(-3, 4), randint(-1, 3)] if op == "Narrow" else [randint(0, 3), randint(0, 4), randint(1, 2)]
    elif op in ("Split", "Chunk"):
        s = [randint(-1, 4), random_dim(x)]
    elif op == "Unsqueeze":
        s = [randint(-n - 2, n + 1)]
    elif op == "Select":
        s = [random_dim(x), randint(-4, 4)]
    else:
        s = [random_dim(x), random_dim(x)]
    row(op, VIEWS[op], [x], s)
for _ in range(60):
    x = random_tensor(choice([torch.float32, torch.int8, torch.float16]), random_shape(), QUARTERS)
    dim = random_dim(x)
    size, others = size_along(x, dim), list(x.shape)
    if 0 in others:
        size = max(size, 1)  # PyTorch checks some indices only where there are elements
    row("IndexSelect", lambda x, i, k: torch.index_select(x, k, i), [x, random_indices(size, choice([[3], [0], [1], []]))], dim)
    if -x.dim() <= dim < x.dim():
        others[dim] = choice([1, 2, 4])
    row("Gather", lambda x, i, k: torch.gather(x, k, i), [x, random_indices(size, others)], dim)
    row("ScatterAdd", lambda x, i, s, k: x.scatter_add_(k, i, s), [x, random_indices(size, others), random_tensor(x.dtype, others, QUARTERS)], dim)
    row("Cat", lambda *x: torch.cat(x[:-1], x[-1]), [x, random_tensor(choice([x.dtype, torch.int64]), choice([others, random_shape()]), QUARTERS)], dim)
    row("Stack", lambda *x: torch.stack(x[:-1], x[-1]), [x, random_tensor(x.dtype, choice([x.shape, others]), QUARTERS)], dim)
for _ in range(60):
    k = choice([0, 1, 2, 3])
    x, y = choice([[k], [2, k], [2, 0, k], [2, 3, k]]), choice([[k], [k, 2], [2, k, 3], [k + 1, 2]])
    d = choice(FLOATS + INTEGERS)
    row("MatMul", torch.matmul, [random_tensor(d, x, QUARTERS), random_tensor(d, y, QUARTERS)])
for _ in range(60):
    d = choice(["uint8", "int16", "int64", "float32", "float64"])
    start, end, step = choice([0, 1, -3, 0.5]), choice([0, 1, -3, 5.5, 10]), choice([1, 2, -1, 0.5, 0.25, 0])
    if d != "uint8" or min(start, end, step) >= 0:
        row("Arange", lambda d, *x: torch.arange(*x, dtype=getattr(torch, d)), [], d, start, end, step)
    row("Linspace", lambda d, *x: torch.linspace(*x, dtype=getattr(torch, d)), [], d, abs(start), end if end > 0 else 8, choice([0, 1, 2, 5, -1]))
    row("Clamp", torch.clamp, [random_tensor(choice(FLOATS), random_shape())], choice([0, -1.5, -3]), choice([2.5, 1, -2]))

emit(torch=torch.__version__)
