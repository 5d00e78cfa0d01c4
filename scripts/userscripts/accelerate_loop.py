"""A loop of Hugging Face Accelerate: a prepared loader, skip_first_batches, and a loader that is dispatched from the first process."""
import os

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import CenterCrop, Compose, Resize, ToTensor

from journal import Journal, arguments

if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    root = os.path.join(args.data, "photographs")
    if args.loader:
        import shoal
        train = shoal.ImageFolder(root, resize=36, crop=32)
    else:
        train = ImageFolder(root, Compose([Resize(36), CenterCrop(32), ToTensor()]))
    journal = Journal(args)
    for dispatch in False, True:
        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=dispatch))
        model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        loader = DataLoader(train, batch_size=16, shuffle=True, num_workers=2)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for epoch in range(args.epochs):
            batches = accelerator.skip_first_batches(loader, 2) if epoch == 0 else loader  # as after a restart
            for images, labels in journal.watch(batches):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(images), labels)
                accelerator.backward(loss)
                optimizer.step()
            print(f"dispatched {dispatch}, epoch {epoch}: loss {loss.item():.5f}")
        accelerator.free_memory()
    journal.close()
