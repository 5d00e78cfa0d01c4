"""Writes captures.txt: objects of torchvision as ForkingPickler writes them to a process, one a line: a name, and base64."""
import base64
import multiprocessing.reduction
import pathlib
import warnings

import numpy as np
import torch
import torchvision
from torch import nn
from torchvision import datasets, transforms as T
from torchvision.transforms import InterpolationMode as I, v2

warnings.simplefilter("ignore")
norm = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
float32, scale = torch.float32, dict(scale=True)


def made(cls, **attributes):
    """An object without the files that its class would look for."""
    o = cls.__new__(cls)
    o.__dict__.update(attributes)
    return o


tensor1 = T.Compose([T.ToTensor(), T.Normalize(*norm)])
captures = {
    "train": T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.RandomGrayscale(0.2), T.ToTensor(), T.Normalize(*norm), T.RandomErasing()]),
    "test": T.Compose([T.Resize(20, I.BICUBIC), T.CenterCrop(16), T.PILToTensor(), T.ConvertImageDtype(float32), T.Normalize(*norm, inplace=True)]),
    "cifar": T.Compose([T.ToTensor(), T.RandomCrop(16, padding=2), T.RandomVerticalFlip(), T.Normalize(0.5, 0.25)]),
    "odd": T.Compose([T.Pad((1, 2), fill=(1, 2, 3)), T.RandomRotation(10, fill=4), T.RandomAffine(5, (0.1, 0.2), (0.9, 1.1), (-3, 3, -4, 4)), T.RandomApply([T.RandomCrop(16, 1, padding_mode="reflect", fill=3), T.Resize((16, 16))], 0.5), T.Grayscale(), tensor1.transforms[0]]),
    "train2": v2.Compose([v2.ToImage(), v2.RandomResizedCrop(16), v2.RandomHorizontalFlip(), v2.ColorJitter(0.4, 0.4, 0.4, 0.1), v2.RandomGrayscale(), v2.ToDtype(float32, **scale), v2.Normalize(*map(list, norm)), v2.RandomErasing(), v2.ToPureTensor()]),
    "test2": v2.Compose([v2.Resize(20), v2.CenterCrop(16), v2.PILToTensor(), v2.ConvertImageDtype(float32)]),
    "odd2": v2.Compose([v2.Pad([1, 2, 3, 4], padding_mode="edge"), v2.RandomRotation(10), v2.RandomAffine(5, (0.1, 0.2)), v2.RandomApply(nn.ModuleList([v2.RandomCrop(16, 1)])), v2.Grayscale(3), v2.Identity(), v2.ToTensor(), v2.ToDtype({torchvision.tv_tensors.Image: float32, "others": None})]),
    "sequential": nn.Sequential(nn.Identity(), T.Resize(16), v2.ToImage()),
    "weights": torchvision.models.ResNet18_Weights.DEFAULT.transforms(),
    "function": T.functional.to_tensor,
    "folder": made(datasets.ImageFolder, root="r", loader=datasets.folder.default_loader, extensions=datasets.folder.IMG_EXTENSIONS, classes=["a", "b"], class_to_idx={"a": 0, "b": 1}, samples=[("r/a/1.jpg", 0), ("r/b/2.PNG", 1)], targets=[0, 1], imgs=[], transform=tensor1, target_transform=[4, 5].__getitem__, transforms=None),
    "CIFAR10": made(datasets.CIFAR10, root="r", train=True, data=np.arange(2 * 32 * 32 * 3, dtype=np.uint8).reshape(2, 32, 32, 3), targets=[7, 8], transform=tensor1, target_transform={7: 1, 8: 2}.get, classes=["x"] * 10),
    "USPS": made(datasets.USPS, root="r", data=np.arange(2 * 16 * 16, dtype=np.uint8).reshape(2, 16, 16), targets=np.array([7, 8]), transform=T.ToTensor(), target_transform=int),
}
with open(pathlib.Path(__file__).parent / "captures.txt", "w") as f:
    for name, o in captures.items():
        print(name, base64.b64encode(bytes(multiprocessing.reduction.ForkingPickler.dumps(o))).decode(), file=f)
