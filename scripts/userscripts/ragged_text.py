"""Texts of different lengths, which a collate_fn of the script's own pads."""
import json
import os
import zlib

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

from journal import Journal, arguments


class Reviews(Dataset):
    def __init__(self, path):
        with open(path) as f:
            self.rows = [json.loads(line) for line in f]
        self.shoal_dataset, self.shoal_args = "reviews", {"path": path}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids = [zlib.crc32(word.encode()) % 5000 + 1 for word in self.rows[i]["text"].split()]
        return torch.tensor(ids), self.rows[i]["label"]


def pad(samples):
    """A batch: ids with zeros behind them, lengths, labels."""
    texts, labels = zip(*samples)
    return pad_sequence(texts, batch_first=True), torch.tensor([len(t) for t in texts]), torch.tensor(labels)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(5001, 16, padding_idx=0), nn.Linear(16, 2)

    def forward(self, ids, lengths):
        return self.out(self.embed(ids).sum(1) / lengths.unsqueeze(1))


if __name__ == "__main__":
    args = arguments()
    if args.loader:
        torch.multiprocessing.set_executable(args.loader)  # line one
    torch.set_num_threads(1)
    torch.manual_seed(1)
    loader = DataLoader(Reviews(os.path.join(args.data, "reviews.jsonl")), batch_size=32, shuffle=True, collate_fn=pad,
                        num_workers=2, multiprocessing_context="spawn" if args.loader else None)  # line two
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    journal = Journal(args)
    for epoch in range(args.epochs):
        for ids, lengths, labels in journal.watch(loader):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(ids, lengths), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.5f}")
    journal.close()
