"""A streaming data set of Hugging Face. Go does not read it: its workers are Python, and a line on stderr says so."""
import glob
import os

import datasets
import torch
from torch import nn
from torch.utils.data import DataLoader

from journal import Journal, arguments

if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    datasets.disable_progress_bars()
    paths = sorted(glob.glob(os.path.join(args.data, "shards", "*.jsonl")))
    dataset = datasets.load_dataset("json", data_files=paths, split="train", streaming=True).with_format("torch")
    context = None
    if args.loader:
        import shoal
        context = shoal.get_context()
    loader = DataLoader(dataset, batch_size=32, num_workers=2, multiprocessing_context=context)
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    journal = Journal(args)
    for epoch in range(args.epochs):
        for batch in journal.watch(loader):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(batch["x"].float()).squeeze(1), batch["y"].float())
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.5f}")
    journal.close()
