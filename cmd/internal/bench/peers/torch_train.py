"""The rows of shoal bench kernels and train, done with torch.

Says hello in one line of JSON, then does what each line of stdin asks for and answers in a line: operations per second, ns per step, samples per second.
"""

import json
import os
import sys
import time

# One thread in every library, unless an operation says otherwise: tuned as well as a user can.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import torch
import torch.multiprocessing as mp
import torch.nn.functional as F

BATCH = 64
POOL = 32  # different batches
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


class Net(torch.nn.Module):
    """The network of PyTorch's MNIST Hogwild example."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = torch.nn.Conv2d(10, 20, kernel_size=5)
        self.conv2_drop = torch.nn.Dropout2d()
        self.fc1 = torch.nn.Linear(320, 50)
        self.fc2 = torch.nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.reshape(-1, 320)))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


class Trainer:
    """Takes steps on images that lie ready."""

    def __init__(self, net, layout):
        self.net = net
        self.sgd = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.5)
        self.images = [torch.randn(BATCH, 1, 28, 28).to(memory_format=layout) for _ in range(POOL)]
        self.labels = [torch.randint(0, 10, (BATCH,)) for _ in range(POOL)]
        self.steps = 0

    def train(self, steps):
        for _ in range(steps):
            i = self.steps % POOL
            self.steps += 1
            self.sgd.zero_grad()
            F.nll_loss(self.net(self.images[i]), self.labels[i]).backward()
            self.sgd.step()


def timed(rounds, work):
    """How long this process computes. Backward has a thread of its own, so it is the time of all threads."""
    begin = time.process_time_ns()
    for _ in range(rounds):
        work()
    return max(time.process_time_ns() - begin, 1)


class Products:
    """Matrices and images, made once for each shape."""

    def __init__(self):
        self.works = {}
        self.order = []  # of the layers of the net, for the row of all of them

    def rate(self, op, args, rounds, variant):
        key = (op, tuple(args), variant)
        if op == "all":
            works = [w for v, w in self.order if v == variant]
            work = lambda: [w() for w in works]
        else:
            if key not in self.works:
                self.works[key] = getattr(self, op)(*args[1:], variant)
                if not (op == "product" and args[1] == args[2] == args[3]):
                    for v in FORMATS if op == "product" else [variant]:
                        self.order.append((v, self.works[key]))
            work = self.works[key]
        return args[0] * rounds * 1e9 / timed(rounds, work)

    def product(self, m, n, k, trans_a, trans_b, add, _):
        a = torch.randn(k, m).t() if trans_a else torch.randn(m, k)
        b = torch.randn(n, k).t() if trans_b else torch.randn(k, n)
        c = torch.zeros(m, n)
        if add:
            return lambda: torch.addmm(c, a, b, out=c)
        return lambda: torch.mm(a, b, out=c)

    def layer(self, channels, side, out, variant):
        layout = FORMATS[variant]
        x = torch.randn(BATCH, channels, side, side).to(memory_format=layout)
        w = torch.randn(out, channels, 5, 5).to(memory_format=layout)
        b = torch.randn(out)
        y = F.conv2d(x, w, b)
        return x, w, b, torch.randn_like(y)

    def conv_forward(self, channels, side, out, variant):
        x, w, b, _ = self.layer(channels, side, out, variant)
        return lambda: F.conv2d(x, w, b)

    def backward(self, channels, side, out, variant, which):
        x, w, b, dy = self.layer(channels, side, out, variant)
        return lambda: torch.ops.aten.convolution_backward(dy, x, w, [out], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, which)

    def conv_filters(self, channels, side, out, variant):
        return self.backward(channels, side, out, variant, [False, True, True])

    def conv_images(self, channels, side, out, variant):
        return self.backward(channels, side, out, variant, [True, False, False])


def race(pipe):
    """What a process does that trains when it is told to: it stays, since to import torch takes longer than to train."""
    while True:
        try:
            net, steps, threads, layout = pipe.recv()
        except EOFError:
            return
        torch.set_num_threads(threads)
        t = Trainer(net, FORMATS[layout])
        t.train(2)
        pipe.send("ready")
        pipe.recv()
        begin = time.perf_counter_ns()
        t.train(steps)
        pipe.send((begin, time.perf_counter_ns()))


class Racers:
    """Processes that train one network without locks: as many as were ever needed."""

    def __init__(self):
        self.pipes = []

    def start(self, workers):
        context = mp.get_context("spawn")
        while len(self.pipes) < workers:
            pipe, theirs = context.Pipe()
            context.Process(target=race, args=(theirs,), daemon=True).start()
            theirs.close()  # so that the pipe ends with the process
            self.pipes.append(pipe)
        return self.pipes[:workers]

    def rate(self, workers, steps, threads, layout):
        pipes, net = self.start(workers), Net().share_memory()
        for p in pipes:
            p.send((net, steps, threads, layout))
        for p in pipes:
            p.recv()
        for p in pipes:
            p.send("go")
        spans = [p.recv() for p in pipes]
        return workers * steps * BATCH * 1e9 / (max(e for _, e in spans) - min(b for b, _ in spans))


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    torch.set_num_threads(1)
    cpus = len(os.sched_getaffinity(0))
    products, trainers, racers = Products(), {}, Racers()
    variants = {op: list(FORMATS) for op in ("conv_forward", "conv_filters", "conv_images", "step", "all")}
    variants["product"] = ["one thread"]
    # With more threads than processors a step takes so long that only the rows which are about that measure it.
    variants["hogwild"] = ["1 thread contiguous"]
    variants["hogwild_alone"] = ["1 thread contiguous"] + ["%d threads contiguous" % cpus] * (cpus > 1)
    variants["hogwild_oversubscribed"] = ["%d threads contiguous" % cpus]
    mkl = "MKL" if torch.backends.mkl.is_available() else "no MKL"
    dnn = "oneDNN" if torch.backends.mkldnn.is_available() else "no oneDNN"
    print(json.dumps({"Name": "torch " + torch.__version__,
                      "Detail": "Python %s, %s, %s, spawn, one thread in each library" % (sys.version.split()[0], mkl, dnn),
                      "Variants": variants}), file=out, flush=True)
    for line in sys.stdin:
        r = json.loads(line)
        op, variant, args, rounds = r["op"], r["variant"], r["args"] or [], r["rounds"]
        try:
            if op == "step":
                if variant not in trainers:
                    trainers[variant] = Trainer(Net().to(memory_format=FORMATS[variant]), FORMATS[variant])
                value = timed(1, lambda: trainers[variant].train(rounds)) / rounds
            elif op.startswith("hogwild"):
                threads, _, layout = variant.split()
                value = racers.rate(args[0], rounds, int(threads), layout)
            else:
                value = products.rate(op, args, rounds, variant)
            answer = {"Value": value}
        except Exception as e:
            answer = {"Error": f"{op}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
