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


def early(f, name, data, chunks):
    """A data set whose chunks are all there from the beginning, and need no index."""
    space = h5py.h5s.create_simple(data.shape)
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunks)
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    h5py.h5d.create(f.id, name, h5py.h5t.py_create(data.dtype), space, plist)
    f[name.decode()][...] = data


# Layouts of version 4, and what HDF5 2.0 has besides.
for name, libver in [("v110", ("v110", "v112")), ("latest", "latest")]:
    with h5py.File(name + ".h5", "w", libver=libver) as f:
        f["plain"] = x
        f.create_dataset("single", data=x, chunks=x.shape)
        f.create_dataset("single_gzip", data=x, chunks=x.shape, compression="gzip")
        early(f, b"implicit", x, (1, 2, 3))
        f.create_dataset("fixed", data=x, chunks=(1, 2, 3))
        f.create_dataset("fixed_all", data=x, chunks=(1, 2, 3), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("fixed_room", data=x, chunks=(1, 2, 3), maxshape=(6, 4, 9))
        f.create_dataset("fixed_pages", shape=(5000,), dtype="<i4", chunks=(2,), fillvalue=7)[4000:4004] = 1
        f.create_dataset("extensible", data=x, chunks=(1, 2, 3), maxshape=(None, 4, 5))
        f.create_dataset("extensible_last", data=x, chunks=(1, 2, 1), maxshape=(3, 4, None), compression="lzf")
        f.create_dataset("extensible_blocks", data=np.arange(400), chunks=(2,), maxshape=(None,), compression="gzip")
        f.create_dataset("tree", data=x, chunks=(1, 2, 3), maxshape=(None, None, 5))
        f.create_dataset("tree_gzip", data=np.arange(900).reshape(30, 30), chunks=(2, 2), maxshape=(None, None), compression="gzip")
        f.create_dataset("sparse", shape=(10, 10), dtype="<i4", chunks=(3, 3), fillvalue=7, maxshape=(None, None))[4, 4] = 1
        for i in range(40):
            f["many/%02d" % i] = np.float32(i)
            f["many"].attrs["a%02d" % i] = i
with h5py.File("huge.h5", "w", libver=("v110", "v112")) as f:
    f["x"] = x
    for i in range(20):  # more than a header has, and three of them in no block of a heap
        f["x"].attrs["a%02d" % i] = np.arange(5_000 + i, dtype="<i2") if i < 3 else i
    f.create_group("empty").attrs["of"] = "nothing"
    f.create_group("bare/within")
with h5py.File("text.h5", "w") as f:
    f["fixed"] = np.array([b"a", b"bc", b""])
    f["long"] = np.array([["", "b"], ["cde", "\u00e9" * 10]], dtype=h5py.string_dtype())
    f["spaces"] = np.zeros(2, dtype=h5py.string_dtype("utf-8", 5))
    f["one"] = "text"
    f.create_dataset("gzip", data=["chunk %d" % i for i in range(50)], dtype=h5py.string_dtype(), chunks=(7,), compression="gzip")
    f["x"] = x
    f["group/x"] = x
    f.attrs["creator"] = "h5py"
    f["x"].attrs["unit"] = "m/s"
    f["x"].attrs["names"] = ["a", "bc"]
    f["x"].attrs["bytes"] = np.bytes_(b"abc")
    f["x"].attrs["scale"] = 2.5
    f["x"].attrs["shape"] = np.arange(6, dtype="<i4").reshape(2, 3)
    f["x"].attrs["empty"] = h5py.Empty("f4")
    f["group"].attrs["of"] = "group"
with h5py.File("odd.h5", "w") as f:
    f["records"] = np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8")])
    f.create_dataset("lists", shape=(2,), dtype=h5py.vlen_dtype("<i4"))
    f["unsigned"] = x.astype("<u4")
    f.create_dataset("scaled", data=x.astype("<i4"), scaleoffset=0, chunks=(3, 4, 5))
    f.create_dataset("none", data=h5py.Empty("f4"))

# Data sets that grow, for Append, beside some that do not.
with h5py.File("grows.h5", "w") as f:
    x = f.create_dataset("x", data=np.arange(6, dtype="f4").reshape(2, 3), maxshape=(None, 3), chunks=(4, 2), compression="gzip", shuffle=True)
    x.attrs["unit"] = "m"
    n = f.create_dataset("group/n", data=np.arange(5), maxshape=(None,), chunks=(7,))
    n.make_scale("n")
    x.dims[0].attach_scale(n)
    f.create_dataset("empty", shape=(0,), dtype="u1", maxshape=(None,), chunks=(16,), compression="lzf")
    f["fixed"] = np.arange(3)
    f["text"] = "abc"
    f.create_dataset("big", data=np.arange(3, dtype=">i4"), maxshape=(None,))
    f.create_dataset("summed", data=np.arange(3), maxshape=(None,), fletcher32=True)
    f["soft"] = h5py.SoftLink("/x")
