#!/usr/bin/env python3
"""Times an epoch of each kind of data set, with Python workers, with Go workers, and with other loaders, by turns.

Each loader is written as its documentation shows it, and has two workers. A row's figure is samples per second, from iter() to the
end of the epoch, with the start of the workers. Beside it is the processor time of a sample in microseconds, of the script and its
workers together, which other programs of the machine distort less. The medians of the turns are printed as they are made, and at the
end one line of JSON. A row whose turns differ by more than a fifth is marked as noisy. Loaders whose module is missing are left out."""
import argparse
import gc
import importlib.util
import io
import json
import os
import resource
import shutil
import statistics
import sys
import tarfile
import tempfile
import time

import numpy as np
import torch
import torch.utils.data as data

import shoal

WORKERS, BATCH = 2, 64
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def has(module):
    return importlib.util.find_spec(module) is not None


def images_transform():
    from torchvision import transforms
    return transforms.Compose([transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(),
                               transforms.Normalize(MEAN, STD)])


def photograph(rng):
    """A JPEG of 500x375 with the detail of a photograph, at quality 90."""
    from PIL import Image
    small = rng.normal(128, 60, (24, 32, 3)).clip(0, 255).astype(np.uint8)
    image = np.asarray(Image.fromarray(small).resize((500, 375), Image.BICUBIC), dtype=np.float32)
    out = io.BytesIO()
    Image.fromarray((image + rng.normal(0, 6, image.shape)).clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=90)
    return out.getvalue()


def make_images(root, n, rng):
    """A folder with ten classes, and the same files in ten tars."""
    os.makedirs(os.path.join(root, "shards"))
    tars = [tarfile.open(os.path.join(root, "shards", f"train-{k:03d}.tar"), "w") for k in range(10)]
    for i in range(n):
        jpeg, label = photograph(rng), i % 10
        folder = os.path.join(root, "images", f"class{label}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{i:05d}.jpg"), "wb") as f:
            f.write(jpeg)
        for suffix, content in ((".jpg", jpeg), (".cls", str(label).encode())):
            member = tarfile.TarInfo(f"{i:05d}{suffix}")
            member.size = len(content)
            tars[i * 10 // n].addfile(member, io.BytesIO(content))
    for t in tars:
        t.close()


def make_tables(root, n, rng):
    """Rows of 64 tokens, a weight and a text, as Parquet and as JSON lines."""
    rows = {"ids": rng.integers(0, 50_000, (n, 64)).tolist(), "weight": rng.random(n).round(6).tolist(),
            "text": [f"sample {i} of {n}" for i in range(n)]}
    with open(os.path.join(root, "rows.jsonl"), "w") as f:
        for i in range(n):
            f.write(json.dumps({k: v[i] for k, v in rows.items()}) + "\n")
    if has("pyarrow"):
        import pyarrow
        import pyarrow.parquet
        pyarrow.parquet.write_table(pyarrow.table(rows), os.path.join(root, "rows.parquet"), row_group_size=10_000)


def make_arrays(root, n, rng):
    np.save(os.path.join(root, "x.npy"), rng.random((n, 3, 32, 32), dtype=np.float32))
    np.save(os.path.join(root, "y.npy"), rng.integers(0, 10, n))


class JSONRows(data.Dataset):
    """Lines by their offsets, as a script would read them."""

    def __init__(self, path):
        self.path, self.file, self.offsets, at = path, None, [], 0
        with open(path, "rb") as f:
            for line in f:
                self.offsets.append(at)
                at += len(line)

    def __len__(self):
        return len(self.offsets)

    def __getitem__(self, i):
        self.file = self.file or open(self.path, "rb")
        self.file.seek(self.offsets[i])
        row = json.loads(self.file.readline())
        return {"ids": torch.tensor(row["ids"]), "weight": row["weight"], "text": row["text"]}


class ParquetRows(data.Dataset):
    """Rows of a table in memory, as a script would read them."""

    def __init__(self, path):
        import pyarrow.parquet
        self.table = pyarrow.parquet.read_table(path)

    def __len__(self):
        return self.table.num_rows

    def __getitem__(self, i):
        row = self.table.slice(i, 1).to_pylist()[0]
        return {"ids": torch.tensor(row["ids"]), "weight": row["weight"], "text": row["text"]}


class Arrays(data.Dataset):
    def __init__(self, root):
        self.x, self.y = (np.load(os.path.join(root, f), mmap_mode="r") for f in ("x.npy", "y.npy"))

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return torch.from_numpy(self.x[i].copy()), int(self.y[i])


def loader(dataset, shuffle=False, cls=data.DataLoader, **options):
    stream = isinstance(dataset, data.IterableDataset)
    return cls(dataset, batch_size=BATCH, num_workers=WORKERS, **options, **({} if stream else {"shuffle": shuffle}))


def own_collate(samples):
    """A collate_fn of the script, which Go does not know."""
    return torch.stack([image for image, _ in samples]), torch.tensor([label for _, label in samples])


def count(batches):
    """Runs an epoch and returns its number of samples."""
    n = 0
    for batch in batches:
        first = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
        n += len(first)
    return n


def spdl_images(root):
    """SPDL's pipeline for a folder of images, with its decoders and two threads."""
    import spdl.io
    from spdl.pipeline import PipelineBuilder
    files = [os.path.join(folder, f) for folder, _, names in os.walk(root) for f in names]
    mean, std = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(STD).view(3, 1, 1)

    def decode(paths):
        pixels = spdl.io.to_torch(spdl.io.load_image_batch(paths, width=224, height=224, pix_fmt="rgb24"))
        return [(pixels.permute(0, 3, 1, 2).float() / 255 - mean) / std]

    built = (PipelineBuilder().add_source(files).aggregate(BATCH).pipe(decode, concurrency=WORKERS).add_sink(4)
             .build(num_threads=WORKERS))
    with built.auto_stop():
        n = count(built)
    if n != len(files):
        raise RuntimeError(f"SPDL read {n} of {len(files)} images")
    return n


def datago_images(root):
    """datago's client for a folder of images, which crops and resizes; the script makes the batches."""
    from datago import DatagoClient
    client = DatagoClient(json.dumps({
        "source_type": "file", "source_config": {"root_path": root, "rank": 0, "world_size": 1},
        "limit": 1_000_000, "samples_buffer_size": 2 * BATCH,
        "image_config": {"crop_and_resize": True, "default_image_size": 224, "downsampling_ratio": 16,
                         "min_aspect_ratio": 1.0, "max_aspect_ratio": 1.0, "pre_encode_images": False}}))
    n, batch = 0, []
    while sample := client.get_sample():
        batch.append(torch.from_numpy(np.array(sample.image)).permute(2, 0, 1).float() / 255)
        n += 1
        if len(batch) == BATCH:
            torch.stack(batch)
            batch = []
    return n


def webdataset_shards(pattern):
    import webdataset
    transform = images_transform()
    return (webdataset.WebDataset(pattern, shardshuffle=False).decode("pil").to_tuple("jpg", "cls")
            .map_tuple(transform, int))


def rows(root, only):
    """Yields the name of each row, and its loaders by name: functions that run an epoch."""
    folder, tars = os.path.join(root, "images"), os.path.join(root, "shards", "train-{000..009}.tar")
    if has("torchvision"):
        from torchvision.datasets import ImageFolder
        both = {
            "python": lambda: count(loader(ImageFolder(folder, images_transform()), True)),
            "go": lambda: count(loader(shoal.ImageFolder(folder, images_transform()), True)),
            "shoal.DataLoader": lambda: count(loader(shoal.ImageFolder(folder, images_transform()), True, shoal.DataLoader)),
        }
        if has("spdl"):
            both["spdl"] = lambda: spdl_images(folder)
        if has("datago"):
            both["datago"] = lambda: datago_images(folder)
        yield "images", both
        if has("webdataset"):
            yield "webdataset", {
                "python": lambda: count(loader(webdataset_shards(tars))),
                "go": lambda: count(loader(shoal.WebDataset(tars, images_transform()))),
            }
        for n in 600, 20_000:
            def collated(dataset, n=n):
                many = data.ConcatDataset([dataset] * -(-n // len(dataset)))
                return count(loader(data.Subset(many, range(n)), True, collate_fn=own_collate))
            yield f"collate_fn_{n}", {
                "python": lambda run=collated: run(ImageFolder(folder, images_transform())),
                "go": lambda run=collated: run(shoal.ImageFolder(folder, images_transform())),
            }
    for shuffle in (False, True):
        order = "shuffled" if shuffle else "in_order"
        if has("pyarrow"):
            parquet = os.path.join(root, "rows.parquet")
            yield "parquet_" + order, {
                "python": lambda s=shuffle: count(loader(ParquetRows(parquet), s)),
                "go": lambda s=shuffle: count(loader(shoal.Parquet(parquet), s)),
            }
        jsonl = os.path.join(root, "rows.jsonl")
        yield "jsonl_" + order, {
            "python": lambda s=shuffle: count(loader(JSONRows(jsonl), s)),
            "go": lambda s=shuffle: count(loader(shoal.JSONLines(jsonl), s)),
        }
    arrays = [os.path.join(root, f) for f in ("x.npy", "y.npy")]
    yield "light", {
        "python": lambda: count(loader(Arrays(root), True)),
        "go": lambda: count(loader(shoal.Npy(arrays), True)),
    }


def processor_time():
    """The processor time of this process, and of those that have ended, in seconds."""
    gc.collect()  # ends workers
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--table-rows", type=int, default=40_000)
    parser.add_argument("--arrays", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("rows", nargs="*", help="the names of rows; all if there is none")
    args = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    torch.set_num_threads(1)
    root = tempfile.mkdtemp(prefix="speed-")
    result = {}
    try:
        rng = np.random.default_rng(1)
        if has("PIL"):
            make_images(root, args.images, rng)
        make_tables(root, args.table_rows, rng)
        make_arrays(root, args.arrays, rng)
        for name, loaders in rows(root, args.rows):
            if args.rows and name not in args.rows:
                continue
            for kind in set(loaders) & {"spdl", "datago"}:  # which may lack a library of the system
                try:
                    loaders[kind]()
                except Exception as e:
                    print(f"{name}: {kind} is left out: {type(e).__name__}: {str(e)[:200]}")
                    del loaders[kind]
            rates, costs = {kind: [] for kind in loaders}, {kind: [] for kind in loaders}
            for turn in range(args.turns):
                order = list(loaders) if turn % 2 == 0 else list(loaders)[::-1]
                for kind in order:
                    used, began = processor_time(), time.perf_counter()
                    n = loaders[kind]()
                    rates[kind].append(n / (time.perf_counter() - began))
                    costs[kind].append((processor_time() - used) / n * 1e6)
            medians = {kind: statistics.median(r) for kind, r in rates.items()}
            spread = max((max(r) - min(r)) / statistics.median(r) for r in rates.values())
            result[name] = {kind: round(m) for kind, m in medians.items()}
            result[name]["ratio"] = round(medians["go"] / medians["python"], 2)
            result[name]["spread"] = round(spread, 2)
            used = {kind: statistics.median(c) for kind, c in costs.items()}
            result[name]["processor_us"] = {kind: round(c, 1) for kind, c in used.items()}
            result[name]["processor_ratio"] = round(used["python"] / used["go"], 2)
            each = ", ".join(f"{kind} {m:,.0f}/s ({used[kind]:,.1f} µs)" for kind, m in medians.items())
            print(f"{name}: {each}; go is {result[name]['ratio']} × python, and {result[name]['processor_ratio']} × by processor time"
                  + (" (noisy)" if spread > 0.2 else ""))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
