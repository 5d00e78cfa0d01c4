"""The rows of shoal bench steps, done with torch and a number of threads.

Says hello in one line of JSON, then does what each line of stdin asks for and answers in a line: ns for the call in the middle of so many.
"""

import json
import os
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import torch_train

CLASSES = 10


def operations():
    x, y, row = torch.randn(1024, 1024), torch.randn(1024, 1024), torch.randn(1024)
    w = x.clone()
    p = nn.Parameter(x.clone())
    p.grad = y.clone()
    sgd, adam = torch.optim.SGD([p], lr=1e-9, momentum=0.9), torch.optim.Adam([p], lr=1e-9)
    return {
        "add": lambda: x + y,
        "mul_row": lambda: x * row,
        "gt": lambda: x > y,
        "exp": lambda: x.exp(),
        "tanh": lambda: x.tanh(),
        "sum": lambda: x.sum(),
        "sum_0": lambda: x.sum(0),
        "amax_1": lambda: x.amax(1),
        "softmax": lambda: x.softmax(-1),
        "to_float16": lambda: x.half(),
        "transpose": lambda: x.t().contiguous(),
        "uniform": lambda: w.uniform_(-1, 1),
        "normal": lambda: w.normal_(),
        "sgd": sgd.step,
        "adam": adam.step,
        "mm": lambda: x @ y,
    }


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(256, 256), nn.Linear(256, CLASSES)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


def conv(a, b):
    return nn.Conv2d(a, b, 3, padding=1)


def networks():
    """Yields the name of each network, the network, the shape of its input, and whether Adam trains it."""
    yield "mlp", nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES)), (64, 1, 28, 28), False
    yield "cnn", torch_train.Net(), (64, 1, 28, 28), False
    yield "cnn32", nn.Sequential(conv(3, 32), nn.ReLU(), conv(32, 32), nn.ReLU(), nn.MaxPool2d(2), conv(32, 64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 8 * 8, 128), nn.ReLU(), nn.Linear(128, CLASSES)), (32, 3, 32, 32), False
    yield "transformer", nn.Sequential(nn.TransformerEncoderLayer(256, 4, 1024, dropout=0), nn.TransformerEncoderLayer(256, 4, 1024, dropout=0), nn.Linear(256, CLASSES)), (64, 8, 256), True
    yield "lstm", Recurrent(), (64, 32, 256), True
    thin = [layer for _ in range(200) for layer in (nn.Linear(32, 32), nn.ReLU())]
    yield "thin", nn.Sequential(*thin, nn.Linear(32, CLASSES)), (64, 32), False


def step(net, shape, adam):
    """Returns what takes a training step."""
    x = torch.randn(shape)
    rows = net(x).numel() // CLASSES
    labels = torch.randint(0, CLASSES, (rows,))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4) if adam else torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)

    def take():
        optimizer.zero_grad()
        F.cross_entropy(net(x).reshape(rows, CLASSES), labels).backward()
        optimizer.step()

    return take


def calls(work, rounds):
    """Yields the time of each call, after as many that do not count."""
    for _ in range(rounds):
        work()
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        work()
        yield time.perf_counter_ns() - begin


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    works = {"op_" + name: work for name, work in operations().items()}
    works.update({"step_" + name: step(net, shape, adam) for name, net, shape, adam in networks()})
    print(json.dumps({"Name": "torch " + torch.__version__, "Detail": "Python %s, as many threads" % sys.version.split()[0],
                      "Variants": {name: ["eager"] for name in works}}), file=out, flush=True)
    for line in sys.stdin:
        r = json.loads(line)
        try:
            torch.set_num_threads(r["args"][0])
            answer = {"Value": max(statistics.median(calls(works[r["op"]], r["rounds"])), 1)}
        except Exception as e:
            answer = {"Error": f"{r['op']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
