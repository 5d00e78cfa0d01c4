# Writes the files that the tests read, by h5py: python3 record.py
import h5py
import numpy as np

x = np.arange(60, dtype="<f4").reshape(3, 4, 5)
with h5py.File("h5py.h5", "w") as f:
    f["plain"] = x
    f["group/deep/gzip"] = x
    f.create_dataset("group/gzip", data=x, chunks=(2, 3, 2), compression="gzip", shuffle=True, fletcher32=True)
    f.create_dataset("group/shuffle", data=x.astype("<f8"), chunks=(1, 4, 5), shuffle=True)
    f.create_dataset("big", data=x.astype(">f4"), chunks=(3, 4, 5), compression="gzip")
    f["bool"] = x > 7
    f["complex"] = (x + 1j).astype("<c8")
    f["half"] = x.astype("<f2")
    f["scalar"] = np.int64(-5)
    f["empty"] = x[:0]
    f["bytes"] = x.astype("u1")
    f["big16"] = x.astype(">i2")
    f.create_dataset("sparse", shape=(10, 10), dtype="<i4", chunks=(3, 3), fillvalue=7)[4, 4] = 1
    f.create_dataset("unwritten", shape=(4,), dtype="<i4")
    f.create_dataset("growing", data=np.arange(5000), chunks=(7,), maxshape=(None,))  # a tree of two levels
    f["soft"] = h5py.SoftLink("/plain")
    f["again"] = f["group"]
    f["plain"].attrs["unit"] = "m"
    for i in range(40):
        f["many/%02d" % i] = np.float32(i)
with h5py.File("latest.h5", "w", libver=("v110", "v112")) as f:
    f["plain"] = x
    f.create_dataset("one", data=x, chunks=x.shape, compression="gzip")
    f.create_dataset("growing", data=x, chunks=(1, 2, 3), maxshape=(None, 4, 5))
with h5py.File("odd.h5", "w") as f:
    f["text"] = np.array([b"a", b"bc"])
    f["records"] = np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8")])
    f["unsigned"] = x.astype("<u4")
    f["strings"] = ["a", "bc"]
    f.create_dataset("lzf", data=x, compression="lzf")
    f.create_dataset("none", data=h5py.Empty("f4"))
