"""A Hugging Face Dataset from disk, in the format of torch, as it is given to a DataLoader."""
import os

import datasets
import torch
from torch import nn
from torch.utils.data import DataLoader

from journal import Journal, arguments


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.EmbeddingBag(1000, 16), nn.Linear(16, 2)

    def forward(self, ids):
        return self.out(self.embed(ids))


if __name__ == "__main__":
    args = arguments()
    if args.loader:
        torch.multiprocessing.set_executable(args.loader)  # line one
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dataset = datasets.load_from_disk(os.path.join(args.data, "tokens")).with_format("torch")
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2,
                        multiprocessing_context="spawn" if args.loader else None)  # line two
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    journal = Journal(args)
    for epoch in range(args.epochs):
        for batch in journal.watch(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch["input_ids"]), batch["label"])
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.5f}")
    journal.close()
