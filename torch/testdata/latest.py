# What TestFormats_LatestHDF5 asks of h5py: python3 latest.py write|read PATH
import sys

import h5py
import numpy as np


def write(path):
    with h5py.File(path, "w", libver="latest") as f:
        f.create_dataset("extensible", data=np.arange(20_000, dtype="<i4"), chunks=(1,), maxshape=(None,))
        f.create_dataset("fixed", data=np.arange(5000, dtype="<i4"), chunks=(1,), compression="lzf")
        f.create_dataset("tree", data=np.arange(10_000, dtype="<i4").reshape(100, 100), chunks=(2, 2), maxshape=(None, None))
        for i in range(600):
            f["many/member with a long name %05d" % i] = np.int32(i)
        for i in range(300):
            f["many"].attrs["attribute %05d" % i] = i


def read(path):
    with h5py.File(path, "r+") as f:
        d, g = f["lzf"], f["group"]
        print(d[()].sum(), d.compression, d.shuffle, len(f["noise"][()]), g["labels"].asstr()[()].tolist(), g.attrs["text"], g.attrs["list"].tolist(),
              g.attrs["number"], g.attrs["number"].dtype)
        g.attrs["more"] = "text"  # a file that only looks right cannot be written to
        g["again"] = g["labels"][()]


globals()[sys.argv[1]](*sys.argv[2:])
