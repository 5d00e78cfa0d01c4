"""Compares what ./loader serves with what Python reads from the same files: python compare.py, where ./loader and go.py are."""
import json
import os
import pathlib
import resource
import tarfile
import io

import numpy
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset, IterableDataset

from go import Go, GoStream

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None

try:
    import PIL.Image
except ImportError:
    PIL = None

spawn = dict(num_workers=1, multiprocessing_context="spawn")


def same(a, b):
    """Whether two batches are the same, of the same types."""
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return type(a) is type(b) and a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and sorted(a) == sorted(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def compare(name, go, python, batch_size=4):
    """go is a data set of Go's, and python is the samples as Python reads them."""
    if not isinstance(go, IterableDataset):
        assert len(go) == len(python), (name, len(go), len(python))
    got = list(DataLoader(go, batch_size=batch_size, **spawn))
    want = list(DataLoader(python, batch_size=batch_size))
    assert len(got) == len(want), (name, len(got), len(want))
    for a, b in zip(got, want):
        assert same(a, b), (name, a, b)
    print(name, flush=True)


def wrong(name, go, text):
    """Wants an error that says text."""
    batches = iter(DataLoader(go, batch_size=4, **spawn))
    try:
        list(batches)
    except RuntimeError as e:
        assert text in str(e), (name, str(e))
    else:
        raise AssertionError(name + ": no error")
    batches._shutdown_workers()
    print(name, flush=True)


class Misspelt(Go):
    """Has another option than the probe was told."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.shoal_args["lenght"] = 3


def write_text():
    random = numpy.random.default_rng(1)
    tokens = random.integers(0, 50257, 1000).astype(numpy.uint16)
    tokens.tofile("train.bin")
    numpy.save("tokens.npy", tokens.astype(numpy.uint32))
    with open("lines.jsonl", "w") as f:
        for i in range(10):
            f.write(json.dumps({"ids": tokens[: 3 * i].tolist(), "label": i % 3}) + "\n")
    return torch.from_numpy(tokens.astype(numpy.int64))


def text():
    tokens = write_text()
    for length, stride in ((32, 32), (32, 7), (64, 64)):
        windows = [(tokens[i : i + length], tokens[i + 1 : i + length + 1]) for i in range(0, len(tokens) - length, stride)]
        compare(f"tokens {length} {stride}", Go("tokens", path="train.bin", length=length, stride=stride), windows)
        compare(f"tokens npy {length} {stride}", Go("tokens", path="tokens.npy", length=length, stride=stride, vocabulary=50257), windows)
    cut = []
    for line in open("lines.jsonl"):
        ids = json.loads(line)["ids"][:12]
        cut.append((torch.tensor(ids + [-1] * (12 - len(ids))), len(ids)))
    compare("tokens jsonl", Go("tokens", path="lines.jsonl", column="ids", length=12, pad=-1), cut)


def arrays():
    x, y = numpy.random.default_rng(2).normal(size=(10, 3, 2)).astype(numpy.float32), numpy.arange(10)
    numpy.save("x.npy", x)
    numpy.save("y.npy", y)
    compare("npy", Go("npy", paths=["x.npy", "y.npy"]), list(zip(torch.from_numpy(x), torch.from_numpy(y))))


def tables():
    lines = [{"text": "grüße " * i, "label": i, "x": i / 4, "ids": [i, i + 1, i + 2], "deep": {"y": [[0.5, i], [1, 2]], "ok": i % 2 == 0}} for i in range(10)]
    with open("table.jsonl", "w") as f:
        for line in lines:
            f.write(json.dumps(line) + "\n\n")
    with open("table.jsonl") as f:
        read = [json.loads(line) for line in f if line.strip()]
    for line in read:
        line["ids"] = torch.tensor(line["ids"])
        line["deep"]["y"] = torch.tensor(line["deep"]["y"])
    compare("jsonl", Go("jsonl", paths="table.jsonl"), read)
    compare("jsonl columns", Go("jsonl", paths=["table.jsonl"], columns={"x": "float32", "text": None}),
            [{"x": torch.tensor(line["x"]), "text": line["text"]} for line in read])
    if pyarrow:
        typed = pyarrow.Table.from_pylist(lines * 200).append_column("half", pyarrow.array([0.5] * 2000, pyarrow.float32()))
        for codec in "snappy", "zstd", "gzip", "none":
            pyarrow.parquet.write_table(typed, "table.parquet", row_group_size=700, compression=codec, data_page_size=1000)
            read = pyarrow.parquet.read_table("table.parquet").to_pylist()
            for row in read:
                row["ids"] = torch.tensor(row["ids"])
                row["deep"]["y"] = [torch.tensor(y, dtype=torch.float64) for y in row["deep"]["y"]]
            compare("parquet " + codec, Go("parquet", paths="table.parquet"), read, batch_size=256)
        compare("parquet columns", Go("parquet", paths="table.parquet", columns=["text", "half"]), [{"text": r["text"], "half": r["half"]} for r in read], batch_size=256)


def ragged():
    """Rows of different lengths."""
    lines = [{"ids": list(range(i % 5)), "tags": [0.5] * (1 + i % 3), "n": i} for i in range(10)]
    with open("ragged.jsonl", "w") as f:
        for line in lines:
            f.write(json.dumps(line) + "\n")

    def pad(rows, value, length=0, left=False, dtype=torch.int64):
        """PyTorch's pad_sequence; a row of so many elements more makes a length of it. On the left it is that of the rows turned round."""
        rows = [torch.tensor(r, dtype=dtype) for r in rows] + [torch.empty(length, dtype=dtype)]
        if left:
            return pad_sequence([r.flip(0) for r in rows], batch_first=True, padding_value=value)[:-1].flip(1)
        return pad_sequence(rows, batch_first=True, padding_value=value)[:-1]

    floats = {"jsonl": torch.float32, "parquet": torch.float64}  # as torch.tensor has them, and as the file has

    def simple(batch):
        return {"ids": pad([r["ids"] for r in batch], 0), "tags": pad([r["tags"] for r in batch], 0.0, dtype=floats[kind]),
                "n": torch.tensor([r["n"] for r in batch])}

    def each(batch):
        length = -(-max(len(r["ids"]) for r in batch) // 4) * 4
        return {"ids": pad([r["ids"] for r in batch], -100, length, True), "n": torch.tensor([r["n"] for r in batch]),
                "there": pad([[True] * len(r["ids"]) for r in batch], False, length, True, dtype=torch.bool), "many": torch.tensor([len(r["ids"]) for r in batch]),
                "tags": pad([r["tags"] for r in batch], 1.5, 8, dtype=floats[kind])}

    rules = {"ids": {"value": -100, "left": True, "multiple": 4, "mask": "there", "lengths": "many"}, "tags": {"value": 1.5, "length": 8}}
    files = ["jsonl"]
    if not pyarrow:
        print("no pyarrow", flush=True)
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(lines), "ragged.parquet")
        files.append("parquet")
    for kind in files:
        for name, how, collate in ("pad", 0, simple), ("pad columns", rules, each):
            got = list(DataLoader(Go(kind, paths="ragged." + kind, pad=how), batch_size=4, **spawn))
            want = list(DataLoader(lines, batch_size=4, collate_fn=collate))
            assert len(got) == len(want) and all(map(same, got, want)), (kind, name, got, want)
            print(kind, name, flush=True)
    for kind in files:
        nested(kind)
    kind = "jsonl"
    halves = torch.utils.data.Subset(Go("jsonl", paths="ragged.jsonl", pad=0), range(5, 10))
    got = list(DataLoader(halves, batch_size=5, **spawn))
    assert len(got) == 1 and same(got[0], simple(lines[5:])), got
    wrong("no padding", Go("jsonl", paths="ragged.jsonl"), "ids")


def nested(kind):
    """Lists of lists, which become tensors with a dimension for each level."""
    turns = [[[1, 2, 3], [4, 5, 6]], [[1, 2], [4]], [], [[], [7]], [[8]], [[9, 10], [11, 12]], [[13]] * 3, [[]]]
    path = "nested." + kind
    if kind == "jsonl":
        with open(path, "w") as f:
            f.writelines(json.dumps({"turns": t}) + "\n" for t in turns)
    else:
        pyarrow.parquet.write_table(pyarrow.table({"turns": pyarrow.array(turns, pyarrow.list_(pyarrow.list_(pyarrow.int64())))}), path)

    def collate(batch):
        rows = [r["turns"] for r in batch]
        shape = len(rows), max(map(len, rows)), max(len(t) for r in rows for t in r)
        ids, mask = torch.full(shape, -1), torch.zeros(shape, dtype=torch.bool)
        lengths = torch.zeros(shape[:2], dtype=torch.int64)
        for i, row in enumerate(rows):
            for j, t in enumerate(row):
                ids[i, j, :len(t)], mask[i, j, :len(t)], lengths[i, j] = torch.tensor(t, dtype=torch.int64), True, len(t)
        return {"turns": ids, "mask": mask, "n": lengths}

    rule = {"turns": {"value": -1, "mask": "mask", "lengths": "n"}}
    for size in 2, 3, 8:
        want = list(DataLoader([{"turns": t} for t in turns], batch_size=size, collate_fn=collate))
        got = list(DataLoader(Go(kind, paths=path, pad=rule), batch_size=size, **spawn))
        assert len(got) == len(want) and all(map(same, got, want)), (kind, size, got, want)
        plain = list(DataLoader(Go(kind, paths=path, pad=-1), batch_size=size, **spawn))
        assert all(torch.equal(g["turns"], w["turns"]) for g, w in zip(plain, want)), (kind, size, plain, want)
        rows = [r for batch in DataLoader(Go(kind, paths=path, pad=rule), batch_size=size, collate_fn=list, **spawn) for r in batch]
        assert all(map(same, rows, [{k: v[i] for k, v in b.items()} for b in want for i in range(len(b["n"]))])), (kind, size, rows)
    print(kind, "nested", flush=True)


def numbers(paths, workers=2, **options):
    """The classes of the samples of each worker."""
    loader = DataLoader(GoStream("shards", paths=paths, dtype="uint8", **options), batch_size=None, num_workers=workers,
                        multiprocessing_context="spawn")
    return [int(label) for _, label in loader]


def kept():
    """A script that keeps its batches does not run out of descriptors, and has one of them for each batch at most."""
    with open("kept.jsonl", "w") as f:
        f.writelines(json.dumps({"a": i, "b": [i, i / 2]}) + "\n" for i in range(1200))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    for strategy in "file_descriptor", "file_system":
        torch.multiprocessing.set_sharing_strategy(strategy)
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        for workers in 1, 2:
            loader = DataLoader(Go("jsonl", paths="kept.jsonl"), batch_size=2, num_workers=workers, multiprocessing_context="spawn")
            first = len(os.listdir("/proc/self/fd"))
            batches = []
            for batch in loader:
                batches.append(batch)
                if len(batches) == 40:
                    assert len(os.listdir("/proc/self/fd")) < first + 40 + 25 * workers, "more than one descriptor for a batch"
            assert len(batches) == 600
            for i, batch in enumerate(batches):
                assert same(batch, {"a": torch.tensor([2 * i, 2 * i + 1]), "b": [torch.tensor([2 * i, 2 * i + 1]), torch.tensor([i, i + 0.5])]}) or same(
                    batch["b"], torch.tensor([[2 * i, i], [2 * i + 1, i + 0.5]])), (i, batch)
            del batches, batch
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    torch.multiprocessing.set_sharing_strategy("file_descriptor")
    print("kept", flush=True)


def shards():
    """The order of the samples of shards, and files that other programs write."""
    jpg = io.BytesIO()
    PIL.Image.new("RGB", (8, 8)).save(jpg, "JPEG")

    def write(name, labels, mode="w", extra=(), **options):
        with tarfile.open(name, mode, **options) as tar:
            for n in labels:
                for suffix, content in ((".jpg", jpg.getvalue()), (".cls", str(n).encode())):
                    info = tarfile.TarInfo(f"{n:06}{suffix}")
                    info.size = len(content)
                    tar.addfile(info, io.BytesIO(content))
            for info in extra:
                tar.addfile(info)

    for k in range(5):
        write(f"shard-{k:03}.tar", range(10 * k, 10 * k + (10 if k < 4 else 3)))
    every, pattern = list(range(43)), "shard-{000..004}.tar"
    assert sorted(numbers(pattern)) == every
    assert numbers([pathlib.Path("shard-000.tar"), pathlib.PurePosixPath("shard-001.tar")], 1) == every[:20]
    print("shards braces and paths", flush=True)
    orders = [numbers(pattern, shuffle=20, seed=seed, epoch=epoch) for seed, epoch in ((1, 0), (1, 1), (2, 0), (1, 0))]
    assert all(sorted(order) == every for order in orders), orders
    assert orders[0] == orders[3] and len({tuple(order) for order in orders}) == 3 and every not in orders, orders
    torch.manual_seed(1)
    first = numbers(pattern, shuffle=True)
    second = numbers(pattern, shuffle=True)
    torch.manual_seed(1)
    assert first != second and numbers(pattern, shuffle=True) == first
    print("shards shuffle", flush=True)
    for options in ({}, {"shuffle": 5}, {"shuffle": 5, "epoch": 3}):
        ranks = [numbers(pattern, rank=rank, world=2, **options) for rank in range(2)]
        assert sorted(sum(ranks, [])) == every, ranks
        ranks = [numbers(pattern, rank=rank, world=2, equal=True, **options) for rank in range(2)]
        assert [len(r) for r in ranks] == [20, 20] and len(set(sum(ranks, []))) == 40, ranks
    print("shards ranks", flush=True)
    link, hard, info = tarfile.TarInfo("7.jpg"), tarfile.TarInfo("8.jpg"), tarfile.TarInfo("dataset_info.json")
    link.type, link.linkname = tarfile.SYMTYPE, "000000.jpg"
    hard.type, hard.linkname = tarfile.LNKTYPE, "000000.jpg"
    write("plain.tar", range(3), extra=[info])
    write("plain.tar.gz", range(3), "w:gz")
    write("plain.tar.bz2", range(3), "w:bz2")
    whole = open("plain.tar", "rb").read()
    open("no-end.tar", "wb").write(whole.rstrip(b"\0") + b"\0" * (-len(whole.rstrip(b"\0")) % 512))
    for name in "plain.tar", "plain.tar.gz", "plain.tar.bz2", "no-end.tar":
        assert numbers(name, 1) == [0, 1, 2], name
    with tarfile.open("links.tar", "w") as tar:
        for entry, content in ((tarfile.TarInfo("000000.jpg"), jpg.getvalue()), (tarfile.TarInfo("000000.cls"), b"0"),
                               (link, b""), (tarfile.TarInfo("7.cls"), b"7"), (hard, b""), (tarfile.TarInfo("8.cls"), b"8")):
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    assert numbers("links.tar", 1) == [0, 7, 8]
    open("no-end.tar", "wb").write(whole[:700])
    wrong("shards cut", GoStream("shards", paths="no-end.tar"), "no-end.tar")
    print("shards of other programs", flush=True)


def pictures():
    random = numpy.random.default_rng(3)
    files = []
    for label, name in enumerate(("ant", "bee")):
        os.makedirs(os.path.join("train", name))
        for i in range(3):
            image = PIL.Image.fromarray(random.integers(0, 256, (40 + i, 50, 3), dtype=numpy.uint8))
            path = os.path.join("train", name, f"{i}.{'png' if i else 'jpg'}")
            image.save(path)
            files.append((path, label))

    def pixels(path, crop=None):
        image = PIL.Image.open(path).convert("RGB").resize((32, 24), PIL.Image.BILINEAR)
        array = torch.from_numpy(numpy.array(image)).permute(2, 0, 1).contiguous()
        return array[:, 4:20, 8:24] if crop else array

    compare("images", Go("images", root="train", resize=(24, 32), dtype="uint8"), [(pixels(p), n) for p, n in files])
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    normal = [((pixels(p, True).float() / 255 - mean[:, None, None]) / std[:, None, None], n) for p, n in files]
    compare("images normal", Go("images", root="train", resize=[24, 32], crop=16, mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]), normal)
    os.makedirs("spoilt/ant")
    for path, _ in files[:3]:
        os.link(path, os.path.join("spoilt/ant", os.path.basename(path)))
    open("spoilt/ant/1a.jpg", "w").write("no image")
    open("spoilt/ant/1b.gif.png", "w").write("GIF89a")
    good = [(pixels(p), 0) for p, _ in files[:2]], [(pixels(p), 0) for p, _ in files[2:3]]
    for collate in None, torch.utils.data.default_collate, list:
        got = list(DataLoader(Go("images", root="spoilt", resize=(24, 32), dtype="uint8", skip=True, retries=2), batch_size=4, collate_fn=collate, **spawn))
        want = [(collate or torch.utils.data.default_collate)(batch) for batch in good]
        assert len(got) == 2 and all(len(a[0]) == len(b[0]) for a, b in zip(got, want)) and (collate is list or same(got, want)), (got, want)
    wrong("images spoilt", Go("images", root="spoilt", resize=(24, 32), dtype="uint8", retries=2), "1a.jpg")
    empty = DataLoader(Go("images", root="spoilt", resize=(24, 32), dtype="uint8", skip=True), sampler=[2, 3], batch_size=2, **spawn)
    try:
        list(empty)
        raise AssertionError("a batch of no samples")
    except RuntimeError as e:
        assert "all samples of the batch were skipped" in str(e), e
    with tarfile.open("spoilt.tar", "w") as tar:
        for path, label in (("spoilt/ant/0.jpg", "0.jpg"), ("spoilt/ant/1a.jpg", "1.jpg"), ("spoilt/ant/2.png", "2.png")):
            tar.add(path, label)
            info = tarfile.TarInfo(label[0] + ".cls")
            info.size = 1
            tar.addfile(info, io.BytesIO(label[:1].encode()))
    assert numbers("spoilt.tar", 1, skip=True) == [0, 2]
    print("images skip", flush=True)
    with tarfile.open("train-0.tar", "w") as tar:
        for i, (path, label) in enumerate(files):
            tar.add(path, f"{i}.{path[-3:]}")
            text = str(label).encode()
            info = tarfile.TarInfo(f"{i}.cls")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    compare("shards", GoStream("shards", paths="train-*.tar", resize=[24, 32], dtype=torch.uint8), [(pixels(p), n) for p, n in files])


if __name__ == "__main__":
    torch.multiprocessing.set_executable("./loader")
    arrays()
    text()
    tables()
    ragged()
    kept()
    if PIL:
        pictures()
        shards()
    wrong("bad option", Misspelt("tokens", path="train.bin", length=8), "lenght")
    with open("bad.jsonl", "w") as f:
        f.write('{"x": 1}\n\n{"x": }\n')
    bad = Go("jsonl", paths="ragged.jsonl", pad=0)
    bad.shoal_args["pad"] = "zero"
    wrong("bad padding", bad, "pad: got string, want a number or a dict")
    wrong("bad line", Go("jsonl", paths="bad.jsonl"), "bad.jsonl: line 3: ")
