"""The examples run with shoal.multiprocessing, and end with a report with PyTorch's."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("shoal.multiprocessing")

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "examples")


def run(name, module, *args):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    env.pop("SHOAL_DOMAIN", None)
    r = subprocess.run([sys.executable, os.path.join(FOLDER, name), "--module", module, *args], capture_output=True,
                       text=True, timeout=240, env=env)
    assert r.returncode == 0, r.stderr
    return json.loads(r.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["weights.py", "rollouts.py", "pages.py"])
def test_example(name):
    report = run(name, "shoal.multiprocessing")
    assert report["ok"], report


@pytest.mark.parametrize("name", ["weights.py", "rollouts.py", "pages.py"])
def test_example_with_torch(name):
    """What PyTorch does depends on the moment of a kill; the example must end and say it."""
    report = run(name, "torch.multiprocessing")
    assert report["module"] == "torch.multiprocessing"
