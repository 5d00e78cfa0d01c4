"""Records how PyTorch lays out what it makes of operands that lie in any way, for layout_test.go:
python layout.py > layout.txt

A line has the operands as shape and strides, "|", and the result's shape and strides. An operation is neg of one operand,
add of two and where of three.
"""

import math
import random

import torch

random.seed(16)


def operand(shape, dtype):
    """A tensor that broadcasts to shape, with its dimensions in any order, maybe with gaps or stretched."""
    own = [1 if random.random() < 0.15 else n for n in shape[random.choice([0, 0, 0, 1]):]]
    order = list(range(len(own)))
    if random.random() < 0.8:
        random.shuffle(order)
    wide = [own[d] * random.choice([1, 1, 1, 2]) for d in order]
    t = torch.zeros(math.prod(wide), dtype=dtype).reshape(wide)
    for k, d in enumerate(order):
        t = t[(slice(None),) * k + (slice(0, None, wide[k] // own[d]),)]
    t = t.permute([order.index(d) for d in range(len(own))])
    return t.expand(shape) if random.random() < 0.1 else t


def write(t):
    return ",".join(map(str, t.shape)) + " " + ",".join(map(str, t.stride()))


print("#", torch.__version__)
for _ in range(500):
    shape = [random.choice([1, 2, 2, 3, 4, 5]) for _ in range(random.randint(2, 5))]
    kinds = random.choice([[torch.float32], [torch.float32] * 2, [torch.bool] + [torch.float32] * 2])
    of = {1: torch.neg, 2: torch.add, 3: torch.where}[len(kinds)]
    operands = [operand(shape, dt) for dt in kinds]
    if operands[0].dim() > 0:
        print(*map(write, operands), "|", write(of(*operands)))
