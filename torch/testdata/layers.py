"""Layers that go to PyTorch and back: the tests' Go process has each by the same name."""
import torch
from torch import nn


def attend(m, q, kv):
    return m(q, kv, kv)


def ids(m, x):
    return m(x.long())


# What makes a module, and how it is called if not by its inputs alone.
LAYERS = {
    "Linear": (lambda: nn.Linear(5, 3), None),
    "Linear without bias": (lambda: nn.Linear(5, 3, bias=False), None),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), None),
    "Conv2d": (lambda: nn.Conv2d(2, 3, 3, padding=1), None),
    "Conv2d in groups": (lambda: nn.Conv2d(4, 6, 3, dilation=2, groups=2, bias=False), None),
    "Conv2d circular": (lambda: nn.Conv2d(2, 4, 3, padding="same", padding_mode="circular"), None),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), None),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), None),
    "LayerNorm": (lambda: nn.LayerNorm((3, 4)), None),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), None),
    "PReLU": (lambda: nn.PReLU(3), None),
    "Embedding": (lambda: nn.Embedding(7, 3, padding_idx=0), ids),
    "Sequential": (lambda: nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.LayerNorm(4), nn.Sequential(nn.GELU(), nn.Linear(4, 2))), None),
    "LSTM": (lambda: nn.LSTM(3, 4), None),
    "LSTM both ways": (lambda: nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True), None),
    "GRU": (lambda: nn.GRU(3, 4, num_layers=2), None),
    "GRU both ways": (lambda: nn.GRU(3, 4, bidirectional=True), None),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(6, 2), attend),
    "MultiheadAttention batch first": (lambda: nn.MultiheadAttention(6, 3, bias=False, batch_first=True), attend),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.1), None),
    "TransformerEncoderLayer norm first": (lambda: nn.TransformerEncoderLayer(6, 2, 8, activation="gelu", norm_first=True, batch_first=True), None),
    "TransformerEncoder": (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), 2, norm=nn.LayerNorm(4)), None),
}


def flat(out):
    if isinstance(out, torch.Tensor):
        return [out]
    return [t for o in out for t in flat(o)]


def computed(m, name, inputs):
    call = LAYERS[name][1] or (lambda m, *x: m(*x))
    # Where nothing has to be derived, an encoder may take a shortcut, which is other code in each version.
    return [t.detach() for t in flat(call(m.eval(), *inputs))]


def exchange(path, out):
    """Loads what Go saved, strictly, and saves what it computes; and modules of its own, as they are."""
    torch.manual_seed(1)
    theirs, ours = torch.load(path), {}
    for name, c in theirs.items():
        m = LAYERS[name][0]()
        m.load_state_dict(c["state"], strict=True)
        got = {"outputs": computed(m, name, c["inputs"]), "order": [k for k, _ in m.named_parameters()]}
        fresh = LAYERS[name][0]()
        if "BatchNorm" in name:
            fresh(*c["inputs"])  # has seen something
        with torch.no_grad():
            for p in fresh.parameters():
                p.add_(torch.rand_like(p) / 8)  # also the parameters that begin with 0 or 1
        got["state"] = fresh.state_dict()
        got["own"] = computed(fresh, name, c["inputs"])
        ours[name] = got
    torch.save(ours, out)
    return sorted(set(LAYERS) - set(theirs))
