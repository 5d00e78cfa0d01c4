"""The rows of shoal bench layers, done with torch in one thread.

Says hello in one line of JSON, then does what each line of stdin asks for and answers in a line: ns of processor time for a pass.
"""

import json
import os
import sys
import time

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import torch
from torch import nn
from torch.nn import functional as F


def passes():
    """Yields the name of each pass, its parameters, what it does, and the shape of what it gets."""
    norm = nn.LayerNorm(512)
    yield "norm", norm.parameters(), norm, (64, 128, 512)
    yield "gelu", [], F.gelu, (64, 128, 2048)
    yield "softmax", [], lambda x: x.softmax(-1), (64, 8, 128, 128)
    for tokens in (128, 512):
        for name, causal in (("attention", False), ("attention_causal", True)):
            yield f"{name}_{tokens}", [], lambda x, causal=causal: F.scaled_dot_product_attention(x, x, x, is_causal=causal), (2, 8, tokens, 64)
    for hidden in (16, 256):
        for name, layer in (("lstm", nn.LSTM), ("gru", nn.GRU)):
            m = layer(hidden, hidden)
            yield f"{name}_{hidden}", m.parameters(), lambda x, m=m: m(x)[0], (64, 32, hidden)
    encoder = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0)
    yield "encoder", encoder.parameters(), encoder, (128, 8, 256)


def works(passes):
    """Returns what each pass does, forwards and with its gradients."""
    every = {}
    for name, params, forward, shape in passes:
        x, params = torch.randn(shape), list(params)
        wanted = [x.clone().requires_grad_(), *params]
        slope = torch.ones_like(forward(x))

        def infer(forward=forward, x=x):
            with torch.no_grad():
                forward(x)

        def step(forward=forward, wanted=wanted, slope=slope):
            torch.autograd.grad(forward(wanted[0]), wanted, slope)

        every[name], every[name + "_step"] = infer, step
    return every


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not an answer
    torch.set_num_threads(1)
    every = works(passes())
    print(json.dumps({"Name": "torch " + torch.__version__, "Detail": "Python %s, one thread" % sys.version.split()[0],
                      "Variants": {name: ["one thread"] for name in every}}), file=out, flush=True)
    for line in sys.stdin:
        r = json.loads(line)
        try:
            work = every[r["op"]]
            begin = time.process_time_ns()
            for _ in range(r["rounds"]):
                work()
            answer = {"Value": max(time.process_time_ns() - begin, 1) / r["rounds"]}
        except Exception as e:
            answer = {"Error": f"{r['op']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
