"""Writes what torchvision makes of an image of Pillow: NAME.gz, planes of bytes, behind their dimensions in a line of text."""

import gzip
import pathlib
import numpy as np
from PIL import Image
from torchvision.transforms import InterpolationMode as I
import torchvision.transforms.functional as F

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(3)


def picture(h, w):
    y, x = np.mgrid[0:h, 0:w]
    planes = [127 + 90 * np.sin(x / (5 + 3 * c) + y / 11) + 60 * ((x // 9 + y // 7 + c) % 2) - 30 for c in range(3)]
    return np.clip(np.stack(planes, -1) + rng.normal(0, 6, (h, w, 3)), 0, 255).astype(np.uint8)


image = Image.fromarray(picture(47, 61))
image.save(here / "picture.png")

cases = {}
for name, mode in (("bilinear", I.BILINEAR), ("nearest", I.NEAREST), ("box", I.BOX), ("bicubic", I.BICUBIC), ("lanczos", I.LANCZOS)):
    for h, w in ((20, 31), (94, 122), (47, 30), (23, 61), (1, 1), (60, 20)):
        cases[f"resize_{name}_{h}x{w}"] = F.resize(image, (h, w), mode)
cases["resize_nearest_even"] = F.resize(F.crop(image, 0, 0, 46, 60), (21, 45), I.NEAREST)  # places that are between two pixels
cases["resize_shorter"] = F.resize(image, 32)
cases["resized_crop"] = F.resized_crop(image, 5, 9, 30, 41, (16, 24), I.BILINEAR)
cases["resized_crop_end"] = F.resized_crop(image, 17, 20, 30, 41, (33, 35), I.BICUBIC)
for h, w in ((20, 30), (21, 31), (60, 30), (51, 70), (30, 80)):
    cases[f"center_crop_{h}x{w}"] = F.center_crop(image, (h, w))
cases["crop_outside"] = F.crop(image, -3, 50, 20, 30)
for mode in ("constant", "edge", "reflect", "symmetric"):
    cases[f"pad_{mode}"] = F.pad(image, (3, 5, 7, 2), fill=(9, 8, 7) if mode == "constant" else 0, padding_mode=mode)
cases["hflip"] = F.hflip(image)
cases["vflip"] = F.vflip(image)
for name, mode in (("nearest", I.NEAREST), ("bilinear", I.BILINEAR)):
    cases[f"affine_{name}"] = F.affine(image, 17, (4, -3), 1.2, (5, -8), mode, fill=9)
    cases[f"rotate_{name}"] = F.rotate(image, 30, mode)
for factor in (0, 0.4, 1, 1.7):
    cases[f"brightness_{factor}"] = F.adjust_brightness(image, factor)
    cases[f"contrast_{factor}"] = F.adjust_contrast(image, factor)
    cases[f"saturation_{factor}"] = F.adjust_saturation(image, factor)
for factor in (-0.5, -0.2, 0.1, 0.37):
    cases[f"hue_{factor}"] = F.adjust_hue(image, factor)
cases["gray"] = F.to_grayscale(image, 1)
cases["gray3"] = F.to_grayscale(image, 3)

for name, made in cases.items():
    raw = np.asarray(made)
    raw = raw[None] if raw.ndim == 2 else raw.transpose(2, 0, 1)
    with gzip.GzipFile(here / f"{name}.gz", "wb", mtime=0) as f:
        f.write(("%d %d %d\n" % raw.shape).encode() + np.ascontiguousarray(raw).tobytes())
