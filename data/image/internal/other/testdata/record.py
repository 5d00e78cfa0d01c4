"""Writes the images of the tests, with what Pillow makes of them: NAME.EXT and NAME.MODE.gz, planes of red, green and blue or of grey."""

import gzip
import io
import pathlib

import numpy as np
from PIL import Image

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(5)


def picture(h, w, c):
    y, x = np.mgrid[0:h, 0:w]
    planes = [127 + 90 * np.sin(x / (5 + 3 * i) + y / 11) + 60 * ((x // 9 + y // 7 + i) % 2) - 30 for i in range(c)]
    return Image.fromarray(np.clip(np.stack(planes, -1) + rng.normal(0, 6, (h, w, c)), 0, 255).astype(np.uint8).squeeze())


def record(name, image, **options):
    out = io.BytesIO()
    kind = {"tif": "TIFF", "pgm": "PPM"}.get(name[-3:], name.split(".")[-1].upper())
    image.save(out, kind, **options)
    (here / name).write_bytes(out.getvalue())
    read = Image.open(io.BytesIO(out.getvalue()))
    for mode in ("RGB", "L"):
        raw = np.asarray(read.convert(mode))
        raw = raw if mode == "L" else raw.transpose(2, 0, 1)
        with gzip.GzipFile(here / f"{name.split('.')[0]}.{mode}.gz", "wb", mtime=0) as f:
            f.write(np.ascontiguousarray(raw).tobytes())


for h, w in ((37, 53), (16, 16), (1, 1), (2, 1), (1, 2), (9, 40), (40, 9)):
    record(f"lossy_{h}x{w}.webp", picture(h, w, 3), quality=70)
record("lossy_alpha.webp", picture(21, 30, 4), quality=60)
record("lossless.webp", picture(23, 19, 3), lossless=True)
record("lossless_alpha.webp", picture(23, 19, 4), lossless=True)
record("rgb.bmp", picture(23, 19, 3))
record("grey.bmp", picture(23, 19, 1))
record("palette.bmp", picture(23, 19, 3).quantize(16))
record("black.bmp", picture(23, 19, 1).convert("1"))
record("color.ppm", picture(23, 19, 3))
record("gray.pgm", picture(23, 19, 1))
for name in "raw", "tiff_lzw", "tiff_adobe_deflate", "packbits":
    record(f"rgb_{name.removeprefix('tiff_')}.tif", picture(23, 19, 3), compression=name)
record("tiffgrey.tif", picture(23, 19, 1))
record("tiffpalette.tif", picture(23, 19, 3).quantize(16))
record("tiffalpha.tif", picture(23, 19, 4))
record("tiffblack.tif", picture(23, 19, 1).convert("1"))
