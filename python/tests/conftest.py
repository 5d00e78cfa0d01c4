"""Data of the tests: files of each kind, made once."""

import io
import json
import os
import signal
import tarfile
import time

import numpy as np
import pytest

COUNT = 403


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with 403 numbers, 24 JPEG images in 3 classes, 3 tar files, JSON lines and tokens."""
    from PIL import Image

    d = tmp_path_factory.mktemp("files")
    np.save(d / "numbers.npy", np.arange(COUNT, dtype=np.int64))
    rng = np.random.default_rng(1)
    tars = [tarfile.open(d / f"shard-{k}.tar", "w") for k in range(3)]
    for i in range(24):
        folder = d / "images" / "abc"[i % 3]
        folder.mkdir(parents=True, exist_ok=True)
        image, buffer = Image.fromarray(rng.integers(0, 255, (40, 50, 3), dtype=np.uint8)), io.BytesIO()
        image.save(buffer, "JPEG")
        (folder / f"{i:03}.jpg").write_bytes(buffer.getvalue())
        for end, content in ("jpg", buffer.getvalue()), ("cls", str(i).encode()):
            head = tarfile.TarInfo(f"{i:03}.{end}")
            head.size = len(content)
            tars[i % 3].addfile(head, io.BytesIO(content))
    for t in tars:
        t.close()
    lines = [json.dumps({"id": i, "ids": list(range(1 + i % 4))}) for i in range(20)]
    (d / "rows.jsonl").write_text("\n".join(lines) + "\n")
    np.arange(1000, dtype=np.uint16).tofile(d / "tokens.bin")
    return d


def children(of=None):
    """The pids of the processes that a process has started, and of those that these have started."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                state, parent = f.read().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents.setdefault(int(parent), []).append(int(pid))
    found, waiting = [], [of or os.getpid()]
    while waiting:
        new = parents.get(waiting.pop(), [])
        found, waiting = found + new, waiting + new
    return found


def program(pid):
    """The name of the program that a process executes."""
    return os.path.basename(os.readlink(f"/proc/{pid}/exe"))


def wait_for(condition):
    """Waits until a condition holds, for a minute at most, and says whether it does."""
    for _ in range(1200):
        if condition():
            return True
        time.sleep(0.05)
    return False


def stop(pid):
    """Stops a process, and waits until it is stopped."""
    os.kill(pid, signal.SIGSTOP)
    assert wait_for(lambda: "State:\tT" in open(f"/proc/{pid}/status").read())


def gone(pids):
    """Whether all processes end."""
    return wait_for(lambda: not [p for p in pids if os.path.exists(f"/proc/{p}/stat") and running(p)])


def running(pid):
    """Whether a process runs, and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
