"""Loads data sets of Hugging Face by Python and by a Go program, and compares the batches bit by bit."""
import json
import os
import sys

import datasets
import numpy as np
import torch
from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, SequentialSampler, Subset

from compared import batches, out, refused, same, spawn

datasets.disable_progress_bars()


def halved(batch):
    return {"a": torch.tensor(batch["a"]) / 2}


def rows(n):
    rng = np.random.default_rng(1)
    for i in range(n):
        yield dict(a=i - 3, b=i % 3 == 0, x=float(rng.normal()), text=f"row {i} ä", ids=rng.integers(0, 9, 4).tolist(),
                   weights=[i / 3, 1.0, -i * 1e-3], words=[f"w{i}", "v"], flags=[True, i % 2 == 0],
                   pair={"l": i, "r": [i, i + 1]}, nest=[[i, 1], [2, 3]])


if __name__ == "__main__":
    torch.multiprocessing.set_executable(sys.argv[1])
    root = sys.argv[2]
    with open(f"{root}/rows.jsonl", "w") as f:
        f.writelines(json.dumps(r) + "\n" for r in rows(40))
    cache = f"{root}/cache"
    load = lambda path=f"{root}/rows.jsonl": datasets.load_dataset("json", data_files=path, split="train", cache_dir=cache)
    ds = load()
    flat = ds.remove_columns(["pair", "nest", "words"])
    tensors = flat.with_format("torch")
    out["versions"] = f"datasets {datasets.__version__}, torch {torch.__version__}"

    same("python format", ds)
    same("torch format", tensors)
    same("in turn, shuffled", tensors, sampler=torch.randperm(40, generator=torch.Generator().manual_seed(1)).tolist())
    same("columns", ds.with_format("torch", columns=["x", "a"]))
    same("columns of python", ds.with_format(None, columns=["words", "nest"]))
    same("renamed", tensors.rename_column("a", "label"))
    same("selected columns", ds.select_columns(["text", "a"]))
    for name, of in (("python", flat), ("torch", tensors)):
        same(f"select {name}", of.select([7, 3, 3, 39, 0]))
        same(f"select a range {name}", of.select(range(5, 33)))
        same(f"range of a range {name}", of.select(range(5, 33)).select(range(2, 9)))
        same(f"shuffle {name}", of.shuffle(seed=3))
        same(f"shuffle, then a range {name}", of.shuffle(seed=3).select(range(10)))
        same(f"shard {name}", of.shard(3, 1))
        parts = of.train_test_split(0.25, seed=5)
        same(f"split, train {name}", parts["train"])
        same(f"split, test {name}", parts["test"])
        same(f"Subset {name}", Subset(of, [4, -1, 2]))
        same(f"ConcatDataset {name}", ConcatDataset([of, parts["test"]]))
        same(f"concatenate {name}", datasets.concatenate_datasets([of, of.select(range(3)), parts["test"].flatten_indices()]))
    mapped = flat.map(lambda r: {"twice": r["a"] * 2, "square": float(r["a"]) ** 2})
    same("map", mapped.with_format("torch"))
    same("filter", flat.filter(lambda r: r["b"]).with_format("torch"))
    same("sort", flat.sort("x").with_format("torch"))
    flat.save_to_disk(f"{root}/saved", num_shards=3)
    same("load_from_disk", datasets.load_from_disk(f"{root}/saved").with_format("torch"))
    memory = datasets.Dataset.from_dict({"a": [1, 2, 3, 4], "t": list("wxyz"), "ids": [[1, 2], [3, 4], [5, 6], [7, 8]]})
    same("in memory", memory)
    same("in memory, torch", memory.with_format("torch"))
    same("in memory, select", memory.with_format("torch").select([3, 0]))
    same("in memory, a slice", memory.select(range(1, 4)))
    same("keep_in_memory", datasets.load_dataset("json", data_files=f"{root}/rows.jsonl", split="train", cache_dir=cache, keep_in_memory=True).select_columns(["a", "x"]))
    types = {}
    for i, name in enumerate(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float16", "float32", "float64", "bool")):
        types[name] = datasets.Value(name)
        types["list of " + name] = datasets.List(datasets.Value(name), length=2 if i % 2 else -1)
    values = {k: [([i % 2, 1] if "list" in k else i % 2) for i in range(9)] for k in types}
    typed = datasets.Dataset.from_dict(values, features=datasets.Features(types))
    typed.save_to_disk(f"{root}/typed")
    typed = datasets.load_from_disk(f"{root}/typed")
    same("types", typed)
    same("types, torch", typed.with_format("torch"))
    same("types, torch, a slice", typed.with_format("torch").select(range(3, 8)))
    labelled = datasets.Dataset.from_dict({"y": [0, 1, 1], "s": ["a", "b", "c"]},
                                          features=datasets.Features(y=datasets.ClassLabel(names=["no", "yes"]), s=datasets.Value("large_string")))
    same("classes", labelled.with_format("torch"))
    ragged = datasets.Dataset.from_dict({"ids": [[1, 2], [], [3]], "x": [[0.5], [], [1.5, 2]]})
    ragged.save_to_disk(f"{root}/ragged")
    for name, of in (("mapped", datasets.load_from_disk(f"{root}/ragged")), ("memory", ragged)):
        for form in (None, "torch"):
            same(f"ragged {name} {form}", of.with_format(form), batch_size=None)

    for name, of in (("python", flat), ("torch", tensors), ("ragged torch", datasets.load_from_disk(f"{root}/ragged").with_format("torch"))):
        lists = BatchSampler(SequentialSampler(of), 4, False)
        same(f"lists of numbers {name}", of, batch_size=None, sampler=lists)
    same("lists of numbers, Subset", Subset(tensors, range(9, 30)), batch_size=None, sampler=[[3, 1], [0]])
    added = flat.add_column("n", list(range(40)))
    same("added column", added.with_format("torch"))
    same("added column, some rows", added.shuffle(seed=1).select(range(7)).with_format("torch"))
    same("added column, a slice", added.select(range(11, 30)))
    chunked = datasets.concatenate_datasets([flat.select(range(5)), flat.select(range(9, 19))]).add_column("n", list("abcdefghijklmno"))
    same("added column of chunks", chunked.with_format("torch"))
    same("beside", datasets.concatenate_datasets([load().select_columns(["a"]), load().select_columns(["x"])], axis=1))
    same("dicts in memory", datasets.Dataset.from_list([{"q": {"a": i, "b": [i, 2]}, "l": [{"c": 1}, {"c": i}]} for i in range(5)]))
    same("lists of a length in memory", datasets.Dataset.from_dict({"p": [[1, 2], [3, 4]]}, features=datasets.Features(p=datasets.List(datasets.Value("int32"), length=2))).with_format("torch"))
    same("translations", datasets.Dataset.from_dict({"t": [{"de": "a", "en": "b"}] * 4}, features=datasets.Features(t=datasets.Translation(["de", "en"]))))
    empty = tensors.filter(lambda r: False)
    out["no samples"] = "" if not batches(DataLoader(empty, batch_size=2, **spawn)) else "batches of nothing"
    same("with no samples before and after", datasets.concatenate_datasets([empty, tensors.select(range(5)), empty]))

    refused("no columns", tensors.with_format("torch", columns=[]))
    refused("numpy", flat.with_format("numpy"))
    refused("arguments", flat.with_format("torch", dtype=torch.float64))
    refused("all columns", ds.with_format("torch", columns=["a"], output_all_columns=True))
    refused("transform", flat.with_transform(halved))
    refused("missing", datasets.Dataset.from_dict({"a": [1, 2]}).add_column("m", [1.0, None]).with_format("torch"))
    refused("nested", ds.select_columns(["nest"]).with_format("torch"))
    refused("structs", ds.select_columns(["pair"]).with_format("torch"))
    refused("unsigned", datasets.Dataset.from_dict({"u": [1, 2]}, features=datasets.Features(u=datasets.Value("uint64"))))
    refused("fixed arrays", datasets.Dataset.from_dict({"m": [[[1, 2]], [[3, 4]]]}, features=datasets.Features(m=datasets.Array2D((1, 2), "int64"))).with_format("torch"))
    print(json.dumps(out))
