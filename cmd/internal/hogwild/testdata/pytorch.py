"""What shoal hogwild does, done by PyTorch: its MNIST Hogwild example with the same network, flags and data.

    python3 pytorch.py DIR [SEED]

DIR has the four MNIST files. Prints the accuracy after ten epochs of two workers, one thread each.
"""

import gzip
import os
import sys

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import torch
import torch.multiprocessing as mp
import torch.nn.functional as F

WORKERS, EPOCHS, BATCH, LR, MOMENTUM = 2, 10, 64, 0.01, 0.5


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = torch.nn.Conv2d(10, 20, kernel_size=5)
        self.conv2_drop = torch.nn.Dropout2d()
        self.fc1 = torch.nn.Linear(320, 50)
        self.fc2 = torch.nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.view(-1, 320)))
        return F.log_softmax(self.fc2(F.dropout(x, training=self.training)), dim=1)


def read(folder, part):
    def numbers(kind, header):
        path = os.path.join(folder, "%s-%s-ubyte" % (part, kind))
        with (gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb")) as f:
            return torch.frombuffer(bytearray(f.read()), dtype=torch.uint8)[header:]
    images = numbers("images-idx3", 16).view(-1, 1, 28, 28).float().div(255).sub(0.1307).div(0.3081)
    return images, numbers("labels-idx1", 8).long()


def train(rank, seed, net, images, labels):
    torch.set_num_threads(1)
    torch.manual_seed(seed + rank)
    sgd = torch.optim.SGD(net.parameters(), lr=LR, momentum=MOMENTUM)
    net.train()
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(images)).split(BATCH):
            sgd.zero_grad()
            F.nll_loss(net(images[chosen]), labels[chosen]).backward()
            sgd.step()


def main():
    folder, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    net = Net().share_memory()
    mp.spawn(train, (seed, net, *[t.share_memory_() for t in read(folder, "train")]), WORKERS)
    images, labels = read(folder, "t10k")
    net.eval()
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in zip(images.split(1000), labels.split(1000)))
    print("torch", torch.__version__, "seed", seed, "accuracy", right / len(images))


if __name__ == "__main__":
    main()
