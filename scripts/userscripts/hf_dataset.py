"""A map-style data set of Hugging Face, filtered and shuffled, in a loader of its user's."""
import os

import datasets
import torch
from torch import nn
from torch.utils.data import DataLoader

from huggingface import Tagger
from journal import Journal, arguments

if __name__ == "__main__":
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    datasets.disable_progress_bars()
    dataset = datasets.load_from_disk(os.path.join(args.data, "tokens")).with_format("torch")
    dataset = dataset.train_test_split(0.2, seed=1)["train"]
    context = None
    if args.loader:
        import shoal
        context = shoal.get_context()
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2, multiprocessing_context=context)
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
