"""Writes what PyTorch's optimizers do, for the tests of package optim: python3 record.py > optimizers.json"""
import json, sys
import torch
from torch import nn, optim


def values(seed, n):
    """Numbers in [-1, 1) that Go computes too, exactly."""
    return torch.tensor([((i * 7919 + seed * 104729) % 1009) / 504.5 - 1 for i in range(n)], dtype=torch.float64)


def steps(kind, options):
    p = nn.Parameter(values(1, 7))
    opt = {"sgd": optim.SGD, "adam": optim.Adam, "adamw": optim.AdamW, "rmsprop": optim.RMSprop, "adagrad": optim.Adagrad}[kind]([p], lr=0.1, **options)
    out = []
    for k in range(5):
        p.grad = values(k + 2, 7)
        opt.step()
        out.append(p.detach().tolist())
    return {"kind": kind, "options": options, "steps": out}


def schedule(kind, make, epochs, **arguments):
    opt = optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
    s = make(opt, **arguments)
    rates, momenta = [], []
    for _ in range(epochs):
        rates.append(opt.param_groups[0]["lr"])
        momenta.append(opt.param_groups[0]["momentum"])
        opt.step()
        s.step()
    return {"kind": kind, "arguments": arguments, "rates": rates, "momenta": momenta}


def plateau(measures, **options):
    opt = optim.SGD([nn.Parameter(torch.zeros(1))], lr=0.5)
    s = optim.lr_scheduler.ReduceLROnPlateau(opt, **options)
    rates = []
    for m in measures:
        opt.step()
        s.step(m)
        rates.append(opt.param_groups[0]["lr"])
    return {"options": options, "measures": [None if m != m else m for m in measures], "rates": rates}


def sequential(opt, milestones):
    sched = optim.lr_scheduler
    return sched.SequentialLR(opt, [sched.LinearLR(opt, 0.1, 1.0, 4), sched.ExponentialLR(opt, 0.5), sched.ConstantLR(opt, 0.25, 2)], milestones)


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
        ("rmsprop", {"momentum": 0.5, "centered": True, "weight_decay": 0.1}),
        ("sgd", {"maximize": True}), ("sgd", {"maximize": True, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
        ("adam", {"maximize": True, "weight_decay": 0.1}), ("adamw", {"maximize": True, "weight_decay": 0.2}),
        ("rmsprop", {"maximize": True, "weight_decay": 0.1}), ("rmsprop", {"maximize": True, "momentum": 0.5, "centered": True}),
        ("adam", {"amsgrad": True, "betas": [0.8, 0.5]}), ("adam", {"amsgrad": True, "weight_decay": 0.1, "maximize": True, "betas": [0.8, 0.5]}),
        ("adamw", {"amsgrad": True, "betas": [0.5, 0.6]}),
        ("adagrad", {}), ("adagrad", {"lr_decay": 0.3, "eps": 1e-3}), ("adagrad", {"initial_accumulator_value": 0.5, "weight_decay": 0.1}),
        ("adagrad", {"maximize": True, "weight_decay": 0.1})]],
    "schedules": [schedule("StepLR", optim.lr_scheduler.StepLR, 8, step_size=3, gamma=0.1),
                  schedule("CosineAnnealing", optim.lr_scheduler.CosineAnnealingLR, 9, T_max=6, eta_min=0.1),
                  schedule("MultiStepLR", optim.lr_scheduler.MultiStepLR, 9, milestones=[2, 5, 5], gamma=0.3),
                  schedule("ExponentialLR", optim.lr_scheduler.ExponentialLR, 5, gamma=0.7),
                  schedule("ConstantLR", optim.lr_scheduler.ConstantLR, 6, factor=0.25, total_iters=3),
                  schedule("LinearLR", optim.lr_scheduler.LinearLR, 7, start_factor=0.2, end_factor=0.9, total_iters=4),
                  schedule("PolynomialLR", optim.lr_scheduler.PolynomialLR, 7, total_iters=5, power=2.0),
                  schedule("CosineAnnealingWarmRestarts", optim.lr_scheduler.CosineAnnealingWarmRestarts, 20, T_0=3, T_mult=2, eta_min=0.05),
                  schedule("CosineAnnealingWarmRestarts", optim.lr_scheduler.CosineAnnealingWarmRestarts, 9, T_0=4, T_mult=1, eta_min=0.0),
                  schedule("OneCycleLR", optim.lr_scheduler.OneCycleLR, 20, max_lr=0.5, total_steps=20),
                  schedule("OneCycleLR", optim.lr_scheduler.OneCycleLR, 15, max_lr=0.5, total_steps=15, pct_start=0.4, div_factor=10.0, final_div_factor=100.0, anneal_strategy="linear"),
                  schedule("OneCycleLR", optim.lr_scheduler.OneCycleLR, 21, max_lr=0.5, total_steps=21, three_phase=True),
                  schedule("CyclicLR", optim.lr_scheduler.CyclicLR, 14, base_lr=0.1, max_lr=0.5, step_size_up=3, step_size_down=4, cycle_momentum=False),
                  schedule("CyclicLR", optim.lr_scheduler.CyclicLR, 14, base_lr=0.1, max_lr=0.5, step_size_up=3, mode="triangular2", cycle_momentum=False),
                  schedule("CyclicLR", optim.lr_scheduler.CyclicLR, 14, base_lr=0.1, max_lr=0.5, step_size_up=3, mode="exp_range", gamma=0.9, cycle_momentum=False),
                  schedule("OneCycleLR", optim.lr_scheduler.OneCycleLR, 12, max_lr=0.5, total_steps=12, anneal_strategy="linear", three_phase=True, base_momentum=0.5, max_momentum=0.75),
                  schedule("OneCycleLR", optim.lr_scheduler.OneCycleLR, 12, max_lr=0.5, total_steps=12, cycle_momentum=False),
                  schedule("CyclicLR", optim.lr_scheduler.CyclicLR, 14, base_lr=0.1, max_lr=0.5, step_size_up=3, step_size_down=4),
                  schedule("CyclicLR", optim.lr_scheduler.CyclicLR, 14, base_lr=0.1, max_lr=0.5, step_size_up=3, mode="triangular2", base_momentum=0.25, max_momentum=0.75),
                  schedule("CyclicLR", optim.lr_scheduler.CyclicLR, 14, base_lr=0.1, max_lr=0.5, step_size_up=3, mode="exp_range", gamma=0.9, base_momentum=0.5),
                  schedule("LambdaLR", lambda opt: optim.lr_scheduler.LambdaLR(opt, lambda epoch: 1 / (1 + epoch)), 5),
                  schedule("SequentialLR", sequential, 12, milestones=[4, 7])],
    "plateaus": [plateau([1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.8, 0.8, 0.8, 0.8], patience=1),
                 plateau([1.0, 1.1, 1.1, 1.1, 1.1, 1.05, 1.2, 1.2, 1.2, 1.2], patience=0, mode="max", factor=0.5, cooldown=2, threshold=0.08, threshold_mode="abs"),
                 plateau([1.0] * 12, patience=1, factor=0.1, min_lr=0.01), plateau([float("nan"), 1.0, float("nan"), float("nan"), 0.99995, 0.5], patience=0, mode="min"),
                 plateau([-1.0, -1.0, -0.5, -2.0, -2.0], patience=0)],
    "clips": [clip(limit) for limit in [0.5, 100.0, 0.0]],
}, sys.stdout, indent=1)
print()
