"""Loads torchvision's data sets by Python and by a Go program, and compares the batches bit by bit."""
import gzip
import json
import os
import pickle
import sys

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import nn
from torch.utils.data import ChainDataset, ConcatDataset, DataLoader, Dataset, StackDataset, Subset, TensorDataset, random_split
from torchvision import datasets, transforms as T
from torchvision.transforms import InterpolationMode, v2

from compared import out, refused, same

def picture(rng, h, w):
    y, x = np.mgrid[0:h, 0:w]
    planes = [127 + 90 * np.sin(x / (5 + 3 * c) + y / 11) + 60 * ((x // 9 + y // 7 + c) % 2) - 30 for c in range(3)]
    return np.clip(np.stack(planes, -1) + rng.normal(0, 6, (h, w, 3)), 0, 255).astype(np.uint8)


def write_folder(root):
    rng = np.random.default_rng(5)
    for name in ("ant", "bee", "cat"):
        os.makedirs(os.path.join(root, name))
    for i, (h, w) in enumerate(((47, 61), (64, 64), (33, 90))):
        p = Image.fromarray(picture(rng, h, w))
        p.save(f"{root}/ant/{i}.png")
        p.save(f"{root}/bee/{i}.jpg", quality=90, progressive=i == 1, subsampling=i)
    p.convert("L").save(f"{root}/cat/grey.JPEG")
    p.convert("P").save(f"{root}/cat/palette.png")
    p.convert("CMYK").save(f"{root}/cat/cmyk.jpg")


def write_mnist(root, kind="MNIST", n=20):
    rng = np.random.default_rng(6)
    os.makedirs(f"{root}/{kind}/raw")
    for stem in ("train", "t10k"):
        for file, shape in (("images-idx3", (n, 28, 28)), ("labels-idx1", (n,))):
            raw = rng.integers(0, 10 if len(shape) == 1 else 256, shape, dtype=np.uint8)
            head = bytes([0, 0, 8, len(shape)]) + b"".join(int(d).to_bytes(4, "big") for d in shape)
            with open(f"{root}/{kind}/raw/{stem}-{file}-ubyte", "wb") as f:
                f.write(head + raw.tobytes())


def write_cifar(root, kind, base, lists, labels, meta, n=8):
    import hashlib
    rng = np.random.default_rng(7)
    base = f"{root}/{base}"
    os.makedirs(base)
    sums = {}
    def write(name, content):
        with open(f"{base}/{name}", "wb") as f:
            pickle.dump(content, f)
        with open(f"{base}/{name}", "rb") as f:
            sums[name] = hashlib.md5(f.read()).hexdigest()
    for names in lists.values():
        for name in names:
            write(name, {"data": rng.integers(0, 256, (n, 3072), dtype=np.uint8), labels: rng.integers(0, 10, n).tolist()})
    file, key = meta
    write(file, {key: [f"class{i}" for i in range(10)]})
    for attr, names in lists.items():  # of files of our own, whose checksums are others
        setattr(kind, attr, [[n, sums[n]] for n in names])
    kind.meta = {"filename": file, "key": key, "md5": sums[file]}


class Photos(Dataset):
    """A data set of Go's with a transform."""
    def __init__(self, root, transform):
        self.shoal_dataset, self.root, self.transform = "photos", root, transform
        self._cache = {}

    def __len__(self):
        return 9

    def __getitem__(self, i):
        return datasets.ImageFolder(self.root, self.transform)[i]


def main(program, root):
    torch.multiprocessing.set_executable(program)
    folder, mnist, cifar = (f"{root}/{n}" for n in ("folder", "mnist", "cifar"))
    write_folder(folder), write_mnist(mnist), write_mnist(mnist, "FashionMNIST")
    write_cifar(cifar, datasets.CIFAR10, "cifar-10-batches-py", {"train_list": [f"data_batch_{i}" for i in range(1, 6)], "test_list": ["test_batch"]},
                "labels", ("batches.meta", "label_names"))
    write_cifar(cifar, datasets.CIFAR100, "cifar-100-python", {"train_list": ["train"], "test_list": ["test"]}, "fine_labels", ("meta", "fine_label_names"))
    size = (24, 20)
    tail = [T.ToTensor(), T.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
    tail2 = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    photos = lambda *ts: datasets.ImageFolder(folder, T.Compose(ts))
    photos2 = lambda *ts: datasets.ImageFolder(folder, v2.Compose(ts))

    for name, mode in InterpolationMode.__members__.items():
        if mode != InterpolationMode.HAMMING:
            same(f"resize {name}", photos(T.Resize(size, mode), T.ToTensor()))
    same("folder", photos(T.Resize(30), T.CenterCrop(24), *tail), shuffle=False)
    same("folder 2", photos2(v2.Resize(30), v2.CenterCrop((24, 40)), *tail2))
    same("bytes", photos(T.Resize(size), T.PILToTensor()))
    same("bytes to float", photos(T.Resize(size), T.PILToTensor(), T.ConvertImageDtype(torch.float32)))
    same("bytes 2", photos2(v2.Resize(size), v2.PILToTensor(), v2.ToDtype(torch.uint8, scale=True), v2.ToPureTensor()))
    same("unscaled", photos2(v2.Resize(size), v2.ToImage(), v2.ToDtype(torch.float32)))
    same("dict of dtypes", photos2(v2.Resize(size), v2.ToImage(), v2.ToDtype({torchvision.tv_tensors.Image: torch.float32, "others": None}, scale=True)))
    same("convert 2", photos2(v2.Resize(size), v2.ToImage(), v2.ConvertImageDtype(torch.float32)))
    same("crop of tensors", photos2(v2.Resize(40), v2.ToImage(), v2.CenterCrop(33), v2.RandomHorizontalFlip(1), v2.ToDtype(torch.float32, scale=True)))
    same("flips", photos(T.Resize(size), T.RandomHorizontalFlip(1), T.ToTensor(), T.RandomVerticalFlip(1.0), T.Normalize(0.5, 0.25)))
    same("no flips", photos(T.Resize(size), T.RandomHorizontalFlip(0), T.RandomVerticalFlip(0), T.RandomGrayscale(0), T.RandomApply([T.Pad(1)], 0), *tail))
    same("grey", photos(T.Resize(size), T.Grayscale(), T.ToTensor(), T.Normalize(0.5, 0.25)))
    same("grey 3", photos(T.Resize(size), T.RandomGrayscale(1), *tail))
    same("colours", photos(T.Resize(size), T.ColorJitter(), *tail))
    same("turned by nothing", photos(T.Resize(size), T.RandomRotation(0), T.RandomAffine(0), *tail))
    for mode in "constant", "edge", "reflect", "symmetric":
        same(f"pad {mode}", photos(T.Resize(size), T.Pad((1, 2, 3, 4), fill=(9, 8, 7) if mode == "constant" else 0, padding_mode=mode), *tail))
    same("pad numbers", photos(T.Resize(size), T.ToTensor(), T.Pad(2), T.Normalize(0.5, 0.25)))
    same("whole crop", photos(T.Resize(size), T.RandomCrop(size), T.RandomResizedCrop(size, scale=(1, 1), ratio=(20 / 24, 20 / 24)), *tail))
    same("erased", photos(T.Resize(size), T.ToTensor(), T.RandomErasing(0), T.Normalize(0.5, 0.25), T.RandomErasing(0.0)))
    same("sequential", datasets.ImageFolder(folder, nn.Sequential(T.Resize(size), nn.Identity(), v2.PILToTensor())))
    same("weights", datasets.ImageFolder(folder, torchvision.models.ResNet18_Weights.DEFAULT.transforms(crop_size=28, resize_size=32)))
    same("function", photos(T.Resize(size), T.functional.to_tensor))
    same("numpy mean", photos(T.Resize(size), T.ToTensor(), T.Normalize(np.array([0.1, 0.2, 0.3]), list(np.array([0.5, 0.6, 0.7])))))
    same("targets", datasets.ImageFolder(folder, T.Compose([T.Resize(size), T.ToTensor()]), target_transform=[7, 8, 9].__getitem__))
    same("targets by dict", datasets.ImageFolder(folder, T.Compose([T.Resize(size), T.ToTensor()]), target_transform={0: 4, 1: 5, 2: 6}.get))
    same("targets int", datasets.ImageFolder(folder, T.Compose([T.Resize(size), T.ToTensor()]), target_transform=int))

    digits = datasets.MNIST(mnist, transform=T.ToTensor())
    same("mnist", digits)
    same("mnist normalized", datasets.MNIST(mnist, train=False, transform=T.Compose([T.ToTensor(), T.Normalize((0.1307,), (0.3081,))])))
    same("mnist 2", datasets.MNIST(mnist, transform=v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.1307], [0.3081])])))
    same("mnist bytes", datasets.MNIST(mnist, transform=T.PILToTensor()))
    same("mnist resized", datasets.MNIST(mnist, transform=T.Compose([T.Resize(32), T.Grayscale(3), *tail])))
    few = datasets.MNIST(mnist, transform=T.ToTensor())
    few.data, few.targets = few.data[::2], few.targets[::2]
    same("mnist every second", few)
    colours = datasets.CIFAR10(cifar, transform=T.Compose([T.ToTensor(), T.Normalize((0.49, 0.48, 0.44), (0.2, 0.19, 0.21))]))
    same("cifar", colours)
    same("cifar reflected", datasets.CIFAR10(cifar, train=False, transform=T.Compose([T.RandomCrop(34, padding=1, padding_mode="reflect"), T.ToTensor()])))
    same("cifar padded", datasets.CIFAR10(cifar, train=False, transform=v2.Compose([v2.RandomCrop(34, padding=1, fill=3), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])))

    same("fashion", datasets.FashionMNIST(mnist, transform=T.ToTensor()))
    same("cifar 100", datasets.CIFAR100(cifar, transform=T.Compose([T.ToTensor(), T.Normalize((0.5, 0.48, 0.44), (0.2, 0.19, 0.21))])))

    same("subset", Subset(digits, [3, 1, 1, -1, 0]))
    same("subset range", Subset(digits, range(9, 1, -2)))
    same("subset tensor", Subset(digits, torch.randperm(20)[:7]))
    same("subset array", Subset(digits, np.array([5, 4, 2], dtype=np.int32)))
    same("subset numpy numbers", Subset(digits, list(np.array([5, 4, 2]))))
    same("subset tensors", Subset(digits, list(torch.tensor([5, 4, 2]))))
    parts = random_split(digits, [12, 8], generator=torch.Generator().manual_seed(3))
    same("split 0", parts[0]), same("split 1", parts[1])
    same("nested", ConcatDataset([Subset(ConcatDataset([digits, few]), range(0, 30, 3)), Subset(few, [0, 9]), digits]), batch_sampler=None)
    same("sum", digits + few)
    same("tensors", TensorDataset(torch.arange(12.0).reshape(6, 2), torch.arange(6)))
    same("tensors in all", Subset(ConcatDataset([TensorDataset(torch.arange(6.0)), TensorDataset(torch.arange(6.0, 9.0))]), [8, 0, 7, 5]))
    rows = TensorDataset(torch.arange(40.0).reshape(20, 2))
    same("stack", StackDataset(digits, rows))
    same("stack of names", Subset(StackDataset(picture=digits, rows=rows, both=StackDataset(rows, digits)), range(19, 3, -3)))
    same("photos", Photos(folder, T.Compose([T.Resize(size), *tail])))
    same("photos in all", Subset(ConcatDataset([Photos(folder, T.Compose([T.Resize(size), *tail])), photos(T.Resize(size), *tail)]), [17, 3, 9]))

    refused("unknown transform", photos(T.Resize(size), T.GaussianBlur(3), T.ToTensor()))
    refused("index", Subset(digits, [0, 20]))
    refused("range", Subset(digits, range(10**6)))
    refused("floats", Subset(digits, torch.tensor([0.5])))
    refused("sizes", photos(T.ToTensor()))
    missing = photos(T.Resize(size), T.ToTensor())
    missing.samples[1] = (missing.samples[1][0] + ".gone.png", 0)
    refused("missing file", missing)
    unknown = Photos(folder, None)
    unknown.shuffle_buffer = 3
    refused("unknown attribute", unknown)
    unknown.transform = T.Compose([T.Resize(size), *tail])
    unknown.shoal_args = {"root": folder, "transform": unknown.transform}
    same("shoal_args", unknown)
    out["versions"] = f"torch {torch.__version__}, torchvision {torchvision.__version__}"
    print(json.dumps(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
