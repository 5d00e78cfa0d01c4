"""The rows of the suite files: one array to a file and back, by the libraries that Python has here.

Says hello in one line of JSON, then does what each line of stdin asks for and answers in a line. Values are ns.
"""

import json
import os
import pickle
import shutil
import sys
import tempfile
import threading
import time

import numpy as np
import torch

OPS = {}  # name: (library, save, load, see)
LOADS = {}  # name: {library: load}, other ways to load


def add(name, library, save, load, see=None):
    OPS[name] = (library, save, load, see)


def with_file(mode, do):
    def run(path, *args):
        with open(path, mode) as f:
            return do(f, *args)

    return run


add("pickle", "pickle", with_file("wb", lambda f, x: pickle.dump(x, f, 4)), with_file("rb", pickle.load))
add("npy", "numpy", with_file("wb", np.save), with_file("rb", np.load), lambda p: np.load(p, mmap_mode="c"))
add("pt", "torch.save", lambda p, x: torch.save({"x": torch.from_numpy(x)}, p), lambda p: torch.load(p, weights_only=True)["x"],
    (lambda p: torch.load(p, weights_only=True, mmap=True)["x"]) if int(torch.__version__.split(".")[0]) >= 2 else None)
try:
    import msgpack
    import msgpack_numpy

    add("msgpack", "msgpack-numpy", with_file("wb", lambda f, x: f.write(msgpack.packb({"x": x}, default=msgpack_numpy.encode))),
        with_file("rb", lambda f: msgpack.unpackb(f.read(), object_hook=msgpack_numpy.decode)["x"].copy()))
except ImportError:
    pass
try:
    import h5py

    def h5_save(**options):
        def save(path, x):
            with h5py.File(path, "w") as f:
                f.create_dataset("x", data=x, **options)

        return save

    def h5_load(path):
        with h5py.File(path) as f:
            return f["x"][()]

    add("hdf5", "h5py", h5_save(), h5_load)
    add("hdf5_gzip", "h5py", h5_save(compression="gzip", compression_opts=4, shuffle=True), h5_load)
except ImportError:
    pass
try:
    import safetensors
    import safetensors.numpy
    import safetensors.torch

    def see_safetensors(path):
        with safetensors.safe_open(path, "pt") as f:
            return f.get_tensor("x")

    add("safetensors", "safetensors", lambda p, x: safetensors.numpy.save_file({"x": x}, p), lambda p: safetensors.numpy.load_file(p)["x"], see_safetensors)
    # the usual call, which maps the file instead of reading it
    LOADS["safetensors"] = {"safetensors.torch.load_file": lambda p: safetensors.torch.load_file(p)["x"]}
except ImportError:
    pass


def save_synced(save, path, x):
    """Saves as the other side does: to another name, on disk before it takes its place."""
    save(path + ".new", x)
    fd = os.open(path + ".new", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    os.rename(path + ".new", path)


def measure(op, variant, size, path):
    what, name = op.split("_", 1)
    _, save, load, see = OPS[name]
    load = LOADS.get(name, {}).get(variant, load)
    x = np.arange(size // 4, dtype=np.float32)
    begin = time.perf_counter_ns()
    save_synced(save, path, x)
    if what != "save":
        begin = time.perf_counter_ns()
        got = (load if what == "load" else see)(path)
        assert got is not None
    value = time.perf_counter_ns() - begin
    os.remove(path)
    return value


def pipe(size):
    r, w = os.pipe()
    data = bytes(size)

    def write():
        left = memoryview(data)
        while left:
            left = left[os.write(w, left):]

    begin = time.perf_counter_ns()
    t = threading.Thread(target=write)
    t.start()
    to, have = memoryview(bytearray(size)), 0
    while have < size:
        have += os.readv(r, [to[have:]])
    t.join()
    value = time.perf_counter_ns() - begin
    os.close(r)
    os.close(w)
    return value


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    variants = {"pipe": ["os.pipe"]}
    for name, (library, _, _, see) in OPS.items():
        for what in ["save", "load"] + (["map"] if see else []):
            variants[what + "_" + name] = [library]
        variants["load_" + name] += LOADS.get(name, {})
    print(json.dumps({"Name": "torch " + torch.__version__, "Detail": "Python %s, numpy %s, one thread" % (sys.version.split()[0], np.__version__),
                      "Variants": variants}), file=out, flush=True)
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    for line in sys.stdin:
        r = json.loads(line)
        try:
            answer = {"Value": pipe(r["size"]) if r["op"] == "pipe" else measure(r["op"], r["variant"], r["size"], os.path.join(folder, "x"))}
        except Exception as e:
            answer = {"Error": f"{r['op']}: {type(e).__name__}: {e}"}
        print(json.dumps(answer), file=out, flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
