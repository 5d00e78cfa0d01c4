# What files_test.go asks of PyTorch: python3 files.py TASK ARGUMENT…
import pickle
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

version = tuple(map(int, torch.__version__.split(".")[:2]))
modern = version >= (2,)


class Net(nn.Module):  # that of the PyTorch example mnist_hogwild
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = x.view(-1, 320)
        x = F.relu(self.fc1(x))
        x = F.dropout(x, training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)


class Own(torch.Tensor):
    pass


def odd(path, kind, legacy, code):
    """A tensor that a file has in a form of its own, or what code makes of it."""
    x = torch.arange(12.0).view(3, 4)
    make = {
        "quantized": lambda: torch.quantize_per_tensor(x, 0.1, 10, torch.quint8),
        "quantized by channel": lambda: torch.quantize_per_channel(x, torch.ones(3), torch.zeros(3), 0, torch.qint8),
        "quantized to 32 bits": lambda: torch.quantize_per_tensor(x, 0.1, 10, torch.qint32),
        "sparse": lambda: x.to_sparse(),
        "sparse rows": lambda: x.to_sparse_csr(),
        "subclass": lambda: x.as_subclass(Own),
        "nested": lambda: torch.nested.nested_tensor([x, x[:2]]),
        "jagged": lambda: torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged),
    }[kind]
    try:
        tensor = make()
        torch.save(tensor, path, _use_new_zipfile_serialization=legacy != "legacy")
    except Exception as e:  # this PyTorch has no such tensors, or cannot save them so
        print("cannot: %s" % e)
        return
    if code:
        torch.save(eval("x" + code, {"x": tensor, "torch": torch}), path)


def reads(*paths):
    """Every way to read a file gives the same, which is printed."""
    for path in paths:
        print(read(path))


def young():
    """Whether there are dtypes without a class of storages."""
    print(hasattr(torch, "uint16"))


def read(path):
    loaded = [torch.load(path, weights_only=False) if modern else torch.load(path)]
    try:
        loaded.append(torch.load(path, weights_only=True))
        if modern:
            loaded.append(torch.load(path, weights_only=True, mmap=True))
    except Exception as e:  # 1.13 knows no floats there, 2.4 no bytes and no young dtypes, their own neither
        if version >= (2, 5) or not ("operand 71" in str(e) or "_codecs.encode" in str(e) or "torch.uint" in str(e) or "torch.float8" in str(e)):
            raise
    texts = [describe(v) for v in loaded]
    assert len(set(texts)) == 1, texts
    return texts[0]


def describe(v):
    if isinstance(v, torch.nn.Parameter):
        return "Parameter(%s, %s)" % (v.requires_grad, describe(v.data))
    if isinstance(v, torch.Tensor):
        return "%s%s%s@%d" % (str(v.dtype)[6:], list(v.shape), list(v.stride()), v.storage_offset()) + repr(v.tolist())
    if isinstance(v, dict):
        return type(v).__name__ + "{" + ", ".join("%r: %s" % (k, describe(x)) for k, x in v.items()) + "}"
    if isinstance(v, (list, tuple)) and not isinstance(v, torch.Size):
        return type(v).__name__ + "[" + ", ".join(map(describe, v)) + "]"
    return repr(v)


def shares(path):
    """Views of one storage are that; a write to one is seen in the other."""
    v = torch.load(path)
    v["row"].fill_(7)
    print(v["base"].tolist())


def packed(mine, theirs):
    """Sequences from Go unpack, and others are saved; with weights_only neither is read."""
    from torch.nn.utils.rnn import PackedSequence, pack_sequence, unpack_sequence
    torch.save(pack_sequence([torch.ones(2), torch.arange(3.)], enforce_sorted=False), theirs)
    for path in mine, theirs:
        try:
            torch.load(path, weights_only=True)
        except pickle.UnpicklingError:
            continue
        raise AssertionError(path + " was read with weights_only")
    v = torch.load(mine, weights_only=False) if modern else torch.load(mine)
    assert type(v) is PackedSequence, type(v)
    print([x.tolist() for x in unpack_sequence(v)])


def logits(model, images, out):
    """What a network trained in Go makes of images."""
    net = Net()
    net.load_state_dict(torch.load(model, weights_only=True), strict=True)
    net.eval()
    with torch.no_grad():
        torch.save(net(torch.load(images, weights_only=True)), out)


def train(images, model, whole, out):
    """A network trained by PyTorch, as a state_dict and whole, and what it makes of images."""
    torch.manual_seed(1)
    x, net = torch.load(images, weights_only=True), Net()
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
    for _ in range(3):
        sgd.zero_grad()
        F.nll_loss(net(x), torch.arange(len(x)) % 10).backward()
        sgd.step()
    net.eval()
    torch.save(net.state_dict(), model)
    torch.save(net, whole)
    with torch.no_grad():
        torch.save(net(x), out)


def resume(model, optimizer, again):
    """An optimizer goes on from a state that was loaded and saved in Go."""
    net = Net()
    net.load_state_dict(torch.load(model, weights_only=True))
    sgd = torch.optim.Adam(net.parameters())
    if optimizer != "-":
        sgd.load_state_dict(torch.load(optimizer))
    net(torch.ones(2, 1, 28, 28)).sum().backward()
    sgd.step()
    torch.save(sgd.state_dict(), again)


globals()[sys.argv[1]](*sys.argv[2:])
