# Writes the files that the tests read, by numpy: python3 record.py
import numpy as np

x = np.arange(6, dtype="<f4").reshape(2, 3)
for name, a, version in [
    ("v1", x, (1, 0)), ("v2", x, (2, 0)), ("v3", x, (3, 0)), ("fortran", np.asfortranarray(x), None), ("big", x.astype(">f4"), None),
    ("bigcomplex", (x + 1j).astype(">c16"), None), ("bool", x > 2, None), ("scalar", np.array(5, dtype="<i8"), None), ("empty", x[:0], None),
    ("records", np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8")]), None), ("text", np.array(["a", "bc"]), None), ("unsigned", x.astype("<u4"), None),
]:
    with open(name + ".npy", "wb") as f:
        np.lib.format.write_array(f, a, version)
with open("object.npy", "wb") as f:
    np.lib.format.write_array(f, np.array([{}, None], dtype=object))
np.savez("stored.npz", x=x, y=np.arange(3))
np.savez_compressed("compressed.npz", x=x, zeros=np.zeros(10000))
