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
LESSON = "docs/learn/10-python.md"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def run(text, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(text, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    env.pop("SHOAL_DOMAIN", None)
    return subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=env)


@pytest.mark.parametrize("page", PAGES)
def test_page(page, tmp_path):
    programs = [p for p in re.findall(r"```python\n(.*?)```", read(page), re.S) if "shoal.multiprocessing" in p]
    assert len(programs) == 1
    r = run(programs[0], tmp_path)
    assert r.returncode == 0, r.stderr
    assert PAGES[page] in r.stdout, r.stdout + r.stderr


def lesson_steps():
    """Returns the programs of the lesson with the output that it shows after each.

    A block of differences changes the first program, as in docs/learn/learn_test.go.
    """
    original, program, steps = None, None, []
    for kind, text in re.findall(r"(?ms)^```(python|diff|console)\n(.*?)^```$", read(LESSON)):
        if kind == "python":
            original = program = text
        elif kind == "diff":
            program = apply(original, text)
        else:
            command, shown = text.split("\n", 1)
            path = re.fullmatch(r"\$ python3 (\S+)", command).group(1)
            assert read(path) == original, f"{LESSON} shows another program than {path} has"
            steps.append((program, shown))
    return steps


def apply(program, diff):
    """Applies a block of differences. An empty line separates its parts."""
    for part in diff.rstrip("\n").split("\n\n"):
        lines = part.split("\n")
        before = "".join(line[1:] + "\n" for line in lines if line[0] != "+")
        after = "".join(line[1:] + "\n" for line in lines if line[0] != "-")
        assert program.count(before) == 1, f"{LESSON}: the program does not have these lines once:\n{before}"
        program = program.replace(before, after)
    return program


def normal(text):
    """Returns the output without the numbers that differ from run to run."""
    return re.sub(r"\b(pid|participant) \d+", r"\1 N", text)


@pytest.mark.parametrize("step", range(3), ids=["program", "mistake", "exercise"])
def test_lesson(step, tmp_path):
    steps = lesson_steps()
    assert len(steps) == 3
    program, shown = steps[step]
    r = run(program, tmp_path)
    if step == 1:  # the lesson omits the traceback, and the lines of the program before it
        assert r.returncode == 1, r.stdout + r.stderr
        assert r.stderr.rstrip().split("\n")[-1] + "\n" == shown
    else:
        assert r.returncode == 0, r.stdout + r.stderr
        assert normal(r.stdout) == normal(shown)
        assert r.stderr == ""
