"""torchdata's StatefulDataLoader, stopped in the middle of an epoch and resumed from a checkpoint by a new loader."""
import os

import torch
from torch import nn
from torchdata.stateful_dataloader import StatefulDataLoader

from journal import Journal, arguments

WORKERS = 2


def make_loader(args):
    root = os.path.join(args.data, "photographs")
    if args.loader:
        import shoal
        train = shoal.ImageFolder(root, resize=36, crop=32)
    else:
        from torchvision.datasets import ImageFolder
        from torchvision.transforms import CenterCrop, Compose, Resize, ToTensor
        train = ImageFolder(root, Compose([Resize(36), CenterCrop(32), ToTensor()]))
    return StatefulDataLoader(train, batch_size=16, shuffle=True, num_workers=WORKERS)


if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    journal = Journal(args)
    checkpoint = os.path.join(args.journal, "checkpoint.pt")

    def train_on(batches, most=None):
        for step, (images, labels) in enumerate(batches, 1):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if step == most:
                break
        return loss.item()

    for epoch in range(args.epochs):
        loader = make_loader(args)
        print(f"epoch {epoch}, first part: loss {train_on(journal.watch(loader), 3):.5f}")
        torch.save(loader.state_dict(), checkpoint)
        del loader
        loader = make_loader(args)
        loader.load_state_dict(torch.load(checkpoint, weights_only=False))
        print(f"epoch {epoch}, second part: loss {train_on(journal.watch(loader)):.5f}")
    os.remove(checkpoint)
    journal.close()
