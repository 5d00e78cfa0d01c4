"""Writes the images of the tests, with what Pillow makes of them: NAME.png and NAME.MODE.gz, planes of red, green and blue or of grey.

Pillow writes no interlaced images and none of 16 bits in colour: those are written here.
"""

import gzip
import io
import pathlib
import struct
import zlib
import numpy as np
from PIL import Image

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(2)


def picture(h, w, c):
    y, x = np.mgrid[0:h, 0:w]
    planes = [127 + 90 * np.sin(x / (5 + 3 * i) + y / 11) + 60 * ((x // 9 + y // 7 + i) % 2) - 30 for i in range(c)]
    return np.clip(np.stack(planes, -1) + rng.normal(0, 6, (h, w, c)), 0, 255).astype(np.uint8)


def record(name, data):
    (here / f"{name}.png").write_bytes(data)
    read = Image.open(io.BytesIO(data))
    if read.mode.startswith("I"):  # Pillow cuts off what is above 255, and so has no grey of 16 bits
        grey = (np.asarray(read).astype(np.uint32) >> 8).astype(np.uint8)
        read = Image.fromarray(grey)
    for mode in ("RGB", "L"):
        raw = np.asarray(read.convert(mode))
        raw = raw if mode == "L" else raw.transpose(2, 0, 1)
        with gzip.GzipFile(here / f"{name}.{mode}.gz", "wb", mtime=0) as f:
            f.write(np.ascontiguousarray(raw).tobytes())


def pillow(name, image, **options):
    out = io.BytesIO()
    image.save(out, "PNG", **options)
    record(name, out.getvalue())


def chunk(name, body):
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def by_hand(name, pixels, depth, kind, interlaced, filters=range(5), level=9, parts=1, strategy=zlib.Z_DEFAULT_STRATEGY):
    """pixels is (h, w, samples) of unsigned numbers."""
    h, w, n = pixels.shape
    raw = b""
    step = max(1, n * depth // 8)
    for x, y, dx, dy in PASSES if interlaced else [(0, 0, 1, 1)]:
        part = pixels[y::dy, x::dx]
        if part.size == 0:
            continue
        above = None
        for i, row in enumerate(part):
            if depth == 16:
                line = np.frombuffer(row.astype(">u2").tobytes(), np.uint8)
            else:
                bits = "".join(format(v, f"0{depth}b") for v in row.flatten())
                bits += "0" * (-len(bits) % 8)
                line = np.array([int(bits[k:k + 8], 2) for k in range(0, len(bits), 8)], np.uint8)
            a = np.concatenate([np.zeros(step, int), line[:-step].astype(int)])[:len(line)]
            b = np.zeros(len(line), int) if above is None else above.astype(int)
            c = np.concatenate([np.zeros(step, int), b[:-step]])[:len(line)]
            p = a + b - c
            da, db, dc = abs(p - a), abs(p - b), abs(p - c)
            paeth = np.where((da <= db) & (da <= dc), a, np.where(db <= dc, b, c))
            kind_of_filter = list(filters)[i % len(list(filters))]
            less = [0 * a, a, b, (a + b) // 2, paeth][kind_of_filter]
            raw += bytes([kind_of_filter]) + ((line.astype(int) - less) & 255).astype(np.uint8).tobytes()
            above = line
    z = zlib.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
    stream = z.compress(raw) + z.flush()
    cut = max(1, len(stream) // parts)
    idat = b"".join(chunk(b"IDAT", stream[i:i + cut]) for i in range(0, len(stream), cut))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, kind, 0, 0, interlaced))
    palette = chunk(b"PLTE", bytes((i * 37 + c * 91) % 256 for i in range(2 ** depth) for c in range(3))) if kind == 3 else b""
    record(name, b"\x89PNG\r\n\x1a\n" + header + palette + chunk(b"tEXt", b"Comment\0test") + idat + chunk(b"IEND", b""))


pillow("rgb", Image.fromarray(picture(45, 37, 3)))
pillow("rgb_optimized", Image.fromarray(picture(70, 61, 3)), optimize=True)
pillow("rgba", Image.fromarray(picture(31, 23, 4)))
pillow("grey", Image.fromarray(picture(29, 41, 1)[..., 0]))
pillow("palette", Image.fromarray(picture(29, 41, 3)).convert("P"))
pillow("bits", Image.fromarray(picture(29, 41, 1)[..., 0]).convert("1"))
pillow("flat", Image.new("RGB", (50, 50), (200, 30, 90)))
for depth in (1, 2, 4, 8, 16):
    for interlaced in (0, 1):
        grey = picture(19, 21, 1).astype(int)
        grey = grey >> (8 - depth) if depth < 16 else grey * 257
        by_hand(f"grey{depth}_{interlaced}", grey, depth, 0, interlaced)
        if depth < 16:
            by_hand(f"palette{depth}_{interlaced}", picture(19, 21, 1).astype(int) >> (8 - depth), depth, 3, interlaced)
        if depth >= 8:
            for name, kind, samples in (("rgb", 2, 3), ("greyalpha", 4, 2), ("rgba", 6, 4)):
                if depth == 16 and kind == 4:
                    continue
                pixels = picture(19, 21, samples).astype(int)
                by_hand(f"{name}{depth}_{interlaced}", pixels if depth == 8 else pixels * 256 + 7, depth, kind, interlaced)
for i in range(5):
    by_hand(f"filter{i}", picture(20, 33, 3).astype(int), 8, 2, 0, filters=[i], parts=3)
by_hand("stored", picture(20, 33, 3).astype(int), 8, 2, 0, level=0)
by_hand("fixed", picture(20, 33, 3).astype(int), 8, 2, 0, strategy=zlib.Z_FIXED)
by_hand("huffman", picture(20, 33, 3).astype(int), 8, 2, 0, strategy=zlib.Z_HUFFMAN_ONLY)
by_hand("runs", picture(20, 33, 3).astype(int) // 64 * 64, 8, 2, 0, strategy=zlib.Z_RLE, filters=[0])
by_hand("narrow", picture(9, 1, 3).astype(int), 8, 2, 1)
by_hand("dot", picture(1, 1, 1).astype(int), 8, 0, 1)
