# Writes the files that the tests read, by the PyTorch that runs it: python3 record.py VERSION
import sys

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.bn, self.act = torch.nn.Linear(4, 2), torch.nn.BatchNorm1d(2), torch.nn.ReLU()
        self.register_buffer("passing", torch.ones(1), persistent=False)
        self.tied = self.fc

    def forward(self, x):
        return self.act(self.bn(self.fc(x)))


version = sys.argv[1]
torch.manual_seed(0)
base = torch.arange(12.0).reshape(3, 4)
plain = {"a": base, "t": base.t(), "row": base[1], "p": torch.nn.Parameter(torch.ones(2)), "i": 3, "e": torch.empty(0, 3), "s": torch.tensor(5),
         "list": [torch.ones(2, dtype=torch.bfloat16), (torch.tensor([True, False]), "x")], "size": torch.Size([2]), "dtype": torch.float16}
torch.save(plain, f"plain-{version}.pt")
torch.save(plain, f"legacy-{version}.pt", _use_new_zipfile_serialization=False)
net = Net()
torch.save(net, f"model-{version}.pt")
torch.save(net, f"legacymodel-{version}.pt", _use_new_zipfile_serialization=False)
adam = torch.optim.Adam(net.parameters())
net(torch.ones(4, 4)).sum().backward()
adam.step()
torch.save(adam.state_dict(), f"opt-{version}.pt")
if hasattr(torch, "uint16"):
    young = {}
    for name in "uint16 uint32 uint64 float8_e4m3fn float8_e5m2".split():
        young[name] = torch.arange(6.0).reshape(2, 3).to(getattr(torch, name))
        young[name + " row"] = young[name][1]
    torch.save(young, f"young-{version}.pt")
if version == "2.15":
    quantized = torch.quantize_per_tensor(torch.ones(3), 0.5, 0, torch.qint8)
    conjugated = torch.ones(2, dtype=torch.complex64).conj()
    torch.save({"a": torch.ones(2), "q": quantized, "again": quantized, "n": {"b": conjugated, "c": torch.zeros(3)},
                "list": [1, torch.ones(2).to_sparse()], "s": torch.ones(2).to_sparse()}, f"unsupported-{version}.pt")
