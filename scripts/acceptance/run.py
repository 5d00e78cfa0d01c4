#!/usr/bin/env python3
"""The acceptance tests of docs/acceptance.md, here and with torch.multiprocessing, in one run.

The column of Shoal is what `go test` says of each row's tests. The column of torch.multiprocessing
is what cases.py sees: each case runs in namespaces of its own, with a deadline. What it has left in
/dev/shm and in the process table is counted after its end. The table is Markdown.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODULE = "github.com/shoal-mp/shoal"
STRATEGIES = ["file_descriptor", "file_system"]
BOTH = {"T1", "T3", "T5", "T7", "T8", "T9", "T11"}
NO_COUNTERPART = {"T18": "no counterpart: a message is a pickle, and only Python reads it"}


def rows():
    """The rows T1 to T19: name, what it is, tests as (package, name)."""
    for line in (ROOT / "docs/acceptance.txt").read_text().splitlines():
        m = re.match(r"(T\d+) \| (.*?) \|.*\| (.*)$", line)
        if m and int(m[1][1:]) <= 19:
            yield m[1], m[2], [tuple(t.rsplit(".", 1)) for t in m[3].split()]


def shoal(wanted):
    """What go test says of each (package, test)."""
    packages = collections.defaultdict(set)
    for package, test in wanted:
        packages[package].add(test)
    found = {}
    for package, tests in sorted(packages.items()):
        path = "./" if package == "shoal" else "./" + package
        run = "^(" + "|".join(sorted(tests)) + ")$"
        r = subprocess.run(["go", "test", "-json", "-count=1", "-run", run, path], cwd=ROOT, capture_output=True,
                           text=True)
        for line in r.stdout.splitlines():
            e = json.loads(line) if line.startswith("{") else {}
            if e.get("Test") in tests and e["Action"] in ("pass", "fail", "skip"):
                found[package, e["Test"]] = e["Action"]
        print(f"{package}: {len(tests)} tests", file=sys.stderr)
    return found


def says(found, tests):
    counts = collections.Counter(found.get(t, "missing") for t in tests)
    if counts["fail"] or counts["missing"]:
        bad = [".".join(t) for t in tests if found.get(t) not in ("pass", "skip")]
        return "**fails**: " + ", ".join(bad)
    text = f"passes: {counts['pass']} tests" if counts["pass"] != 1 else "passes: 1 test"
    return text + (f", {counts['skip']} skipped" if counts["skip"] else "")


def left():
    """Bytes and files in /dev/shm."""
    files = [p.stat() for p in pathlib.Path("/dev/shm").iterdir()] if os.path.isdir("/dev/shm") else []
    return sum(f.st_blocks * 512 for f in files), len(files)


def inside(args):
    """One case, as process 1 of its namespaces: prints [outcome, what, bytes, files]."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4g", "tmpfs", "/dev/shm"], check=True)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:  # pipes would wait for its children
        p = subprocess.Popen([args.python, HERE / "cases.py", args.inside, args.strategy], stdout=out, stderr=err,
                             start_new_session=True)
        try:
            p.wait(args.deadline)
            out.seek(0), err.seek(0)
            lines = [l for l in out.read().splitlines() if l.startswith("[")]
            seen = json.loads(lines[-1]) if lines else ["fails", f"it ends with {p.returncode}: " + err.read()[-200:]]
        except subprocess.TimeoutExpired:
            seen = ["hangs", f"it does not end within {args.deadline} s"]
    for d in filter(str.isdigit, os.listdir("/proc")):
        try:  # the case is over: its children end, and only those that clean up after them may go on
            line = open(f"/proc/{d}/cmdline", "rb").read()
            if int(d) != os.getpid() and not any(c in line for c in (b"torch_shm_manager", b"resource_tracker")):
                os.kill(int(d), signal.SIGKILL)
        except OSError:
            pass
    for _ in range(20):  # the manager of names cleans up when it has seen that all are gone
        if not left()[1]:
            break
        time.sleep(0.5)
    print(json.dumps(seen + list(left())))


def case(args, name, strategy):
    own = [] if os.getuid() == 0 else ["--map-root-user"]
    cmd = ["unshare", *own, "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__,
           "--python", args.python, "--inside", name, "--strategy", strategy, "--deadline", str(args.deadline)]
    r = subprocess.run(cmd, capture_output=True, text=True)
    if r.returncode:
        return f"not tried: {r.stderr.strip().splitlines()[-1]}"
    outcome, what, size, files = json.loads(r.stdout.splitlines()[-1])
    text = what if outcome == "none" else {"passes": "passes", "fails": "**fails**", "hangs": "**hangs**"}[outcome] \
        + ": " + what
    text = " ".join(text.split())
    return text + (f"; {files} files with {size:,} bytes are left in /dev/shm" if files else "")


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--python", default=sys.executable, help="has PyTorch")
    a.add_argument("--only", default="", help="rows, such as T1,T4")
    a.add_argument("--deadline", type=int, default=240, help="of a case, in seconds")
    a.add_argument("--inside", help=argparse.SUPPRESS)
    a.add_argument("--strategy", help=argparse.SUPPRESS)
    args = a.parse_args()
    if args.inside:
        return inside(args)
    chosen = [r for r in rows() if not args.only or r[0] in args.only.split(",")]
    if not chosen:
        sys.exit("no row has such a name")
    found = shoal({t for _, _, tests in chosen for t in tests})
    versions = subprocess.run([args.python, "-c", "import torch, platform; print(f'PyTorch {torch.__version__}, Python "
                               "{platform.python_version()}')"], capture_output=True, text=True).stdout.strip()
    go = subprocess.run(["go", "version"], capture_output=True, text=True).stdout.split()[2].replace("go", "Go ")
    print(f"{datetime.date.today():%-d %B %Y}, {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}, "
          f"{go}, {versions or 'no PyTorch'}.\n")
    print("| test | what it is | Shoal | torch.multiprocessing |\n|---|---|---|---|")
    failed = False
    for name, what, tests in chosen:
        ours = says(found, tests)
        failed |= "fails" in ours
        if name in NO_COUNTERPART or not versions:
            theirs = NO_COUNTERPART.get(name, "not tried: no PyTorch")
        elif name in BOTH:
            theirs = "; ".join(f"`{s}` {case(args, name, s)}" for s in STRATEGIES)
        else:
            theirs = case(args, name, STRATEGIES[0])
        print(f"| `{name}` | {what} | {ours} | {theirs} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
