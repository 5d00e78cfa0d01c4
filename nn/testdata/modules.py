"""Writes modules of PyTorch and what they compute, for modules_test.go: python3 modules.py

modules.pt holds the state dict of each module by its name, modules.safetensors the same tensors with the names joined. modules.json.gz has for each module the
inputs' shapes, what comes out of a second step forward in training, the gradients, buffers and, at last, what comes out in eval mode.
"""
import copy, gzip, io, json, pathlib
import torch, torch.nn as nn

here = pathlib.Path(__file__).parent
torch.set_num_threads(1)


def values(seed, scale, *shape):
    """Numbers in [-scale, scale) that Go computes too, exactly."""
    n = torch.Size(shape).numel()
    v = [((i * 7919 + seed * 104729) % 1009) / 504.5 - 1 for i in range(n)]
    return (torch.tensor(v, dtype=torch.float64) * scale).float().reshape(shape)


def numbers(t):
    return {"shape": list(t.shape), "v": [float(f"{v:.8g}") for v in t.detach().flatten().tolist()]}


cases, all_states = [], {}


def flat(out):
    if isinstance(out, torch.Tensor):
        return [out]
    return [t for o in out if o is not None for t in flat(o)]


def case(name, module, *shapes, forward=None, scale=1):
    """Inputs are values(11), values(12) and so on, of the shapes; parameters by their sorted names values(1), values(2) and so on."""
    forward = forward or (lambda m, *x: m(*x))
    with torch.no_grad():
        for k, (_, p) in enumerate(sorted(module.named_parameters())):
            p.copy_(values(k + 1, scale, *p.shape))
    all_states[name] = copy.deepcopy(module.state_dict())
    module.train()
    inputs = [values(11 + k, 1.5, *s) for k, s in enumerate(shapes)]
    forward(module, *[x.clone() for x in inputs])
    for x in inputs:
        x.requires_grad_()
    out = flat(forward(module, *inputs))
    sum((o * values(77 + k, 1, *o.shape)).sum() for k, o in enumerate(out) if o.requires_grad).backward()
    line = {"module": name, "shapes": [list(s) for s in shapes], "y": [numbers(o) for o in out], "dx": [numbers(x.grad) for x in inputs],
            "grads": {k: numbers(p.grad) for k, p in module.named_parameters()}, "buffers": {k: numbers(b) for k, b in module.named_buffers()}}
    module.eval()
    line["eval"] = [numbers(o) for o in flat(forward(module, *[x.detach() for x in inputs]))]
    cases.append(line)


case("LayerNorm without bias", nn.LayerNorm([5, 4], bias=False), (3, 5, 4))
case("LayerNorm without parameters", nn.LayerNorm(4, elementwise_affine=False), (3, 5, 4))
case("GroupNorm", nn.GroupNorm(3, 6), (2, 6, 4, 3))
case("GroupNorm of features", nn.GroupNorm(2, 6, eps=1e-3), (4, 6))
case("InstanceNorm2d", nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 3))
case("BatchNorm1d", nn.BatchNorm1d(5), (4, 5))
case("BatchNorm1d of sequences", nn.BatchNorm1d(3, momentum=0.3), (2, 3, 5))
case("BatchNorm1d without statistics", nn.BatchNorm1d(3, affine=False, track_running_stats=False), (4, 3))
case("PReLU", nn.PReLU(3), (2, 3, 4))
case("GELU tanh", nn.GELU(approximate="tanh"), (3, 7))
case("Conv2d in groups", nn.Conv2d(4, 6, 3, padding=1, groups=2), (2, 4, 5, 4))
case("Conv2d by channels", nn.Conv2d(3, 6, 3, stride=2, groups=3, bias=False), (2, 3, 6, 5))
case("Conv2d dilated", nn.Conv2d(2, 3, (3, 2), dilation=(2, 3), padding=(2, 1), stride=(1, 2)), (2, 2, 6, 7))
for mode in ("reflect", "replicate", "circular"):
    case(f"Conv2d {mode}", nn.Conv2d(2, 3, 3, padding=(2, 1), padding_mode=mode), (2, 2, 4, 5))
case("Conv2d same", nn.Conv2d(2, 3, (4, 3), padding="same", dilation=(1, 2)), (2, 2, 4, 5))
case("Conv2d same circular", nn.Conv2d(2, 3, (4, 3), padding="same", padding_mode="circular"), (2, 2, 4, 5))
case("Conv1d", nn.Conv1d(2, 3, 3, stride=2, padding=1), (2, 2, 7))
case("Conv1d same dilated in groups", nn.Conv1d(2, 4, 4, padding="same", dilation=2, groups=2, padding_mode="reflect"), (2, 2, 7))
future = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
hidden = torch.tensor([[False, False, False, True], [False, True, False, False]])
case("MultiheadAttention", nn.MultiheadAttention(6, 2), (4, 2, 6), (5, 2, 6), (5, 2, 6), scale=0.5, forward=lambda m, q, k, v: m(q, k, v))
case("MultiheadAttention masked", nn.MultiheadAttention(6, 3, bias=False, batch_first=True), (2, 4, 6), scale=0.5,
     forward=lambda m, x: m(x, x, x, key_padding_mask=hidden, attn_mask=future, need_weights=False)[0])
case("MultiheadAttention of one", nn.MultiheadAttention(6, 2), (4, 6), scale=0.5, forward=lambda m, x: m(x, x, x))
case("MultiheadAttention of other features", nn.MultiheadAttention(6, 2, kdim=5, vdim=3), (4, 2, 6), (5, 2, 5), (5, 2, 3), scale=0.5,
     forward=lambda m, q, k, v: m(q, k, v))
case("MultiheadAttention of other values", nn.MultiheadAttention(6, 2, vdim=4, bias=False, batch_first=True), (2, 3, 6), (2, 4, 6), (2, 4, 4), scale=0.5,
     forward=lambda m, q, k, v: m(q, k, v, key_padding_mask=hidden, need_weights=False)[0])
case("MultiheadAttention to more keys", nn.MultiheadAttention(6, 3, add_bias_kv=True, add_zero_attn=True), (4, 2, 6), scale=0.5,
     forward=lambda m, x: m(x, x, x, key_padding_mask=hidden, attn_mask=future))
case("MultiheadAttention to zeros of one", nn.MultiheadAttention(6, 2, add_zero_attn=True), (4, 6), scale=0.5,
     forward=lambda m, x: m(x, x, x, need_weights=False)[0])
for first in (False, True):
    layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0, norm_first=first, activation="gelu" if first else "relu", batch_first=first)
    case(f"TransformerEncoderLayer {'norm first' if first else 'norm last'}", layer, (2, 4, 6) if first else (4, 2, 6), scale=0.5,
         forward=lambda m, x: m(x, src_mask=future, is_causal=True))
layer = nn.TransformerEncoderLayer(4, 2, 6, dropout=0, batch_first=True)
case("TransformerEncoder", nn.TransformerEncoder(layer, 2, nn.LayerNorm(4)), (2, 4, 4), scale=0.5, forward=lambda m, x: m(x, src_key_padding_mask=None))


def recurrent(m, x, *states):
    y, h = m(x, (states if len(states) > 1 else states[0]) if states else None)
    return (y, *h) if isinstance(h, tuple) else (y, h)


for cls in (nn.LSTM, nn.GRU):
    name, states = cls.__name__, 2 if cls is nn.LSTM else 1
    case(name, cls(3, 4), (5, 2, 3), forward=recurrent)
    case(f"{name} of two layers from states", cls(3, 4, 2), (5, 2, 3), *[(2, 2, 4)] * states, forward=recurrent)
    case(f"{name} both ways", cls(3, 4, 2, bidirectional=True, batch_first=True), (2, 5, 3), forward=recurrent)
    case(f"{name} without biases of one", cls(3, 4, bias=False), (5, 3), *[(1, 4)] * states, forward=recurrent)

case("LSTM projected", nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2), (5, 2, 3), forward=recurrent)
case("LSTM projected from states", nn.LSTM(3, 4, proj_size=2, batch_first=True), (2, 5, 3), (1, 2, 2), (1, 2, 4), forward=recurrent)

torch.save(all_states, here / "modules.pt")
try:
    from safetensors.torch import save_file
    save_file({f"{m}.{k}": v.contiguous() for m, s in all_states.items() for k, v in s.items()}, here / "modules.safetensors", {"format": "pt"})
except ImportError:
    print("no safetensors: that file is not written")
(here / "modules.safetensors").chmod(0o644)
raw = io.BytesIO()
with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=9, mtime=0) as f:
    f.write(json.dumps({"torch": torch.__version__, "modules": cases}, separators=(",", ":")).encode())
(here / "modules.json.gz").write_bytes(raw.getvalue())
print(len(cases), "modules")
