"""Writes what PyTorch computes, for the tests of package nn: python3 record.py"""
import json, pathlib, struct
import torch, torch.nn as nn, torch.nn.functional as F

here = pathlib.Path(__file__).parent
torch.set_num_threads(1)


def values(seed, scale, *shape, dtype=torch.float32):
    """Numbers in [-scale, scale) that Go computes too, exactly."""
    n = torch.Size(shape).numel()
    v = [((i * 7919 + seed * 104729) % 1009) / 504.5 - 1 for i in range(n)]
    return (torch.tensor(v, dtype=torch.float64) * scale).to(dtype).reshape(shape)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, 5)
        self.conv2 = nn.Conv2d(10, 20, 5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.view(-1, 320)))
        return F.log_softmax(self.fc2(x), dim=1)


def net():
    m = Net().eval()
    with torch.no_grad():
        for k, p in enumerate(m.parameters()):
            p.copy_(values(k + 1, 2 / p[0].numel() ** 0.5 if p.dim() > 1 else 0.1, *p.shape))
    y = m(values(9, 1, 8, 1, 28, 28))
    loss = F.nll_loss(y, torch.tensor([3, 1, 4, 1, 5, 9, 2, 6]))
    loss.backward()
    numbers = list(y.flatten().tolist()) + [loss.item()]
    for p in m.parameters():
        numbers += p.grad.flatten().tolist()
    (here / "mnist_net.f32").write_bytes(struct.pack(f"<{len(numbers)}f", *numbers))
    (here / "mnist_state.json").write_text(json.dumps({k: list(v.shape) for k, v in m.state_dict().items()}) + "\n")


def numbers(t):
    return [float(f"{v:.9g}") for v in t.detach().flatten().tolist()]


def case(name, layer, x):
    """Two steps forward in training and back, then one forward in eval mode."""
    with torch.no_grad():
        for k, p in enumerate(layer.parameters()):
            p.copy_(values(k + 1, 1, *p.shape))
    layer.train()
    layer(x.detach())
    if x.is_floating_point():
        x.requires_grad_()
    y = layer(x)
    y.backward(values(77, 1, *y.shape))
    return {"layer": name, "shape": list(x.shape), "y": numbers(y), "dx": numbers(x.grad) if x.is_floating_point() else None,
            "grads": {k: numbers(p.grad) for k, p in layer.named_parameters()},
            "buffers": {k: numbers(b) for k, b in layer.named_buffers()},
            "state": {k: list(v.shape) for k, v in layer.state_dict().items()}, "eval": numbers(layer.eval()(x))}


def loss(f, x, target):
    out = []
    for reduction in ["mean", "sum", "none"]:
        x = x.detach().clone().requires_grad_()
        y = f(x, target, reduction=reduction)
        y.backward(values(77, 1, *y.shape))
        out.append({"y": numbers(y), "dx": numbers(x.grad)})
    return out


def layers():
    image = values(5, 2, 3, 2, 5, 4)
    rows = values(6, 3, 4, 6)
    cases = [case(name, layer, x.clone()) for name, layer, x in [
        ("Linear", nn.Linear(6, 3), rows), ("Conv2d", nn.Conv2d(2, 3, 3), image), ("MaxPool2d", nn.MaxPool2d(2), image), ("AvgPool2d", nn.AvgPool2d(2), image),
        ("AvgPool2d moved", nn.AvgPool2d(3, stride=2, padding=1), image), ("BatchNorm2d", nn.BatchNorm2d(2), image), ("LayerNorm", nn.LayerNorm(6), rows), ("LayerNorm of images", nn.LayerNorm([5, 4]), image),
        ("Embedding", nn.Embedding(5, 3), torch.tensor([[1, 4, 1], [0, 1, 3]])), ("Embedding padded", nn.Embedding(5, 3, padding_idx=1), torch.tensor([[1, 4, 1], [0, 1, 3]])), ("ReLU", nn.ReLU(), rows), ("LeakyReLU", nn.LeakyReLU(0.1), rows), ("GELU", nn.GELU(), rows), ("SiLU", nn.SiLU(), rows),
        ("Tanh", nn.Tanh(), rows), ("Sigmoid", nn.Sigmoid(), rows), ("Softmax", nn.Softmax(-1), rows), ("LogSoftmax", nn.LogSoftmax(-1), rows)]]
    classes, probabilities = torch.tensor([3, 0, 5, 1]), values(8, 0.5, 4, 6) + 0.5
    ignoring, weight = torch.tensor([3, -100, 5, 1]), values(7, 0.5, 6) + 0.75
    losses = {"NLL ignoring": loss(F.nll_loss, rows, ignoring), "NLL ignoring 5": loss(lambda *a, **k: F.nll_loss(*a, ignore_index=5, **k), rows, classes),
              "NLL weighted": loss(lambda *a, **k: F.nll_loss(*a, weight=weight, **k), rows, ignoring),
              "CrossEntropy smoothed": loss(lambda *a, **k: F.cross_entropy(*a, label_smoothing=0.2, **k), rows, ignoring),
              "CrossEntropy smoothed and weighted": loss(lambda *a, **k: F.cross_entropy(*a, weight=weight, label_smoothing=0.2, **k), rows, ignoring),
              "BCEWithLogits weighted": loss(lambda *a, **k: F.binary_cross_entropy_with_logits(*a, pos_weight=weight, **k), rows, probabilities),
              "NLL": loss(F.nll_loss, rows, classes), "CrossEntropy": loss(F.cross_entropy, rows, classes), "MSE": loss(F.mse_loss, rows, probabilities),
              "SmoothL1": loss(lambda *a, **k: F.smooth_l1_loss(*a, beta=0.5, **k), rows, probabilities),
              "BCEWithLogits": loss(F.binary_cross_entropy_with_logits, rows, probabilities)}
    (here / "layers.json").write_text(json.dumps({"torch": torch.__version__, "layers": cases, "losses": losses}, separators=(",", ":")) + "\n")


def summary(t):
    """Stands for a tensor: its norm, its product with known numbers, and eight of its elements."""
    t = t.detach().flatten().double()
    return [t.norm().item(), (t * values(99, 1, len(t), dtype=torch.float64)).sum().item()] + t[:: max(1, len(t) // 7)][:8].tolist()


def training():
    """20 steps of the MNIST net from weights and data that Go makes, too."""
    runs = []
    for dtype in [torch.float32, torch.float64]:
        for name, make in {"sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.5), "adam": lambda p: torch.optim.Adam(p, lr=1e-3)}.items():
            m = Net().to(dtype).eval()
            with torch.no_grad():
                for k, p in enumerate(m.parameters()):
                    p.copy_(values(k + 1, 1 / p[0].numel() ** 0.5 if p.dim() > 1 else 0.1, *p.shape, dtype=dtype))
            opt = make(m.parameters())
            losses = []
            for k in range(20):
                x = values(100 + k, 1, 16, 1, 28, 28, dtype=dtype)
                opt.zero_grad()
                y = m(x)
                l = F.nll_loss(y, torch.tensor([(k + 3 * i) % 10 for i in range(16)]))
                l.backward()
                if k == 0:
                    first = {"forward": summary(y), "gradients": {n: summary(p.grad) for n, p in m.named_parameters()}}
                opt.step()
                losses.append(l.item())
            runs.append({"dtype": str(dtype).removeprefix("torch."), "optimizer": name, "losses": losses, **first,
                         "weights": {n: summary(p) for n, p in m.named_parameters()}})
    (here / "training.json").write_text(json.dumps({"torch": torch.__version__, "runs": runs}, separators=(",", ":")) + "\n")


net()
layers()
training()
