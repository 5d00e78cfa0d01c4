# What formats_test.go asks of the libraries: python3 formats.py reads|writes FORMAT PATH
import json
import sys

import numpy as np


def arrays():
    x = np.arange(24, dtype="<f4").reshape(2, 3, 4)
    all = {"x": x, "scalar": np.array(5, dtype="<i8"), "empty": x[:0], "mask": x > 7}
    for name in "u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 c8 c16".split():
        all["t" + name] = np.ones(3, dtype=name)
    return all


def hdf5_read(path):
    import h5py

    found = {}
    with h5py.File(path) as f:
        f.visititems(lambda name, d: found.__setitem__(name, d[()]) if isinstance(d, h5py.Dataset) else None)
    return found


def hdf5_write(path):
    import h5py

    with h5py.File(path, "w") as f:
        for name, x in arrays().items():
            options = {} if x.ndim == 0 or x.size == 0 else {"chunks": True, "compression": "gzip", "shuffle": True}
            f.create_dataset(name, data=x, **options)


def msgpack_read(path):
    import msgpack
    import msgpack_numpy

    return msgpack.unpackb(open(path, "rb").read(), object_hook=msgpack_numpy.decode)


def msgpack_write(path):
    import msgpack
    import msgpack_numpy

    open(path, "wb").write(msgpack.packb(arrays(), default=msgpack_numpy.encode))


def safetensors_read(path):
    import safetensors.numpy

    return safetensors.numpy.load_file(path)


def safetensors_write(path):
    import safetensors.numpy

    all = {k: v for k, v in arrays().items() if v.dtype != np.dtype("c16")}
    safetensors.numpy.save_file(all, path)


formats = {
    "npz": (lambda p: dict(np.load(p)), lambda p: np.savez_compressed(p, **arrays())),
    "npy": (lambda p: {"tensor": np.load(p)}, lambda p: np.save(p, arrays()["x"])),
    "h5": (hdf5_read, hdf5_write),
    "msgpack": (msgpack_read, msgpack_write),
    "safetensors": (safetensors_read, safetensors_write),
}


def describe(x):
    x = np.asarray(x)
    numbers = x.astype("c16") if x.dtype.kind == "c" else x.astype("f8")
    return "%s%s%s" % (x.dtype.str[1:], list(x.shape), [float(v) for v in numbers.real.ravel()])


task, name, path = sys.argv[1:]
read, write = formats[name]
if task == "reads":
    print(json.dumps({k: describe(v) for k, v in read(path).items()}))
    if name == "h5":  # a file that only looks right cannot be written to
        import h5py

        with h5py.File(path, "r+") as f:
            f["appended/by/h5py"] = np.arange(3.0)
else:
    write(path)
    print(json.dumps({k: describe(v) for k, v in read(path).items()}))
