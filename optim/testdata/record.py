"""Writes what PyTorch's optimizers do, for the tests of package optim: python3 record.py > optimizers.json"""
import json, sys
import torch
from torch import nn, optim


def values(seed, n):
    """Numbers in [-1, 1) that Go computes too, exactly."""
    return torch.tensor([((i * 7919 + seed * 104729) % 1009) / 504.5 - 1 for i in range(n)], dtype=torch.float64)


def steps(kind, options):
    p = nn.Parameter(values(1, 7))
    opt = {"sgd": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW, "rmsprop": optim.RMSprop}[kind]([p], lr=0.1, **options)
    out = []
    for k in range(5):
        p.grad = values(k + 2, 7)
        opt.step()
        out.append(p.detach().tolist())
    return {"kind": kind, "options": options, "steps": out}


def schedule(kind, make, epochs, **arguments):
    opt = optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
    s = make(opt, **arguments)
    out = []
    for _ in range(epochs):
        out.append(opt.param_groups[0]["lr"])
        opt.step()
        s.step()
    return {"kind": kind, "arguments": list(arguments.values()), "rates": out}


def clip(limit):
    ps = [nn.Parameter(values(1, 7)), nn.Parameter(values(2, 3)), nn.Parameter(values(3, 2))]
    ps[0].grad, ps[1].grad = values(4, 7), values(5, 3)
    norm = nn.utils.clip_grad_norm_(ps, limit)
    return {"limit": limit, "norm": norm.item(), "gradients": ps[0].grad.tolist() + ps[1].grad.tolist()}


json.dump({
    "torch": torch.__version__,
    "steps": [steps(*c) for c in [
        ("sgd", {}), ("sgd", {"momentum": 0.5}), ("sgd", {"momentum": 0.9, "dampening": 0.3}), ("sgd", {"weight_decay": 0.1}),
        ("sgd", {"momentum": 0.9, "weight_decay": 0.01, "nesterov": True}), ("sgd", {"momentum": 0.8, "dampening": 0.1, "weight_decay": 0.2}),
        ("adam", {}), ("adam", {"betas": [0.8, 0.9], "eps": 1e-3}), ("adam", {"betas": [0.0, 0.9]}), ("adam", {"betas": [0.8, 0.0], "eps": 1e-3}), ("adam", {"weight_decay": 0.1}), ("adamw", {}), ("adamw", {"weight_decay": 0.2, "betas": [0.5, 0.95]}),
        ("rmsprop", {}), ("rmsprop", {"alpha": 0.9, "eps": 1e-3}), ("rmsprop", {"alpha": 0.0}), ("rmsprop", {"centered": True}), ("rmsprop", {"momentum": 0.9}),
        ("rmsprop", {"momentum": 0.5, "centered": True, "weight_decay": 0.1})]],
    "schedules": [schedule("StepLR", optim.lr_scheduler.StepLR, 8, step_size=3, gamma=0.1),
                  schedule("CosineAnnealing", optim.lr_scheduler.CosineAnnealingLR, 9, T_max=6, eta_min=0.1)],
    "clips": [clip(limit) for limit in [0.5, 100.0, 0.0]],
}, sys.stdout, indent=1)
print()
