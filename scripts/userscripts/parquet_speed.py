#!/usr/bin/env python3
"""Times the samples of Parquet files of several sizes, in order and shuffled, by Python workers and by Go workers, by turns.

The Python data set reads the table and returns t[column][i].as_py(), as a script would first write it. Each file has one row group
for 1,048,576 rows, the default of PyArrow. Both sides have two workers, batches of 64 and default options. Lists are padded in the
batch, nested lists too: by a collate_fn of the Python script, and by the option pad.

A figure is samples per second after the first batch, for --seconds or twice the time that the first batch took, whichever is longer,
with the starts of further epochs: all workers of a shuffled file decode it in this time. The first batch comes with its own figure,
from the construction of the data set. Medians of the turns are printed as they are made, and at the end one line of
JSON. A row whose turns differ by more than a fifth is marked as noisy."""
import argparse
import gc
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

import numpy as np
import pyarrow
import pyarrow.parquet
import torch
import torch.utils.data as data
from torch.nn.utils.rnn import pad_sequence

import shoal

WORKERS, BATCH = 2, 64
CHUNK = 20_000  # rows that are made at once


def numbers(rng, n):
    return {"x": pyarrow.array(rng.integers(0, 1 << 40, n)), "y": pyarrow.array(rng.random(n, dtype=np.float32))}


def strings(rng, n):
    words = np.array([f"word{k * 7919 % 100_003}" for k in range(30_000)])
    lengths = rng.integers(2, 30, n)
    parts = np.split(words[rng.integers(0, len(words), lengths.sum())], np.cumsum(lengths)[:-1])
    return {"text": pyarrow.array([" ".join(p) for p in parts])}


def lists(rng, values, lengths):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pyarrow.ListArray.from_arrays(offsets, values)


def tokens(rng, n):
    lengths = rng.integers(20, 380, n)
    return {"ids": lists(rng, pyarrow.array(rng.integers(0, 32_000, lengths.sum())), lengths)}


def nested(rng, n):
    """Two to eight lists of 5 to 60 numbers in each row."""
    outer = rng.integers(2, 9, n)
    inner = rng.integers(5, 61, outer.sum())
    return {"turns": lists(rng, lists(rng, pyarrow.array(rng.integers(0, 32_000, inner.sum())), inner), outer)}


def make_file(path, kind, size, rng):
    """Writes a file of about size bytes and returns its number of rows."""
    probe = pyarrow.table(kind(rng, 2_000))
    pyarrow.parquet.write_table(probe, path)
    n = max(200, int(size / (os.path.getsize(path) / 2_000)))
    parts = [pyarrow.table(kind(rng, min(CHUNK, n - at))) for at in range(0, n, CHUNK)]
    pyarrow.parquet.write_table(pyarrow.concat_tables(parts), path)
    return n


class Rows(data.Dataset):
    def __init__(self, path):
        self.table = pyarrow.parquet.read_table(path)

    def __len__(self):
        return self.table.num_rows

    def __getitem__(self, i):
        return {name: self.table[name][i].as_py() for name in self.table.column_names}


def pad_tokens(samples):
    return {"ids": pad_sequence([torch.tensor(s["ids"]) for s in samples], batch_first=True)}


def pad_nested(samples):
    """A tensor of the rows' lists, filled up with zeros."""
    turns = [[torch.as_tensor(t) for t in s["turns"]] for s in samples]
    width = max(len(t) for s in turns for t in s)
    out = torch.zeros(len(turns), max(map(len, turns)), width, dtype=torch.int64)
    for i, row in enumerate(turns):
        for j, t in enumerate(row):
            out[i, j, :len(t)] = t
    return {"turns": out}


KINDS = {"numbers": (numbers, None, None), "strings": (strings, None, None), "tokens": (tokens, pad_tokens, 0),
         "nested": (nested, pad_nested, 0)}


def loader(dataset, shuffle, collate=None):
    return data.DataLoader(dataset, batch_size=BATCH, shuffle=shuffle, num_workers=WORKERS, collate_fn=collate)


def python_loader(path, kind, shuffle):
    return loader(Rows(path), shuffle, KINDS[kind][1])


def go_loader(path, kind, shuffle):
    pad = KINDS[kind][2]
    return loader(shoal.Parquet(path, pad=pad), shuffle, KINDS[kind][1] if pad is None else None)


def rate(make, path, kind, shuffle, seconds):
    """Returns the seconds until the first batch, and the samples per second after it."""
    gc.collect()
    began, first, n = time.perf_counter(), None, 0
    batches = make(path, kind, shuffle)
    while True:
        for batch in batches:
            now = time.perf_counter()
            if first is None:
                first = now
                continue
            n += len(next(iter(batch.values())))
            if now - first > max(seconds, 2 * (first - began)):
                return first - began, n / (now - first)


def measure(path, kind, shuffle, seconds, turns):
    """Returns the medians of the turns for each side: the first batch, the rate, and the spread of the rates."""
    makes = {"python": python_loader, "go": go_loader}
    found = {name: [] for name in makes}
    for turn in range(turns):
        for name in list(makes) if turn % 2 == 0 else list(makes)[::-1]:
            found[name].append(rate(makes[name], path, kind, shuffle, seconds))
    row = {"first": {}, "rate": {}, "spread": {}}
    for name, pairs in found.items():
        rates = [r for _, r in pairs]
        row["first"][name] = round(statistics.median(first for first, _ in pairs), 2)
        row["rate"][name] = round(statistics.median(rates))
        row["spread"][name] = round((max(rates) - min(rates)) / statistics.median(rates), 2)
    row["ratio"] = round(row["rate"]["go"] / row["rate"]["python"], 2)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    torch.set_num_threads(1)
    root = tempfile.mkdtemp(prefix="parquet-speed-")
    result = []
    try:
        path = os.path.join(root, "rows.parquet")
        for size in args.megabytes:
            for kind in args.kinds:
                n = make_file(path, KINDS[kind][0], size * 1e6, np.random.default_rng(1))
                for shuffle in (False, True):
                    row = {"kind": kind, "bytes": os.path.getsize(path), "rows": n, "shuffled": shuffle,
                           **measure(path, kind, shuffle, args.seconds, args.turns)}
                    result.append(row)
                    print(f"{kind}, {row['bytes'] / 1e6:,.1f} MB, {'shuffled' if shuffle else 'in order'}: "
                          f"python {row['rate']['python']:,}/s, go {row['rate']['go']:,}/s, {row['ratio']} ×; the first batch "
                          f"after {row['first']['python']} and {row['first']['go']} s"
                          + (" (noisy)" if max(row["spread"].values()) > 0.2 else ""))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
