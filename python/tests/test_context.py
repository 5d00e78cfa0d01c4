"""Go workers in the loaders of PyTorch."""

import functools
import multiprocessing
import os
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset, random_split

import shoal
from conftest import COUNT, children, gone, program
from shoal import context


def own_collate(samples):
    return torch.stack([s[0] for s in samples]) + 1000


def seed_worker(worker_id):
    """The function of PyTorch's documentation."""
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)


def counts_as_well(worker_id):
    torch.manual_seed(worker_id)
    os.environ["WORKER"] = str(worker_id)


def workers_of(loader):
    """The programs of the workers of a loader, its batches, and the processes."""
    it = iter(loader)
    first = next(it)
    pids = [w.pid for w in it._workers]
    return {program(p) for p in pids}, [first, *it], pids


@pytest.mark.parametrize("method", [None, "spawn", "forkserver", "fork"])
def test_any_start_method(files, method):
    default = multiprocessing.get_start_method()
    executable = multiprocessing.spawn.get_executable()
    loader = DataLoader(shoal.Npy(files / "numbers.npy"), 64, num_workers=2, multiprocessing_context=method)
    names, batches, pids = workers_of(loader)
    assert names == {"shoal-loader"}
    assert torch.cat([b[0] for b in batches]).tolist() == list(range(COUNT))
    assert gone(pids)
    assert multiprocessing.get_start_method() == default
    assert multiprocessing.spawn.get_executable() == executable


def test_containers(files):
    numbers = shoal.Npy(files / "numbers.npy")
    for inner in Subset(numbers, [3, 1]), random_split(numbers, [400, 3])[1], ConcatDataset([numbers, numbers]), numbers + numbers:
        names, batches, _ = workers_of(DataLoader(inner, 8, num_workers=1))
        assert names == {"shoal-loader"}
        assert torch.cat([b[0] for b in batches]).tolist() == [int(s[0]) for s in inner]


def test_other_loaders_are_left_alone(files):
    shoal.Npy(files / "numbers.npy")
    other = TensorDataset(torch.arange(8))
    assert DataLoader(other, num_workers=1).multiprocessing_context is None
    assert DataLoader(other, num_workers=1, multiprocessing_context="spawn").multiprocessing_context.get_start_method() == "spawn"
    assert DataLoader(shoal.Npy(files / "numbers.npy")).multiprocessing_context is None


def test_a_collate_fn_runs_in_python(files):
    loader = DataLoader(shoal.Npy(files / "numbers.npy"), 64, num_workers=2, collate_fn=own_collate)
    with pytest.warns(UserWarning, match="Python processes because of collate_fn=own_collate: leave it out") as caught:
        names, batches, pids = workers_of(loader)
        list(loader)
    ours = [w for w in caught if "own_collate" in str(w.message)]
    assert len(ours) == 1 and ours[0].filename == __file__  # the line of the script, not one of PyTorch
    assert all(name.startswith("python") for name in names)
    assert torch.cat(batches).tolist() == list(range(1000, 1000 + COUNT))
    assert gone(pids)


@pytest.mark.filterwarnings("ignore:the workers")
def test_python_workers_that_import_pytorch_stay(files):
    numbers = shoal.Npy(files / "numbers.npy")
    ours = shoal.DataLoader(numbers, 64, num_workers=1, collate_fn=own_collate, multiprocessing_context="forkserver")
    assert sum(map(len, ours)) == COUNT
    pid = ours._pool.workers[0].process.pid
    assert sum(map(len, ours)) == COUNT and ours._pool.workers[0].process.pid == pid
    theirs = DataLoader(numbers, 64, num_workers=1, collate_fn=own_collate, multiprocessing_context="forkserver")
    assert sum(map(len, theirs)) == COUNT
    for _ in range(2):
        assert sum(map(len, theirs)) == COUNT and theirs._iterator is not None


def test_seeding_functions_run_in_go(files):
    numbers = shoal.Npy(files / "numbers.npy")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*Python processes")
        names, batches, _ = workers_of(DataLoader(numbers, 64, num_workers=1, worker_init_fn=seed_worker))
    assert names == {"shoal-loader"} and len(batches) == 7
    with pytest.warns(UserWarning, match="worker_init_fn=counts_as_well: leave it out"):
        names, _, _ = workers_of(DataLoader(numbers, 64, num_workers=1, worker_init_fn=counts_as_well))
    assert "shoal-loader" not in names


def test_is_harmless():
    for f in None, seed_worker, functools.partial(seed_worker, 3), lambda i: torch.manual_seed(i):
        assert context.is_harmless(f)
    store = {}

    def remembers(i):
        store[i] = torch.initial_seed()

    for f in (counts_as_well, print, remembers, lambda i: os._exit(i), lambda i: np.random.shuffle([i]),
              functools.partial(seed_worker, store), lambda i: torch.utils.data.get_worker_info().dataset.open()):
        assert not context.is_harmless(f)


def test_lightnings_function_is_harmless():
    seed = pytest.importorskip("lightning.fabric.utilities.seed")
    assert context.is_harmless(functools.partial(seed.pl_worker_init_function, rank=1))


def test_transformers_function_is_harmless():
    trainer = pytest.importorskip("transformers.trainer_utils")
    assert context.is_harmless(functools.partial(trainer.seed_worker, num_workers=2, rank=0))


def test_other_processes_of_the_context_are_ordinary(files):
    ctx = shoal.get_context("spawn")
    answers = ctx.SimpleQueue()
    p = ctx.Process(target=answers.put, args=(7,))
    p.start()
    p.join()
    assert p.exitcode == 0 and answers.get() == 7
    with ctx.Pool(1) as pool:
        assert pool.apply(os.path.basename, ("a/b",)) == "b"


def test_data_sets_of_two_programs(files, tmp_path):
    other = tmp_path / "other"
    other.symlink_to(shoal._programs.find("shoal-loader"))
    mixed = ConcatDataset([shoal.Npy(files / "numbers.npy"),
                           shoal.Dataset("npy", program=other, paths=str(files / "numbers.npy"))])
    with pytest.warns(UserWarning, match="data sets of 2 programs"):
        names, batches, _ = workers_of(DataLoader(mixed, 100, num_workers=1))
    assert "shoal-loader" not in names and sum(len(b[0]) for b in batches) == 2 * COUNT


def test_an_unknown_transform_is_one_warning_with_the_reason(files):
    transforms = pytest.importorskip("torchvision.transforms")
    steps = transforms.Compose([transforms.Resize(8, max_size=9), transforms.CenterCrop(8), transforms.ToTensor()])
    with pytest.warns(UserWarning) as caught:
        names, batches, _ = workers_of(DataLoader(shoal.ImageFolder(files / "images", steps), 8, num_workers=1))
    ours = [str(w.message) for w in caught if "Python processes" in str(w.message)]
    assert len(ours) == 1 and "transforms.Resize: max_size=9 is not supported by Go" in ours[0]
    assert "shoal-loader" not in names and batches[0][0].shape == (8, 3, 8, 8)


def test_a_forked_worker_does_not_warn_of_the_helper(files):
    code = ("import shoal\nfrom torch.utils.data import DataLoader\n"
            "class Tenfold(shoal.Npy):\n    def __getitem__(self, i): return super().__getitem__(i)[0] * 10\n"
            f"s = Tenfold({str(files / 'numbers.npy')!r})\ns[0]\n"
            "print(sum(map(len, DataLoader(s, 64, num_workers=2, multiprocessing_context='fork'))))\n")
    told = subprocess.run([sys.executable, "-W", "always::ResourceWarning", "-c", code], capture_output=True, text=True)
    assert told.stdout == f"{COUNT}\n" and "still running" not in told.stderr, told.stderr


def test_torchdatas_loader(files):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    loader = stateful.StatefulDataLoader(shoal.Npy(files / "numbers.npy"), 64, num_workers=2)
    assert isinstance(loader.multiprocessing_context, context.Context)


def test_a_script_without_a_guard(files):
    """Go workers do not import the script, so it needs no ``if __name__ == "__main__"``."""
    code = ("import shoal\nfrom torch.utils.data import DataLoader\n"
            f"loader = DataLoader(shoal.Npy({str(files / 'numbers.npy')!r}), 64, num_workers=2, multiprocessing_context='spawn')\n"
            "print(sum(len(b[0]) for b in loader))")
    script = files / "no_guard.py"
    script.write_text(code)
    told = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (told.stdout, told.returncode) == (f"{COUNT}\n", 0), told.stderr


def test_keyboard_interrupt_leaves_no_process(files):
    code = ("import shoal, signal, sys, time\nfrom torch.utils.data import DataLoader\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in a background job
            f"s = shoal.Npy({str(files / 'numbers.npy')!r})\ns[0]\n"
            "for cls in DataLoader, shoal.DataLoader:\n"
            "    it = iter(cls(s, 2, num_workers=2)); next(it); globals()[cls.__module__] = it\n"
            "try: print('ready', flush=True); time.sleep(60)\n"
            "except KeyboardInterrupt: print('interrupted', flush=True)\n")
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert p.stdout.readline() == "ready\n"
    pids = children(p.pid)
    assert [program(x) for x in pids].count("shoal-loader") == 5
    os.killpg(p.pid, 2)
    assert p.stdout.readline() == "interrupted\n" and p.wait() == 0
    assert gone(pids)
