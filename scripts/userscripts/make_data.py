"""Makes the data of the scripts: python3 make_data.py DIRECTORY --samples N"""
import argparse
import io
import json
import os
import sys
import tarfile

import numpy as np

WORDS = ("the a this film plot actor scene was is very not good bad great dull slow quick bright dark love hate story end begin "
         "music camera laugh cry minute hour never always perhaps really quite").split()


def digits(root, n, rng):
    """Two .npy files: images of 28x28 bytes, and their labels."""
    labels = rng.integers(0, 10, n)
    images = rng.integers(0, 120, (n, 28, 28), dtype=np.uint8)
    for i, label in enumerate(labels):
        images[i, 2 * label + 2:2 * label + 6, 4:24] += 120
    np.save(os.path.join(root, "images.npy"), images)
    np.save(os.path.join(root, "labels.npy"), labels)


def photographs(root, n, rng):
    """A folder of JPEG and PNG files for each of four classes."""
    from PIL import Image
    classes = ["cat", "dog", "fish", "snail"]
    for c in classes:
        os.makedirs(os.path.join(root, "photographs", c))
    for i in range(n):
        c = i % len(classes)
        height, width = rng.integers(60, 100, 2)
        y, x = np.mgrid[0:height, 0:width]
        waves = np.stack([np.sin(x / (3 + c)) + np.cos(y / (9 - c)), np.sin((x + y) / 7), np.cos(x / 11 - c)], -1)
        pixels = (waves * 50 + 128 + rng.normal(0, 8, waves.shape)).clip(0, 255).astype(np.uint8)
        name = f"{i:05d}.png" if i % 8 == 0 else f"{i:05d}.jpg"
        Image.fromarray(pixels).save(os.path.join(root, "photographs", classes[c], name))


def reviews(root, n, rng):
    """A file of JSON lines, texts of very different lengths with a label."""
    with open(os.path.join(root, "reviews.jsonl"), "w") as f:
        for _ in range(n):
            text = " ".join(rng.choice(WORDS, rng.integers(1, 60)))
            f.write(json.dumps({"text": text, "label": int("good" in text)}) + "\n")


def shards(root, n, rng):
    """Six files of JSON lines: sixteen features and a target."""
    os.makedirs(os.path.join(root, "shards"))
    for k in range(6):
        with open(os.path.join(root, "shards", f"part-{k}.jsonl"), "w") as f:
            for _ in range(n // 6 + k):
                x = rng.normal(0, 1, 16).round(3).tolist()
                f.write(json.dumps({"x": x, "y": round(sum(x), 3)}) + "\n")


def tars(root, n, rng):
    """Eight tar files in the layout of WebDataset: small JPEG files and their classes."""
    from PIL import Image
    os.makedirs(os.path.join(root, "tars"))
    for k in range(8):
        with tarfile.open(os.path.join(root, "tars", f"part-{k}.tar"), "w") as tar:
            for i in range(n // 8 + k):
                image = io.BytesIO()
                Image.fromarray(rng.integers(0, 255, (24, 24, 3), dtype=np.uint8)).save(image, "JPEG")
                for end, content in ("cls", str(i % 4).encode()), ("jpg", image.getvalue()):
                    member = tarfile.TarInfo(f"{i:06d}.{end}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))


def tokens(root, n, rng):
    """A Dataset of Hugging Face on disk: rows of 32 numbers of tokens, and a label."""
    try:
        import datasets
    except ImportError:
        return
    datasets.disable_progress_bars()
    rows = rng.integers(0, 1000, (n, 32))
    columns = {"input_ids": rows.tolist(), "label": (rows[:, 0] % 2).tolist()}
    datasets.Dataset.from_dict(columns).save_to_disk(os.path.join(root, "tokens"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--samples", type=int, required=True)
    args = parser.parse_args()
    os.makedirs(args.root)
    for make in digits, reviews, shards, tokens:
        make(args.root, args.samples, np.random.default_rng(1))
    try:
        import PIL
    except ImportError:  # the scripts with images are left out
        sys.exit()
    photographs(args.root, args.samples // 4, np.random.default_rng(1))
    tars(args.root, args.samples // 4, np.random.default_rng(1))
