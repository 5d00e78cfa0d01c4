"""Writes what PyTorch computes, for the tests of package nn. Run with PyTorch 2.9.1: python3 record.py"""
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


net()
