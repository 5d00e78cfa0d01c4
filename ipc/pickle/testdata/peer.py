"""Reads messages as a Python program does, and writes them back.

Each request is a line of JSON: {"pickle": hex, "tensors": n}. The reply is one, too: {"repr": the value's repr, "pickle": hex of the
value pickled again, "tensors": its indices in the order of the new message}. Tensors and arrays are stubs, so neither PyTorch nor
numpy is needed. With {"make": expression} the value is that of the expression, in which T(i), G(i) and A(i) are stubs.
"""

import collections
import io
import json
import pickle
import sys


class Stub:
    def __init__(self, index):
        self.index = index

    def __repr__(self):
        return f"{type(self).__name__}({self.index})"


class T(Stub):
    """A torch.Tensor."""


class G(Stub):
    """A torch.Tensor that requires gradients."""


class A(Stub):
    """A numpy.ndarray."""


class Point:
    """An object of a class that Go does not know."""

    def __init__(self, x):
        self.x = x


class Unpickler(pickle.Unpickler):
    def __init__(self, data, tensors):
        super().__init__(io.BytesIO(data))
        self.tensors, self.seen = tensors, {}

    def persistent_load(self, pid):
        kind, index = (T, pid) if isinstance(pid, int) else ({"n": A, "g": G}[pid[0]], pid[1])
        if not 0 <= index < self.tensors:
            raise pickle.UnpicklingError(f"tensor {index} of {self.tensors}")
        return self.seen.setdefault((kind, index), kind(index))


class Pickler(pickle.Pickler):
    def __init__(self, file):
        super().__init__(file, protocol=5)
        self.order = []

    def persistent_id(self, obj):
        if not isinstance(obj, Stub):
            return None
        if obj.index not in self.order:
            self.order.append(obj.index)
        index = self.order.index(obj.index)
        return index if type(obj) is T else ({A: "n", G: "g"}[type(obj)], index)


names = {"T": T, "G": G, "A": A, "Point": Point, "OrderedDict": collections.OrderedDict}
for line in sys.stdin:
    request = json.loads(line)
    if "make" in request:
        value = eval(request["make"], names)
    else:
        value = Unpickler(bytes.fromhex(request["pickle"]), request["tensors"]).load()
    file = io.BytesIO()
    pickler = Pickler(file)
    pickler.dump(value)
    print(json.dumps({"repr": repr(value), "pickle": file.getvalue().hex(), "tensors": pickler.order}), flush=True)
