"""Data sets in the process of the script."""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Subset, default_collate

import shoal
from conftest import COUNT, children, gone, program, stop


def test_import_leaves_pytorch_out():
    code = "import sys, shoal; shoal.__version__; assert 'torch' not in sys.modules; shoal.Npy; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names():
    assert set(shoal.__all__) <= {n for n in shoal.__all__ if hasattr(shoal, n)}
    with pytest.raises(AttributeError, match="no attribute 'Photos'"):
        shoal.Photos


def test_an_unsupported_system_is_an_import_error():
    code = ("import platform, sys; sys.platform = 'darwin'; platform.system = lambda: 'Darwin'\n"
            "try: import shoal\n"
            "except ImportError as e: print(e)")
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "shoal runs on Linux, on x86_64 and aarch64, but this is Darwin" in told.stdout


def test_a_missing_or_foreign_program(files, tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_PROGRAMS", str(tmp_path))
    with pytest.raises(RuntimeError, match="missing or not executable.*install a wheel"):
        shoal.Npy(files / "numbers.npy")
    (tmp_path / "shoal-loader").write_bytes(b"\x7fELF of another machine")
    (tmp_path / "shoal-loader").chmod(0o755)
    with pytest.raises(RuntimeError, match="Exec format error; shoal runs on Linux"):
        shoal.Npy(files / "numbers.npy")
    with pytest.raises(ValueError, match="/bin/echo, which reads the samples, exited with status 0.*must call torch.Child.Main first"):
        shoal.Dataset("npy", program="/bin/echo")


def test_console_scripts():
    told = subprocess.run([os.path.join(os.path.dirname(sys.executable), "shoal-loader")], capture_output=True, text=True)
    assert told.returncode == 0 and "a folder of JPEG" in told.stdout
    told = subprocess.run([os.path.join(os.path.dirname(sys.executable), "shoal"), "version"], capture_output=True, text=True)
    assert told.returncode == 0 and "go1." in told.stdout


def test_samples(files):
    numbers = shoal.Npy(files / "numbers.npy")
    assert len(numbers) == COUNT and numbers[3][0].item() == 3 and numbers[-1][0].item() == COUNT - 1
    assert [s[0].item() for s in numbers.__getitems__([5, 0, 402])] == [5, 0, 402]
    assert [s[0].item() for s in numbers] == list(range(COUNT))
    with pytest.raises(IndexError, match="sample 403 of a data set of 403"):
        numbers[COUNT]
    rows = shoal.JSONLines(files / "rows.jsonl", ["id", "ids"], pad=0)
    assert rows[6]["id"] == 6 and rows[6]["ids"].tolist() == [0, 1, 2]
    window, after = shoal.Tokens(files / "tokens.bin", 10, stride=5)[2]
    assert window.tolist() == list(range(10, 20)) and after.tolist() == list(range(11, 21))


def test_errors_come_at_construction(files, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        shoal.ImageFolder(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="no images"):
        shoal.ImageFolder(tmp_path)
    with pytest.raises(TypeError, match="unknown for this data set.*paths"):
        shoal.Dataset("npy", paths=files / "numbers.npy", pahts=1)
    with pytest.raises(TypeError):
        shoal.Npy(files / "numbers.npy", flip=0.5)
    with pytest.raises(ValueError, match='"npz" is not registered'):
        shoal.Dataset("npz")
    with pytest.raises(TypeError, match="JSON can represent"):
        shoal.Dataset("npy", paths=object())
    for options, text in (({"flip": 2.0}, "probabilities from 0 to 1"), ({"flip": True}, "option flip: got true, want a number"),
                          ({"mean": 0.5}, "option mean: got 0.5, want a list of numbers"), ({"std": [0, 1, 1]}, "numbers other than 0")):
        with pytest.raises(ValueError, match=text):
            shoal.ImageFolder(files / "images", **options)
    with pytest.raises(ValueError, match="option shuffle: got yes, want a bool"):
        shoal.WebDataset(str(files / "shard-*.tar"), shuffle="yes")
    with pytest.raises(ValueError, match="no such column: \"ib\""):
        shoal.JSONLines(files / "rows.jsonl", ["ib"])
    with pytest.raises(ValueError, match="line 1.*not UTF-8"):
        shoal.JSONLines(files / "images" / "a" / "000.jpg")
    assert len(shoal.JSONLines(files / "rows.jsonl", ["ib"], skip=True)) == 20
    with pytest.raises(RuntimeError, match="nowhere: No such file or directory$"):
        shoal.Dataset("npy", program="nowhere")
    with pytest.raises(ValueError, match="transform and crop"):
        shoal.ImageFolder(files / "images", str, crop=3)
    with pytest.raises(TypeError, match="transform: got int"):
        shoal.ImageFolder(files / "images", 3)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        shoal.WebDataset(str(tmp_path / "nowhere-{0..3}.tar"))
    with pytest.raises(ValueError, match="option rank: got 2, want at least 0 and less than world 2"):
        shoal.WebDataset(str(files / "shard-*.tar"), rank=2, world=2)
    (tmp_path / "bad.tar").write_bytes(b"no archive" * 100)
    with pytest.raises(ValueError, match="bad.tar"):
        shoal.WebDataset(tmp_path / "bad.tar")
    with pytest.raises(ValueError, match="bad.tar"):
        shoal.Parquet(tmp_path / "bad.tar")


def test_image_folder_is_torchvisions(files):
    datasets = pytest.importorskip("torchvision.datasets")
    from torchvision import transforms

    steps = transforms.Compose([transforms.Resize(32), transforms.CenterCrop(24), transforms.ToTensor()])
    theirs, ours = datasets.ImageFolder(str(files / "images"), steps), shoal.ImageFolder(files / "images", steps)
    assert (ours.classes, ours.class_to_idx) == (theirs.classes, theirs.class_to_idx)
    assert (ours.samples, ours.targets, ours.imgs) == (theirs.samples, theirs.targets, theirs.imgs)
    for i in (0, 9, 23):
        assert torch.equal(ours[i][0], theirs[i][0]) and ours[i][1] == theirs[i][1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = shoal.ImageFolder(files / "images", lambda image: steps(image) * 2)
    assert torch.equal(ours[5][0], theirs[5][0] * 2)
    ours.transform = steps  # as scripts do after random_split
    assert torch.equal(ours[5][0], theirs[5][0]) and ours.transform is steps
    ours = shoal.ImageFolder(files / "images", resize=9)
    ours.transform = None
    assert ours[5][0].shape == (3, 40, 50)


@pytest.mark.filterwarnings("ignore:the workers")
def test_samples_without_batches_are_torchvisions(files):
    """With batch_size=None every loader yields what PyTorch's default_convert makes of torchvision's samples."""
    datasets = pytest.importorskip("torchvision.datasets")
    from torchvision import transforms

    steps = transforms.Compose([transforms.Resize(32), transforms.CenterCrop(24), transforms.ToTensor()])
    theirs, ours = datasets.ImageFolder(str(files / "images"), steps), shoal.ImageFolder(files / "images", steps)
    want = list(DataLoader(theirs, None))
    assert type(want[0]) is list and type(want[0][1]) is int
    half = [3, 1, 22]
    for got, expected in (
            (DataLoader(ours, None), want), (DataLoader(ours, None, num_workers=2), want),
            (shoal.DataLoader(ours, None, num_workers=2), want), (shoal.DataLoader(theirs, None, num_workers=1), want),
            (DataLoader(Subset(ours, half), None, num_workers=1), [want[i] for i in half]),
            (DataLoader(ours + ours, None, num_workers=1), want + want),
            (DataLoader(ours, None, num_workers=1, collate_fn=as_it_is, multiprocessing_context=shoal.get_context()),
             [tuple(w) for w in want])):
        got = list(got)
        assert len(got) == len(expected)
        for (image, label), other in zip(got, expected):
            assert torch.equal(image, other[0]) and label == other[1] and type(label) is int
        assert all(type(g) is type(e) for g, e in zip(got, expected))
    shards = shoal.WebDataset(str(files / "shard-0.tar"), resize=(8, 8))
    for workers in 0, 1:
        got = list(DataLoader(shards, None, num_workers=workers))
        assert [(type(s), type(s[1]), s[1]) for s in got] == [(list, int, i) for i in range(0, 24, 3)]


def test_other_samples_without_batches(files):
    """Numbers of arrays are tensors, and values of rows are Python's, in every process."""
    lines = files / "rows.jsonl"
    for dataset in shoal.Npy(files / "numbers.npy"), shoal.JSONLines(lines), shoal.Tokens(files / "tokens.bin", 10):
        want, got = list(DataLoader(dataset, None)), list(DataLoader(dataset, None, num_workers=2))
        assert len(want) == len(got) and all(map(same_sample, want, got))
    assert type(shoal.JSONLines(lines)[0]["id"]) is int


def same_sample(a, b):
    """Whether two samples have equal values of equal types."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_sample(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same_sample, a, b))
    return a.dtype == b.dtype and torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def as_it_is(sample):
    return sample


def test_the_list_of_images_is_not_sent_to_workers(files):
    images = shoal.ImageFolder(files / "images")
    before = len(pickle.dumps(images))
    assert len(images.samples) == 24 and len(pickle.dumps(images)) == before


def test_a_transform_without_a_conversion_makes_bytes(files):
    transforms = pytest.importorskip("torchvision.transforms")
    from torchvision.datasets import ImageFolder

    for steps in transforms.PILToTensor(), transforms.Compose([transforms.PILToTensor()]):
        ours, theirs = shoal.ImageFolder(files / "images", steps), ImageFolder(str(files / "images"), steps)
        assert ours[3][0].dtype == torch.uint8 and torch.equal(ours[3][0], theirs[3][0])
        batch = next(iter(DataLoader(ours, 4, num_workers=1)))[0]
        assert torch.equal(batch, torch.stack([theirs[i][0] for i in range(4)]))


def test_indices(files):
    numbers = shoal.Npy(files / "numbers.npy")
    assert numbers[np.int64(7)][0] == numbers[torch.tensor(7)][0] == 7
    for index in 1.5, "1", slice(3), [1, 2], None:
        with pytest.raises(TypeError, match="index of a data set: got .*, want an int; .*Subset"):
            numbers[index]
    with pytest.raises(IndexError, match="sample 500 of a data set of 403"):
        next(iter(DataLoader(numbers, 2, sampler=[500])))


def test_options_of_numpy_and_pytorch(files):
    want = shoal.ImageFolder(files / "images", crop=[20, 30], mean=[0.5] * 3, std=[0.25] * 3)[2][0]
    half = np.full(3, 0.5, np.float32)
    for mean, std, crop in (half, torch.full((3,), 0.25), np.array([20, 30])), (list(half), half / 2, (np.int64(20), 30)):
        assert torch.equal(shoal.ImageFolder(files / "images", crop=crop, mean=mean, std=std)[2][0], want)
    for dtype in np.uint16, np.dtype("uint16"), torch.uint16, "uint16":
        assert shoal.Tokens(files / "tokens.bin", 4, dtype=dtype)[1][0].tolist() == [4, 5, 6, 7]


def test_paths(files, monkeypatch):
    monkeypatch.setenv("HOME", str(files))
    assert len(shoal.ImageFolder("~/images").samples) == 24
    for paths in "~/numbers.npy", os.fsencode(files / "numbers.npy"), [files / "numbers.npy"], files.glob("numb*.npy"):
        assert len(shoal.Npy(paths)) == COUNT


def test_names_are_listed():
    assert set(shoal.__all__) <= set(dir(shoal))


def test_padded_batches_are_the_same_in_every_process(files):
    """The batches of num_workers=0, of Python workers and of Go workers."""
    lines = files / "ragged.jsonl"
    lines.write_text("".join(json.dumps({"n": i, "name": f"row {i}", "ids": list(range(i % 5)), "of": {"w": [0.5] * (1 + i % 3)}})
                             + "\n" for i in range(12)))
    for pad in 7, {"ids": {"value": -1, "left": True, "multiple": 4, "mask": "mask", "lengths": "lengths"}, "of.w": 0}:
        rows = shoal.JSONLines(lines, pad=pad)
        assert [len(row["ids"]) for row in rows] == [i % 5 for i in range(12)]  # samples have their own lengths
        want = list(DataLoader(rows, 5, num_workers=1))
        assert want[0]["ids"].shape == (5, 4)
        for got in (list(DataLoader(rows, 5)), list(shoal.DataLoader(rows, 5)),
                    list(DataLoader(rows, 5, num_workers=1, worker_init_fn=print, multiprocessing_context="fork")),
                    list(DataLoader(rows, 5, num_workers=1, multiprocessing_context=shoal.get_context(), collate_fn=same))):
            assert len(got) == len(want) == 3
            for a, b in zip(got, want):
                assert equal(a, b), (a, b)


def same(samples):
    return default_collate(samples)


def equal(a, b):
    """Whether two batches of rows have equal values of equal types."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return a.dtype == b.dtype and torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_a_random_transform_follows_pytorchs_generator(files):
    a = shoal.ImageFolder(files / "images", random_crop=8)
    torch.manual_seed(4)
    first = [a[0][0] for _ in range(4)]
    torch.manual_seed(4)
    assert all(torch.equal(x, a[0][0]) for x in first)
    assert not all(torch.equal(first[0], x) for x in first)


def test_streams(files):
    s = shoal.WebDataset(str(files / "shard-{0..2}.tar"), resize=(8, 8))
    assert sorted(label for _, label in s) == list(range(24))
    one, two = iter(s), iter(s)
    assert next(one)[1] == next(two)[1] and type(next(one)[1]) is int
    half = shoal.WebDataset(str(files / "shard-{0..2}.tar"), rank=1, world=3)
    assert [label for _, label in half] == list(range(1, 24, 3))


def test_copies_and_pickles(files):
    numbers = shoal.Npy(files / "numbers.npy")
    assert numbers[1][0] == 1
    for other in copy.copy(numbers), pickle.loads(pickle.dumps(numbers)):
        assert other[2][0] == 2 and len(other) == COUNT


def test_a_subclass_keeps_its_getitem(files):
    class Doubled(shoal.Npy):
        def __getitem__(self, i):
            return super().__getitem__(i)[0] * 2

    assert [int(x) for x in Doubled(files / "numbers.npy").__getitems__([3, 4])] == [6, 8]


def test_a_killed_helper_is_an_error_and_is_replaced(files):
    numbers = shoal.Npy(files / "numbers.npy")
    assert numbers[0][0] == 0
    stop(numbers._helper.process.pid)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(numbers._helper.process.pid, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    with pytest.raises(RuntimeError, match="exited with status -9"):
        numbers[1]
    assert numbers[2][0] == 2
    os.kill(numbers._helper.process.pid, signal.SIGKILL)
    numbers._helper.process.wait()
    assert numbers[3][0] == 3


def test_keyboard_interrupt_leaves_the_data_set_usable(files):
    numbers = shoal.Npy(files / "numbers.npy")
    assert numbers[0][0] == 0
    pid = numbers._helper.process.pid
    stop(pid)

    def interrupt(*_):
        os.kill(pid, signal.SIGCONT)
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    with pytest.raises(KeyboardInterrupt):
        numbers[1]
    assert gone([pid]) and numbers[2][0] == 2


def test_a_fork_has_a_helper_of_its_own(files):
    numbers = shoal.Npy(files / "numbers.npy")
    assert numbers[0][0] == 0
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if numbers[7][0] == 7 and children() and numbers._helper.pid == os.getpid() else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert numbers[8][0] == 8


def test_the_helper_ends_with_a_killed_process(files):
    code = (f"import shoal, sys, time; s = shoal.Npy({str(files / 'numbers.npy')!r}); s[0]; "
            "print(s._helper.process.pid, flush=True); time.sleep(60)")
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    helper = int(p.stdout.readline())
    assert program(helper) == "shoal-loader"
    p.kill()
    p.wait()
    assert gone([helper])


def test_a_missing_file_in_mid_epoch_names_it(files, tmp_path):
    (tmp_path / "a").mkdir()
    for i in range(10):
        (tmp_path / "a" / f"{i}.jpg").write_bytes((files / "images" / "a" / "000.jpg").read_bytes())
    images = shoal.ImageFolder(tmp_path)
    assert images[9][1] == 0
    loaders = [iter(cls(images, num_workers=1)) for cls in (torch.utils.data.DataLoader, shoal.DataLoader)]
    for it in loaders:
        next(it)
    (tmp_path / "a" / "9.jpg").unlink()
    with pytest.raises(FileNotFoundError, match="9.jpg"):
        images[9]
    for it in loaders:
        with pytest.raises(RuntimeError, match="9.jpg: no such file"):
            list(it)
    assert len(list(torch.utils.data.DataLoader(shoal.ImageFolder(tmp_path), num_workers=1))) == 9
