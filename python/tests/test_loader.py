"""shoal.DataLoader: order, state, and workers that die."""

import os
import pickle
import random
import shutil
import signal
import subprocess
import sys

import pytest
import torch
from torch.utils.data import BatchSampler, RandomSampler, TensorDataset, WeightedRandomSampler

import shoal
from conftest import COUNT, children, gone, program, stop


def flat(batches):
    return [i for batch in batches for i in batch[0].tolist()]


@pytest.fixture
def make(files):
    numbers = shoal.Npy(files / "numbers.npy")

    def loader(num_workers=2, batch_size=16, dataset=numbers, shuffle=True, seed=7, **kwargs):
        if kwargs.keys() & {"sampler", "batch_sampler"}:
            shuffle = None
        return shoal.DataLoader(dataset, batch_size, shuffle, num_workers=num_workers, seed=seed, **kwargs)

    return loader


def test_each_sample_once_in_an_order_of_the_seed(make):
    want = flat(make(0))
    assert sorted(want) == list(range(COUNT)) != want
    for loader in make(1), make(3), make(2, persistent_workers=True), make(2, prefetch_factor=7):
        assert flat(loader) == want
    assert flat(make(2, seed=8)) != want
    loader = make(2)
    epochs = [flat(loader) for _ in range(3)]
    assert epochs[0] == want and len(set(map(tuple, epochs))) == 3
    loader.set_epoch(0)
    assert flat(loader) == want
    assert flat(make(2, shuffle=False)) == list(range(COUNT))


def test_length(make):
    for n, drop_last in (16, False), (16, True), (13, True), (13, False), (500, False):
        for rank, world in (0, 1), (0, 2), (1, 2), (2, 3):
            loader = make(0, n, drop_last=drop_last, rank=rank, world_size=world)
            assert len(loader) == len(list(loader)), (n, drop_last, rank, world)
    assert len(make(0, None)) == COUNT


def test_persistent_workers_stay(make):
    loader = make(2, persistent_workers=True)
    want = [flat(make(0))]
    for i, _ in enumerate(loader):
        if i == 4:
            break
    pids = {w.process.pid for w in loader._pool.workers}
    loader.set_epoch(0)
    assert [flat(loader)] == want and {w.process.pid for w in loader._pool.workers} == pids
    del loader
    assert gone(pids)


def test_an_early_end_leaves_no_process(make):
    before = children()
    for _ in make(2):
        pids = [p for p in children() if program(p) == "shoal-loader" and p not in before]
        break
    assert len(pids) >= 2 and gone(pids)


@pytest.mark.parametrize("workers", [(2, 3), (2, 0), (0, 1)])
def test_resumes_with_other_workers(make, workers):
    rng, want = random.Random(3), flat(make(0))
    for batches in [0, 1, 26] + [rng.randrange(26) for _ in range(3)]:
        loader = make(workers[0])
        it = iter(loader)
        got = flat(next(it) for _ in range(batches))
        state = pickle.loads(pickle.dumps(loader.state_dict()))
        del it
        again = make(workers[1], 16 if batches % 2 else 10)
        again.load_state_dict(state)
        assert again.state_dict() == state
        assert got + flat(again) == want
        assert flat(again) != want  # the next epoch
    again.set_epoch(0)
    assert flat(again) == want


def test_resumes_with_other_ranks(make):
    want = flat(make(0))
    for before, after, batches in (1, 2, 7), (2, 1, 5), (2, 3, 12), (3, 2, 0):
        got, state = [], None
        for rank in range(before):
            loader = make(1, rank=rank, world_size=before)
            it = iter(loader)
            got += flat(next(it) for _ in range(batches))
            assert state in (None, loader.state_dict())
            state = loader.state_dict()
        assert sorted(got) == sorted(want[:16 * before * batches])
        left = []
        for rank in range(after):
            loader = make(1, rank=rank, world_size=after)
            loader.load_state_dict(state)
            left.append(flat(loader))
        assert sorted(got + sum(left, [])) == list(range(COUNT))
        assert max(map(len, left)) - min(map(len, left)) <= 1


def test_set_epoch_of_the_resumed_epoch_keeps_the_position(make):
    loader = make(1)
    loader.set_epoch(3)
    it = iter(loader)
    got = flat(next(it) for _ in range(4))
    state = loader.state_dict()
    again = make(2)
    again.load_state_dict(state)
    again.set_epoch(3)
    assert len(flat(again)) == COUNT - len(got)
    again.load_state_dict(state)
    again.set_epoch(4)
    assert len(flat(again)) == COUNT


def test_samplers_of_the_script(make):
    weights = WeightedRandomSampler(torch.rand(COUNT), 200, generator=torch.Generator().manual_seed(1))
    for sampler in {"sampler": RandomSampler(range(COUNT))}, {"sampler": weights}, {
            "batch_sampler": BatchSampler(RandomSampler(range(COUNT)), 9, True), "batch_size": 1}:
        loader = make(2, **sampler)
        it = iter(loader)
        got = flat(next(it) for _ in range(5))
        state = pickle.loads(pickle.dumps(loader.state_dict()))
        want = got + flat(it)
        torch.manual_seed(random.randrange(1000))
        again = make(1, **sampler)
        again.load_state_dict(state)
        assert got + flat(again) == want


def test_a_sampler_with_a_state(make):
    class Counter:
        def __init__(self):
            self.at = 0

        def __len__(self):
            return 100

        def __iter__(self):
            while self.at < 100:
                self.at += 1
                yield self.at

        def state_dict(self):
            return {"at": self.at}

        def load_state_dict(self, state):
            self.at = state["at"]

    loader = make(2, 8, sampler=Counter())
    it = iter(loader)
    got = flat(next(it) for _ in range(3))
    again = make(2, 8, sampler=Counter())
    again.load_state_dict(loader.state_dict())
    assert got + flat(again) == list(range(1, 101))
    with pytest.raises(ValueError, match="same sampler"):
        again = make(2, 8, sampler=range(100))
        again.load_state_dict(loader.state_dict())
        list(again)


def test_streams_resume(files, make):
    shards = shoal.WebDataset(str(files / "shard-{0..2}.tar"), resize=(8, 8), shuffle=5)
    for workers in 0, 1, 2:
        loader = make(workers, 4, shards, None)
        want = [labels.tolist() for _, labels in loader]
        assert sorted(sum(want, [])) == list(range(24))
        loader.set_epoch(0)
        it = iter(loader)
        got = [next(it)[1].tolist() for _ in range(3)]
        again = make(workers, 4, shards, None)
        again.load_state_dict(loader.state_dict())
        assert got + [labels.tolist() for _, labels in again] == want
    with pytest.raises(ValueError, match="num_workers 2, and this loader 1.*same number of workers"):
        make(1, 4, shards, None).load_state_dict(loader.state_dict())


def test_streams_resume_in_later_epochs(files, make):
    """With persistent workers, too: the order of an epoch must not depend on the epochs before it."""
    shards = shoal.WebDataset(str(files / "shard-{0..2}.tar"), resize=(8, 8), shuffle=5)
    loader = make(2, 4, shards, None, persistent_workers=True)
    epochs = [[labels.tolist() for _, labels in loader] for _ in range(2)]
    assert epochs[0] != epochs[1]
    it = iter(loader)
    got = [next(it)[1].tolist() for _ in range(3)]
    state = loader.state_dict()
    want = got + [labels.tolist() for _, labels in it]
    again = make(2, 4, shards, None, persistent_workers=True)
    again.load_state_dict(state)
    assert got + [labels.tolist() for _, labels in again] == want


def nothing(samples):
    return None


@pytest.mark.filterwarnings("ignore:the workers")
def test_batches_that_are_none(make):
    assert list(make(2, 100, collate_fn=nothing)) == [None] * 5


def test_refused_states(make):
    state = make(0).state_dict()
    for bad, text in (("x", "no state"), ({"_steps": 3}, "torchdata"), (dict(state, length=1), "the data set has changed"),
                      (dict(state, shuffle=False), "same shuffle"), (dict(state, position=-1), "position is -1"),
                      (dict(state, kind="stream"), "same sampler or data set"), (dict(state, seed=None), "seed is None")):
        with pytest.raises(ValueError, match=text):
            make(0).load_state_dict(bad)


def test_refused_arguments(files, make):
    shards = shoal.WebDataset(str(files / "shard-*.tar"))
    for kwargs, text in (({"in_order": False}, "in_order"), ({"rank": 2, "world_size": 2}, "rank 2 of world_size 2"),
                         ({"batch_size": 0}, "batch_size=0"), ({"batch_size": "8"}, "batch_size='8'"), ({"sampler": range(3), "world_size": 2}, "leave out these arguments"),
                         ({"dataset": shards, "shuffle": True}, "shuffle"), ({"timeout": -1}, "timeout")):
        with pytest.raises(ValueError, match=text):
            make(**kwargs)


def test_killed_workers_are_replaced(files, make):
    want = flat(make(0))
    for kwargs in {}, {"persistent_workers": True}:
        it = iter(make(2, 8, **kwargs))
        got = []
        for i, batch in enumerate(it):
            if i % 10 == 4:
                os.kill(it._pool.workers[i % 3 % 2].process.pid, signal.SIGKILL)
            got += batch[0].tolist()
        assert got == want
    shards = shoal.WebDataset(str(files / "shard-{0..2}.tar"), resize=(8, 8), shuffle=5)
    want = [labels.tolist() for _, labels in make(2, 2, shards, None)]
    it = iter(make(2, 2, shards, None))
    got = []
    for i, (_, labels) in enumerate(it):
        if i in (2, 5):
            os.kill(it._pool.workers[i % 2].process.pid, signal.SIGKILL)
        got.append(labels.tolist())
    assert got == want


def test_workers_that_always_die_are_an_error(make, monkeypatch):
    it = iter(make(1))
    replace = type(it._pool)._replace

    def replaced(pool, w):
        replace(pool, w)
        os.kill(w.process.pid, signal.SIGKILL)

    monkeypatch.setattr(type(it._pool), "_replace", replaced)
    os.kill(it._pool.workers[0].process.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="was killed by SIGKILL; perhaps .* memory .* died without a batch"):
        list(it)
    assert it._pool is None


def collate(samples):
    return [torch.stack([s[0] for s in samples])]


def test_python_workers(make):
    want = flat(make(0))
    with pytest.warns(UserWarning, match="collate_fn=collate"):
        it = iter(make(2, collate_fn=collate))
    got = flat([next(it), next(it)])
    os.kill(it._pool.workers[0].process.pid, signal.SIGKILL)
    assert got + flat(it) == want
    other = TensorDataset(torch.arange(40))
    loader = shoal.DataLoader(other, 4, num_workers=2)
    it = iter(loader)
    assert program(it._pool.workers[0].process.pid) == "shoal-loader"
    assert flat(it) == list(range(40))


def fails(samples):
    if any(int(s[0]) == 40 for s in samples):
        raise KeyError("sample 40")
    return collate(samples)


@pytest.mark.filterwarnings("ignore:the workers")
def test_an_exception_of_a_sample_comes_in_its_place(make):
    for workers in 0, 2:
        it = iter(make(workers, 16, shuffle=False, collate_fn=fails))
        assert flat([next(it), next(it)]) == list(range(32))
        with pytest.raises(KeyError, match="sample 40"):
            next(it)


def test_a_fork_must_begin_its_own_iteration(make):
    loader = make(1)
    it = iter(loader)
    next(it)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            next(it)
        except RuntimeError as e:
            code = 0 if "belongs to process" in str(e) else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(flat(it)) == COUNT - 16


def test_few_descriptors(files):
    code = ("import resource, shoal, sys\nimport torch\n"
            f"s = shoal.Npy({str(files / 'numbers.npy')!r})\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
            "print(sum(len(b[0]) for b in shoal.DataLoader(s, 8, num_workers=2)))\n"
            "print(sum(len(b[0]) for b in torch.utils.data.DataLoader(s, 8, num_workers=2)))\n"
            "try: list(shoal.DataLoader(s, 8, num_workers=12))\n"
            "except OSError as e: print(e)\n")
    told = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    lines = told.stdout.splitlines()
    assert lines[:2] == [str(COUNT)] * 2 and "raise the limit (ulimit -n)" in lines[2], told.stderr


@pytest.mark.parametrize("options", ["ro", "size=4k"])
def test_no_room_in_dev_shm(files, options):
    """Samples, batches and errors if /dev/shm cannot be written to, or is full."""
    code = ("import shoal, sys, torch\n"
            f"s = shoal.Npy({str(files / 'numbers.npy')!r})\n"
            "print(int(s[3][0]))\n"
            "try: open('/dev/shm/filler', 'wb', 0).write(bytes(1 << 16))\n"
            "except OSError: pass\n"
            "for cls in torch.utils.data.DataLoader, shoal.DataLoader:\n"
            "    try: print(sum(len(b[0]) for b in cls(s, 64, num_workers=2)))\n"
            "    except OSError as e: print(e.strerror)\n")
    apart = ["unshare", "--mount", "sh", "-c", f"mount -t tmpfs -o {options} tmpfs /dev/shm && exec \"$@\"", "sh"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    told = subprocess.run([*apart, sys.executable, "-c", code], capture_output=True, text=True)
    lines = told.stdout.splitlines()
    assert told.returncode == 0 and lines[0] == "3", told.stderr
    for line in lines[1:]:
        assert line == str(COUNT) or (line.startswith(("Read-only file system", "No space left on device"))
                                      and "use num_workers=0" in line), told.stderr
    assert len(lines) == 3


def test_no_dev_shm(files, tmp_path):
    """An error with the cause, and samples without workers, in a file system without /dev/shm."""
    code = ("import os, shoal, torch\nassert not os.path.exists('/dev/shm')\n"
            f"s = shoal.Npy({str(files / 'numbers.npy')!r})\n"
            "for cls in torch.utils.data.DataLoader, shoal.DataLoader:\n"
            "    print(sum(len(b[0]) for b in cls(s, 64)))\n"
            "    try: list(cls(s, 64, num_workers=2))\n"
            "    except FileNotFoundError as e: print(e.strerror)\n")
    apart = ["unshare", "--mount", "sh", "-c", f'd={tmp_path} && mount -t tmpfs tmpfs $d && for f in null zero urandom random; do '
             'touch $d/$f && mount --bind /dev/$f $d/$f || exit; done; mount --rbind $d /dev && exec "$@"', "sh"]
    if subprocess.run([*apart, "test", "!", "-e", "/dev/shm"], capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    told = subprocess.run([*apart, sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    lines = told.stdout.splitlines()
    assert told.returncode == 0 and lines[::2] == [str(COUNT)] * 2 and len(lines) == 4, told.stderr
    assert all("/dev/shm, which is missing" in line and "use num_workers=0" in line for line in lines[1::2])


def test_a_full_disk_for_rows_in_no_order(tmp_path):
    """Parquet rows come without a spill file, slowly, and a warning says why."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = pyarrow.table({"i": list(range(1000)), "x": [[1.5] * 64] * 1000})
    parquet.write_table(rows, tmp_path / "rows.parquet", row_group_size=500)
    code = (f"import shoal\ns = shoal.Parquet({str(tmp_path / 'rows.parquet')!r}, cache=10_000)\n"
            "print(sorted(i for b in shoal.DataLoader(s, 50, True, num_workers=1) for i in b['i'].tolist()) == list(range(1000)))\n")
    (tmp_path / "full").mkdir()
    apart = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=64k tmpfs {tmp_path}/full && exec "$@"', "sh"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    told = subprocess.run([*apart, sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "TMPDIR": str(tmp_path / "full")})
    assert told.stdout == "True\n" and "cannot write the spill file" in told.stderr and "no space left" in told.stderr, told.stderr


@pytest.mark.parametrize("cls", [shoal.DataLoader, torch.utils.data.DataLoader])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_file_that_goes_away_during_an_epoch(files, tmp_path, cls, workers):
    shutil.copytree(files / "images", tmp_path / "images")
    for skip in False, True:
        images = shoal.ImageFolder(tmp_path / "images", resize=8, crop=8, skip=skip)
        it = iter(cls(images, 4, num_workers=workers, **({"prefetch_factor": 1} if workers else {})))
        assert len(next(it)[0]) == len(next(it)[0]) == 4  # all workers have listed the folder
        gone_away = tmp_path / "images" / "c" / "017.jpg"
        gone_away.rename(tmp_path / "017.jpg")
        if skip:
            assert sum(len(images) for images, _ in it) == 24 - 8 - 1
        else:
            with pytest.raises((RuntimeError, FileNotFoundError), match="017.jpg: no such file"):
                list(it)
        if workers:
            with pytest.raises(RuntimeError, match="has 23 samples, and had 24 when the script constructed it"):
                next(iter(cls(images, 4, num_workers=workers)))
        (tmp_path / "017.jpg").rename(gone_away)


def test_a_killed_script_leaves_no_worker(files):
    code = ("import shoal, sys, time, torch\n"
            f"s = shoal.Npy({str(files / 'numbers.npy')!r})\n"
            "its = [iter(cls(s, 4, num_workers=2, **kw)) for cls in (shoal.DataLoader, torch.utils.data.DataLoader)\n"
            "       for kw in ({}, {'collate_fn': lambda samples: samples})]\n"
            "for it in its: next(it)\n"
            "print('ready', flush=True); time.sleep(60)\n")
    p = subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "ready\n"
    pids = children(p.pid)
    assert len(pids) >= 8
    p.kill()
    p.wait()
    assert gone(pids)


def test_keyboard_interrupt_ends_the_epoch(make):
    loader = make(2, prefetch_factor=1)
    it = iter(loader)
    next(it)
    workers = [w.process.pid for w in it._pool.workers]
    for pid in workers:
        stop(pid)

    def interrupt(*_):
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    with pytest.raises(KeyboardInterrupt):
        list(it)
    assert gone(workers) and sorted(flat(loader)) == list(range(COUNT))
