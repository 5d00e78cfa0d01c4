"""The Python programs of the pages about shoal.multiprocessing run as they are printed."""

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("shoal.multiprocessing")

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, os.pardir)
PAGES = {
    "README.md": "tensor([[2., 2., 2.],",
    "python/README.md": "tensor([[2., 2., 2.],",
    "docs/multiprocessing.md": "torch.Size([256])",
}


@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path):
    with open(os.path.join(ROOT, page), encoding="utf-8") as f:
        programs = [p for p in re.findall(r"```python\n(.*?)```", f.read(), re.S) if "shoal.multiprocessing" in p]
    assert len(programs) == 1
    script = tmp_path / "program.py"
    script.write_text(programs[0])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    env.pop("SHOAL_DOMAIN", None)
    r = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=env)
    assert r.returncode == 0, r.stderr
    assert PAGES[page] in r.stdout, r.stdout + r.stderr
