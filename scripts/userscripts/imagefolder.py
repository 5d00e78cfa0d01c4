"""torchvision's ImageFolder with transforms of v2, split by a random permutation."""
import os

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

from journal import Journal, arguments

if __name__ == "__main__":
    args = arguments()
    if args.loader:
        torch.multiprocessing.set_executable(args.loader)  # line one
    torch.set_num_threads(1)
    torch.manual_seed(1)
    transform = v2.Compose([
        v2.Resize(36),
        v2.CenterCrop(32),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]),
    ])
    dataset = ImageFolder(os.path.join(args.data, "photographs"), transform=transform)
    loader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=2,
                        multiprocessing_context="spawn" if args.loader else None)  # line two
    model = nn.Sequential(nn.Conv2d(3, 8, 5, 4), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 7 * 7, len(dataset.classes)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    journal = Journal(args)
    for epoch in range(args.epochs):
        right = 0
        for images, labels in journal.watch(loader):
            optimizer.zero_grad()
            logits = model(images)
            nn.functional.cross_entropy(logits, labels).backward()
            optimizer.step()
            right += (logits.argmax(1) == labels).sum().item()
        print(f"epoch {epoch}: {right} of {len(dataset)} right")
    journal.close()
