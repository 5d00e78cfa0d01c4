"""The types that a type checker finds in the package."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

SCRIPT = """
from pathlib import Path
from typing import Optional, List
import numpy as np
import shoal
import torch
from torch.utils.data import DataLoader, Subset, random_split

train = shoal.ImageFolder(Path("train"), resize=256, crop=(224, 224), mean=[0.5], std=(0.5,))
names: Optional[List[str]] = train.classes
n: int = len(train)
targets: List[int] = train.targets
version: str = shoal.__version__
rows = shoal.Parquet(Path(".").glob("*.parquet"), {"a": "int32"}, pad=0)
shards = shoal.WebDataset("train-{000..003}.tar", shuffle=100, rank=0, world=2)
loader = shoal.DataLoader(train, 64, shuffle=True, num_workers=2, rank=0, world_size=2)
loader.load_state_dict(loader.state_dict())
for images, labels in loader:
    print(images.shape)
theirs = DataLoader(Subset(train, [1]), multiprocessing_context=shoal.get_context("spawn"), num_workers=2)
"""
WRONG = {
    'shoal.ImageFolder("train", resize="x")': 'Argument "resize" to "ImageFolder" has incompatible type "str"',
    'shoal.ImageFolder("train", size=3)': 'Unexpected keyword argument "size" for "ImageFolder"',
    'shoal.Tokens("tokens.bin")': 'Missing positional argument "length" in call to "Tokens"',
    'shoal.DataLoader(shards, num_worker=2)': 'Unexpected keyword argument "num_worker" for "DataLoader"',
    'shoal.Photos': 'Module has no attribute "Photos"',
}


def test_mypy(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT + "\n".join(WRONG) + "\n")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-torch.*,numpy.*]\nfollow_imports = skip\n")  # which take 30 s
    told = subprocess.run([sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "script.py"], cwd=tmp_path, capture_output=True,
                          text=True)
    lines = [line for line in told.stdout.splitlines() if ": error: " in line]
    assert len(lines) == len(WRONG), told.stdout + told.stderr
    for line, wanted in zip(lines, WRONG.values()):
        assert wanted in line
