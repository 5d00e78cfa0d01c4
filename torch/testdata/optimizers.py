"""Optimizers and schedulers that go on elsewhere: python3 optimizers.py optimizers-VERSION.pt, or a process of the tests."""
import copy
import sys
import warnings

import torch
from torch import nn, optim

import layers

sched = optim.lr_scheduler
warnings.filterwarnings("ignore")
OLD = torch.__version__.startswith("1.")


def values(seed, *shape):
    """Numbers in [-1, 1) that Go computes as well, exactly."""
    n = 1
    for s in shape:
        n *= s
    return torch.tensor([((i * 7919 + seed * 104729) % 1009) / 504.5 - 1 for i in range(n)], dtype=torch.float64).reshape(shape)


# Two groups of two parameters. The third never has a gradient.
SHAPES = [(3, 2), (2,), (4,), (3,)]
CLASSES = {"SGD": optim.SGD, "Adam": optim.Adam, "AdamW": optim.AdamW, "RMSprop": optim.RMSprop, "Adagrad": optim.Adagrad}
CASES = [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True}), ("SGD", {"momentum": 0.9, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {}), ("Adam", {"amsgrad": True, "betas": (0.8, 0.5), "eps": 1e-3}), ("Adam", {"maximize": True, "weight_decay": 0.1}),
    ("AdamW", {}), ("AdamW", {"amsgrad": True, "weight_decay": 0.2, "betas": (0.0, 0.9)}), ("AdamW", {"maximize": True}),
    ("RMSprop", {}), ("RMSprop", {"momentum": 0.9, "alpha": 0.9}), ("RMSprop", {"centered": True, "weight_decay": 0.1}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "maximize": True}),
    ("Adagrad", {}), ("Adagrad", {"lr_decay": 0.3, "initial_accumulator_value": 0.5, "weight_decay": 0.1}), ("Adagrad", {"maximize": True}),
]
STEPS, MORE = 3, 2

# Before 2.0 a OneCycleLR takes its rates, but not how it anneals, from a state dict.
LINEAR = "linear" if OLD else "cos"

SCHEDULES = {
    "StepLR": (lambda o: sched.StepLR(o, 3, 0.1), lambda o: sched.StepLR(o, 1)),
    "MultiStepLR": (lambda o: sched.MultiStepLR(o, [2, 6, 6], 0.3), lambda o: sched.MultiStepLR(o, [1])),
    "ExponentialLR": (lambda o: sched.ExponentialLR(o, 0.7), lambda o: sched.ExponentialLR(o, 1)),
    "ConstantLR": (lambda o: sched.ConstantLR(o, 0.25, 7), lambda o: sched.ConstantLR(o)),
    "LinearLR": (lambda o: sched.LinearLR(o, 0.2, 0.9, 8), lambda o: sched.LinearLR(o)),
    "PolynomialLR": (lambda o: sched.PolynomialLR(o, 9, 2.0), lambda o: sched.PolynomialLR(o)),
    "CosineAnnealing": (lambda o: sched.CosineAnnealingLR(o, 12, 0.1), lambda o: sched.CosineAnnealingLR(o, 1)),
    "CosineAnnealingWarmRestarts": (lambda o: sched.CosineAnnealingWarmRestarts(o, 3, 2, 0.05), lambda o: sched.CosineAnnealingWarmRestarts(o, 1)),
    "OneCycleLR": (lambda o: sched.OneCycleLR(o, [0.5, 0.25], 20, cycle_momentum=False), lambda o: sched.OneCycleLR(o, 1, 2, cycle_momentum=False)),
    "CyclicLR": (lambda o: sched.CyclicLR(o, [0.1, 0.2], [0.5, 0.6], 3, 4, cycle_momentum=False), lambda o: sched.CyclicLR(o, 0, 1, cycle_momentum=False)),
    "CyclicLR triangular2": (lambda o: sched.CyclicLR(o, 0.1, 0.5, 3, mode="triangular2", cycle_momentum=False), lambda o: sched.CyclicLR(o, 0, 1, mode="triangular2", cycle_momentum=False)),
    "CyclicLR exp_range": (lambda o: sched.CyclicLR(o, 0.1, 0.5, 3, mode="exp_range", gamma=0.9, cycle_momentum=False),
                           lambda o: sched.CyclicLR(o, 0, 1, mode="exp_range", cycle_momentum=False)),
    "OneCycleLR momentum": (lambda o: sched.OneCycleLR(o, [0.5, 0.25], 20), lambda o: sched.OneCycleLR(o, 1, 2)),
    "OneCycleLR momentum in three phases": (lambda o: sched.OneCycleLR(o, [0.5, 0.25], 20, three_phase=True, anneal_strategy="linear"),
                                            lambda o: sched.OneCycleLR(o, 1, 2, anneal_strategy=LINEAR)),
    "CyclicLR momentum": (lambda o: sched.CyclicLR(o, [0.1, 0.2], [0.5, 0.6], 3, 4, base_momentum=[0.5, 0.6], max_momentum=[0.75, 0.9]),
                          lambda o: sched.CyclicLR(o, 0, 1)),
    "LambdaLR": (lambda o: sched.LambdaLR(o, lambda e: 1 / (1 + e)), lambda o: sched.LambdaLR(o, lambda e: 1 / (1 + e))),
    "SequentialLR": (lambda o: sched.SequentialLR(o, [sched.LinearLR(o, 0.1, 1.0, 4), sched.ExponentialLR(o, 0.5), sched.ConstantLR(o, 0.25, 2)], [4, 7]),
                     lambda o: sched.SequentialLR(o, [sched.LinearLR(o), sched.ExponentialLR(o, 1), sched.ConstantLR(o)], [1, 2])),
}
# PyTorch itself could not save these before 2.0: they refer to themselves.
UNSAVED = {k for k in SCHEDULES if OLD and ("Cycl" in k)}
EPOCHS, LATER = 5, 8
PLATEAU = dict(mode="max", factor=0.5, patience=1, threshold=0.08, threshold_mode="abs", cooldown=2, min_lr=0.01)
MEASURES = [1.0, 1.1, 1.1, 1.1, 1.05, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2]


def parameters(dtype):
    return [nn.Parameter(values(j, *s).to(dtype)) for j, s in enumerate(SHAPES)]


def optimizer(kind, ps, **options):
    return CLASSES[kind]([{"params": ps[:2], "lr": 0.1}, {"params": ps[2:], "lr": 0.01}], lr=1.0, **options)


def train(o, ps, first, steps):
    for k in range(first, first + steps):
        for j, p in enumerate(ps):
            p.grad = None if j == 2 else values(10 * k + j, *p.shape).to(p.dtype)
        o.step()


def copied(v):
    """What stays as it is."""
    return copy.deepcopy({k: w.detach() for k, w in v.items()} if "0" in v else v)


def trained(kind, options, dtype=torch.float64):
    ps = parameters(dtype)
    o = optimizer(kind, ps, **options)
    begin = copied(o.state_dict())
    train(o, ps, 0, STEPS)
    out = {"kind": kind, "begin": begin, "state": copied(o.state_dict()), "params": copied({str(i): p for i, p in enumerate(ps)})}
    train(o, ps, STEPS, MORE)
    out["after"] = copied({str(i): p for i, p in enumerate(ps)})
    return out


def sgd():
    ps = parameters(torch.float64)
    return optim.SGD([{"params": ps[:2]}, {"params": ps[2:], "lr": 0.25}], lr=0.5)


def rates(o, s, epochs):
    """The rates of the groups at each epoch, and their momenta if the schedule cycles them."""
    out = []
    for _ in range(epochs):
        cycled = [g["momentum"] for g in o.param_groups] if getattr(s, "cycle_momentum", False) else []
        out.append([g["lr"] for g in o.param_groups] + cycled)
        o.step()
        s.step()
    return out


def scheduled(kind):
    o = sgd()
    s = SCHEDULES[kind][0](o)
    rates(o, s, EPOCHS)
    out = {"kind": kind, "optimizer": copied(o.state_dict())}
    if kind not in UNSAVED:
        out["state"] = copied(s.state_dict())
    out["rates"] = rates(o, s, LATER)
    return out


def measured(o, s, measures):
    out = []
    for m in measures:
        o.step()
        s.step(m)
        out.append(o.param_groups[0]["lr"])
    return out


def plateau():
    o = optim.SGD(parameters(torch.float64), lr=0.5)
    s = sched.ReduceLROnPlateau(o, **PLATEAU)
    measured(o, s, MEASURES[:EPOCHS])
    state = copied(s.state_dict())
    return {"state": state, "rates": measured(o, s, MEASURES[EPOCHS:]), "measures": MEASURES}


def record(path):
    """Trains here, and saves what somebody goes on from, and where that leads."""
    torch.save({"cases": [trained(*c) for c in CASES] + [trained("Adam", {}, torch.float32)],
                "schedules": [scheduled(k) for k in SCHEDULES], "plateau": plateau()}, path)


def resume(path, out):
    """Goes on from what Go has trained, and saves where that leads."""
    theirs = torch.load(path, weights_only=not OLD)  # 1.13 takes no floats with it, its own neither
    after, later = [], []
    for c in theirs["cases"]:
        ps = [nn.Parameter(c["params"][str(i)]) for i in range(len(SHAPES))]
        o = optimizer(c["kind"], ps)
        o.load_state_dict(c["state"])
        train(o, ps, STEPS, MORE)
        after.append({str(i): p.detach() for i, p in enumerate(ps)})
    for c in theirs["schedules"]:
        o = sgd()
        s = SCHEDULES[c["kind"]][1](o)
        s.load_state_dict(c["state"])
        o.load_state_dict(c["optimizer"])
        later.append(rates(o, s, LATER))
    o = optim.SGD(parameters(torch.float64), lr=theirs["lr"])
    s = sched.ReduceLROnPlateau(o)
    s.load_state_dict(theirs["plateau"])
    torch.save({"after": after, "rates": later, "plateau": measured(o, s, MEASURES[EPOCHS:])}, out)


def run(conn):
    while True:
        try:
            name, *args = conn.recv()
        except EOFError:
            return
        conn.send({"record": record, "resume": resume, "exchange": layers.exchange}[name](*args))


if __name__ == "__main__":
    record(sys.argv[1])
