"""The rows of shoal bench cuda_ops, done with PyTorch."""

import json
import os
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


def step(net, loss, x):
    net.to("cuda")
    sgd = torch.optim.SGD(net.parameters(), lr=0.001, momentum=0.9)

    def do():
        sgd.zero_grad()
        loss(net(x)).backward()
        sgd.step()

    return do


def operations(n):
    """Those of shoal, by name. What a function returns is dropped."""
    torch.manual_seed(1)
    dev = "cuda"
    host = torch.randn(n, n)
    x, y = host.to(dev), torch.randn(n, n, device=dev)
    few, few2 = torch.randn(1000, device=dev), torch.randn(1000, device=dev)
    half, half2 = x.bfloat16(), y.bfloat16()
    row, ones = torch.randn(n, device=dev), torch.ones(n, device=dev)
    places = torch.randint(0, n, (n,), device=dev)
    everywhere = torch.randint(0, n, (n, n), device=dev)
    positive = x.exp()
    larger = x > y
    small, small2 = torch.randn(256, 256, device=dev), torch.randn(256, 256, device=dev)
    d = max(n // 32, 8)
    batch, batch2 = torch.randn(64, d, 64, device=dev), torch.randn(64, 64, d, device=dev)
    samples = max(n // 4, 2)
    labels = torch.randint(0, 10, (samples,), device=dev)
    images = torch.randn(samples, 1, 28, 28, device=dev)
    tokens = torch.randn(max(n // 32, 4), 8, 256, device=dev)
    perceptron = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    convolutions = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Flatten(), nn.Linear(64 * 144, 128), nn.ReLU(), nn.Linear(128, 10))
    encoder = nn.TransformerEncoderLayer(256, 4, 1024, 0.0)
    classify = lambda out: F.cross_entropy(out, labels)

    def quiet(f):
        def do():
            with torch.no_grad():
                f()
        return do

    plain = {
        "add": lambda: x + y, "add_row": lambda: x + row, "add_few": lambda: few + few2,
        "add_few_in_place": lambda: few.add_(few2), "add_bf16": lambda: half + half2,
        "add_in_place": lambda: y.add_(x), "mul_scalar": lambda: x * 2, "exp": lambda: torch.exp(x),
        "log": lambda: torch.log(positive), "sin": lambda: torch.sin(x),
        "tanh": lambda: torch.tanh(x), "gelu": lambda: F.gelu(x), "relu": lambda: F.relu(x),
        "where": lambda: torch.where(larger, x, y), "gt": lambda: x > y, "to_bf16": lambda: x.bfloat16(),
        "sum": lambda: x.sum(), "sum_0": lambda: x.sum(0), "sum_1": lambda: x.sum(1), "amax_1": lambda: x.amax(1),
        "argmax_1": lambda: x.argmax(1), "softmax": lambda: F.softmax(x, 1), "log_softmax": lambda: F.log_softmax(x, 1),
        "layer_norm": lambda: F.layer_norm(x, (n,), ones, row), "cross_entropy": lambda: F.cross_entropy(x, places),
        "t_clone": lambda: x.t().clone(memory_format=torch.contiguous_format), "cat": lambda: torch.cat([x, y]),
        "index_select": lambda: x.index_select(0, places), "gather_1": lambda: x.gather(1, everywhere),
        "matmul_256": lambda: small @ small2,
        "bmm": lambda: torch.bmm(batch, batch2), "randn": lambda: torch.randn(n, n, device=dev),
        "rand": lambda: torch.rand(n, n, device=dev), "dropout": lambda: F.dropout(x, 0.5),
        "item": lambda: few[:1].item(), "to_host": lambda: x.cpu(), "from_host": lambda: host.to(dev),
    }
    ops = {name: quiet(f) for name, f in plain.items()}
    ops["step_perceptron"] = step(perceptron, classify, images)
    ops["step_convolutions"] = step(convolutions, classify, images)
    ops["step_encoder"] = step(encoder, lambda out: out.mean(), tokens)
    return ops


NAMES = """add add_row add_few add_few_in_place add_bf16 add_in_place mul_scalar exp log sin tanh gelu relu where gt to_bf16 sum sum_0 sum_1
amax_1 argmax_1 softmax log_softmax layer_norm cross_entropy t_clone cat index_select gather_1 matmul_256 bmm randn rand dropout item to_host from_host
step_perceptron step_convolutions step_encoder""".split()


def measure(do, rounds):
    do()
    torch.cuda.synchronize()
    begin = time.perf_counter_ns()
    for _ in range(rounds):
        do()
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - begin) / rounds


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if not torch.cuda.is_available():
        raise SystemExit("this torch sees no CUDA device")
    print(json.dumps({"Name": "torch " + torch.__version__,
                      "Detail": "Python %s, CUDA %s" % (sys.version.split()[0], torch.version.cuda),
                      "Variants": {name: ["eager"] for name in NAMES}}), file=out, flush=True)
    ops = {}
    for line in sys.stdin:
        r = json.loads(line)
        try:
            if not ops:
                ops = operations(r["size"])
            answer = {"Value": measure(ops[r["op"]], r["rounds"])}
        except Exception as e:
            answer = {"Error": f"{r['op']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
