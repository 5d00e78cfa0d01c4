"""Writes the images of the tests, with what Pillow makes of them: NAME.jpg; NAME.MODE.gz, planes of red, green and blue or of grey; and
NAME.draftN.gz, decoded N times smaller."""

import gzip
import io
import pathlib
import numpy as np
from PIL import Image

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(1)


def picture(h, w):
    """Edges, slopes and some noise, in all colours."""
    y, x = np.mgrid[0:h, 0:w]
    planes = [127 + 90 * np.sin(x / (5 + 3 * c) + y / 11) + 60 * ((x // 9 + y // 7 + c) % 2) - 30 for c in range(3)]
    noise = rng.normal(0, 6, (h, w, 3))
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)


def write(name, image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    data = out.getvalue()
    (here / f"{name}.jpg").write_bytes(data)
    read = Image.open(io.BytesIO(data))
    for mode in ("RGB", "L"):
        raw = np.asarray(read.convert(mode))
        raw = raw if mode == "L" else raw.transpose(2, 0, 1)
        record(f"{name}.{mode}", raw)
    for times in (2, 4, 8):
        small = Image.open(io.BytesIO(data))
        if min(small.size) >= times:
            small.draft(None, (small.width // times, small.height // times))
            record(f"{name}.draft{times}", np.asarray(small.convert("RGB")).transpose(2, 0, 1))


def record(name, raw):
    with gzip.GzipFile(here / f"{name}.gz", "wb", mtime=0) as f:
        f.write(raw.tobytes())


for name, subsampling in (("444", 0), ("422", 1), ("420", 2)):
    for h, w in ((37, 45), (16, 16), (3, 5), (1, 1)):
        write(f"{name}_{h}x{w}", Image.fromarray(picture(h, w)), quality=90, subsampling=subsampling)
write("progressive_420", Image.fromarray(picture(50, 61)), quality=85, progressive=True)
write("progressive_444", Image.fromarray(picture(33, 29)), quality=95, progressive=True, subsampling=0)
write("low_quality", Image.fromarray(picture(64, 64)), quality=5)
write("best_quality", Image.fromarray(picture(40, 40)), quality=100)
write("restarts", Image.fromarray(picture(60, 70)), quality=80, restart_marker_blocks=3)
write("progressive_restarts", Image.fromarray(picture(60, 70)), quality=80, progressive=True, restart_marker_rows=1)
write("grey", Image.fromarray(picture(30, 41)).convert("L"), quality=80)
write("progressive_grey", Image.fromarray(picture(30, 41)).convert("L"), quality=80, progressive=True)
write("cmyk", Image.fromarray(picture(30, 41)).convert("CMYK"), quality=90)
write("rgb", Image.fromarray(picture(30, 41)), quality=90, keep_rgb=True)
write("optimized", Image.fromarray(picture(48, 48)), quality=75, optimize=True)
write("flat", Image.new("RGB", (40, 40), (200, 30, 90)), quality=75)
