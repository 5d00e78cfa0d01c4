"""Data sets in the process of the script."""

import copy
import os
import pickle
import signal
import subprocess
import sys

import pytest
import torch

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
    with pytest.raises(ValueError, match="no program with data sets"):
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
    with pytest.raises(ValueError, match="probabilities from 0 to 1"):
        shoal.ImageFolder(files / "images", flip=2.0)
    with pytest.raises(ValueError, match="transform and crop"):
        shoal.ImageFolder(files / "images", str, crop=3)
    with pytest.raises(TypeError, match="transform: got int"):
        shoal.ImageFolder(files / "images", 3)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        shoal.WebDataset(str(tmp_path / "nowhere-{0..3}.tar"))
    with pytest.raises(ValueError, match="rank 2 of world 2"):
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
    with pytest.warns(UserWarning, match="does not know the transform .*<lambda>"):
        ours = shoal.ImageFolder(files / "images", lambda image: steps(image) * 2)
    assert torch.equal(ours[5][0], theirs[5][0] * 2)


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
