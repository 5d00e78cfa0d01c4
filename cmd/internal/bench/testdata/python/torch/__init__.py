"""As much of torch as the peer's script needs, over plain lists that are copied: for tests of the script, not for measuring."""

__version__ = "stand-in"
int64 = "int64"


class Tensor:
    def __init__(self, numel):
        self.values = [1] * min(numel, 1024)

    def numel(self):
        return len(self.values)

    def share_memory_(self):
        return self

    def copy_(self, other):
        self.values[:] = other.values
        return self

    def sum(self):
        return self

    def item(self):
        return sum(self.values)

    def storage(self):
        return self

    def _new_shared(self, numel):
        return Tensor(numel)

    def set_(self, storage, offset, size, stride):
        return storage

    def chunk(self, n):
        return [Rows(self.values[0] * self.numel_all / n) for _ in range(n)]

    def __getitem__(self, index):
        return Slice(self, index)

    def __setitem__(self, index, value):
        pass  # += on a Slice has written already


class Slice:
    def __init__(self, tensor, index):
        self.tensor, self.index = tensor, index

    def __iadd__(self, n):
        self.tensor.values[self.index] = [v + n for v in self.tensor.values[self.index]]
        return self


class Rows:
    """A chunk, of which the sum is all that is asked."""

    def __init__(self, total):
        self.total = total

    def sum(self):
        return self

    def item(self):
        return self.total


def full(shape, value):
    t = Tensor(1)
    t.numel_all = shape[0] * shape[1]
    return t


def ones(numel, dtype):
    return Tensor(numel)


def empty(numel, dtype):
    return Tensor(numel)


def set_num_threads(n):
    pass
