# Writes the file that the tests read, by msgpack-numpy: python3 record.py
import msgpack
import msgpack_numpy
import numpy as np

x = np.arange(6, dtype="<f4").reshape(2, 3)
v = {"x": x, "fortran": np.asfortranarray(x), "nested": {"list": [x[0], 1, "é", None, True, 2.5, b"\xff"]}, "scalar": np.float32(1.5), "c": 1 + 2j, "big": x.astype(">f8"), "mask": x > 2}
with open("numpy.msgpack", "wb") as f:
    f.write(msgpack.packb(v, default=msgpack_numpy.encode))
for name, a in ("records", np.zeros(2, dtype=[("a", "<f4")])), ("text", np.array(["a"])):
    with open(name + ".msgpack", "wb") as f:
        f.write(msgpack.packb(a, default=msgpack_numpy.encode))
