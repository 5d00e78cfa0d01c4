#!/usr/bin/env python3
"""Runs the training scripts beside it, each with Python workers and with Go workers, by turns, and compares.

Both runs of a script have to end well, to print the same, to leave no process, and to have had the same batches in the same order.
How many times as fast the Go workers are is printed and not judged. The last line is a summary in JSON; the status is 1 where
anything failed."""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.dirname(os.path.dirname(HERE))



class Script:
    """What a script needs beside PyTorch, and what its processes are where Go loads."""

    def __init__(self, *modules, package=False, ready_made=False, python=(), go="go worker", says=None):
        self.modules = modules
        self.package = package  # it imports the package of python/, whose program is shoal-loader
        self.ready_made = ready_made or package  # the loader here has data sets of its own, and does not read datasets.Dataset
        self.python = python  # the kinds of processes that are Python's in a run with Go
        self.go = go  # a kind of process that must be there, or None
        self.says = says  # what stderr must have, and only in the run with Go


SCRIPTS = {
    "plain_loop": Script(), "lightning_fit": Script("lightning"), "torchrun_ddp": Script(), "huggingface": Script("datasets", ready_made=True),
    "imagefolder": Script("torchvision"), "ragged_text": Script(python=["python worker"], go="go samples"),
    "dict_samples": Script(python=["python worker"], go="go samples"),
    "split_validate": Script(python=["python worker"]), "mp_spawn": Script(), "iterable": Script(),
    "start_methods": Script(package=True), "stateful": Script("torchdata", package=True),
    "accelerate_loop": Script("accelerate", "torchvision", package=True), "lightning_seeded": Script("lightning", package=True),
    "hf_trainer": Script("transformers", "accelerate", package=True), "hf_dataset": Script("datasets", package=True),
    "hf_stream": Script("datasets", package=True, python=["python worker"], go=None, says="Python instead of Go loads the samples"),
    "titan": Script("torchdata", "PIL", package=True), "torchrun_shared": Script(package=True),
}

# Those that run by torchrun.
TORCHRUN = {"torchrun_ddp", "torchrun_shared"}

# What CPython says where the thread of a multiprocessing.Queue frees the last reference to a lock
# while the interpreter ends: SemLock._cleanup unlinks the name, and the thread is stopped before it
# unregisters it. Any script with a Queue can meet that, whatever its workers are.
TRACKER_RACE = re.compile(r"resource_tracker: '/mp-\w+': \[Errno 2\] No such file or directory")


class Failure(Exception):
    """What a user would have complained about."""


class Doctor(threading.Thread):
    """Examines a process with shoal doctor, again and again, until it has ended. These scripts are
    healthy, so each finding is a failure. Without a program it does nothing."""

    def __init__(self, program, process):
        super().__init__(daemon=True)
        self.program, self.process = program, process
        self.examinations, self.findings = 0, []
        if program:
            self.start()

    def run(self):
        while self.process.poll() is None:
            command = [self.program, "doctor", "--pid", str(self.process.pid), "--json"]
            r = subprocess.run(command, capture_output=True, text=True)
            if r.returncode == 2:  # the process ends, or is no Python program yet
                time.sleep(0.1)
                continue
            self.examinations += 1
            if r.returncode != 0:
                self.findings.append(r.stdout + r.stderr)

    def finish(self):
        """Returns the number of examinations, and raises Failure if one had a finding."""
        if self.program:
            self.join()
        if self.findings:
            raise Failure(f"{len(self.findings)} of {self.examinations} examinations had a finding:\n{self.findings[0]}")
        return self.examinations


class Runner:
    """Runs scripts in a directory of its own."""

    examinations = 0  # by shoal doctor

    def __init__(self, args, directory):
        self.args, self.directory = args, directory
        self.loader = args.loader or os.path.join(directory, "loader")
        self.ready_made = os.path.join(directory, "shoal-loader")
        self.data = os.path.join(directory, "data")
        self.env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1",
                        HF_HOME=os.path.join(directory, "hf"), SHOAL_PROGRAMS=directory,
                        PYTHONPATH=os.path.join(TREE, "python", "src"))

    def prepare(self):
        """Builds the loader of these scripts and shoal-loader, and makes the data."""
        if not self.args.loader and not all(SCRIPTS[name].ready_made for name in self.args.scripts):
            subprocess.run(["go", "build", "-o", self.loader, "./scripts/userscripts/loader"], cwd=TREE, check=True)
        if any(SCRIPTS[name].ready_made for name in self.args.scripts):
            subprocess.run(["go", "build", "-o", self.ready_made, "./cmd/shoal-loader"], cwd=TREE, check=True)
        make = [self.args.python, os.path.join(HERE, "make_data.py"), self.data, "--samples", str(self.args.samples)]
        subprocess.run(make, env=self.env, check=True)

    def missing(self, modules):
        """The modules that the interpreter has not."""
        code = "import importlib.util, sys; print(*[m for m in sys.argv[1:] if importlib.util.find_spec(m) is None])"
        out = subprocess.run([self.args.python, "-c", code, *modules], capture_output=True, text=True, check=True)
        return out.stdout.split()

    def run(self, name, go):
        """Runs a script; again where CPython's race at the end says something, but not three times."""
        for _ in range(3):
            result = self.once(name, go)
            if not TRACKER_RACE.search(result.err):
                break
            print(f"{name}: resource_tracker lost a race, see TRACKER_RACE", flush=True)
        return result

    def once(self, name, go):
        """Runs a script once; returns what it printed and what it noted."""
        journal = tempfile.mkdtemp(dir=self.directory)
        command = [self.args.python]
        if name in TORCHRUN:
            command += ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
        command += [os.path.join(HERE, name + ".py"), "--data", self.data, "--journal", journal, "--epochs", str(self.args.epochs)]
        if go:
            command += ["--loader", self.ready_made if SCRIPTS[name].ready_made else self.loader]
        out, err = self.watched(command)
        notes = {}
        for file in sorted(os.listdir(journal)):
            with open(os.path.join(journal, file)) as f:
                notes[file] = json.load(f)
        return Result(out, err, notes)

    def watched(self, command):
        """Runs a command, and wants a good end of all its processes."""
        p = subprocess.Popen(command, cwd=self.directory, env=self.env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, start_new_session=True)
        doctor = Doctor(self.args.doctor, p)
        try:
            out, err = p.communicate(timeout=self.args.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            raise Failure(f"not done after {self.args.timeout} s; it printed\n{out}{err}") from None
        except BaseException:
            os.killpg(p.pid, signal.SIGKILL)
            raise
        if p.returncode != 0:
            raise Failure(f"status {p.returncode}; it printed\n{out}{err}")
        if not gone(p.pid):
            os.killpg(p.pid, signal.SIGKILL)
            raise Failure("processes stayed behind")
        self.examinations += doctor.finish()
        return out, err

    def compare(self, name):
        """Runs a script both ways, by turns; returns its line."""
        python, go = [], []
        for turn in range(self.args.turns):
            for runs, by_go in ((python, False), (go, True)) if turn % 2 == 0 else ((go, True), (python, False)):
                runs.append(self.run(name, by_go))
        for result in go + python[1:]:
            result.agrees(python[0], SCRIPTS[name].says if result in go else None)
        for result in go:
            result.check_processes(SCRIPTS[name])
        if any(kind.startswith("go") for result in python for kind in result.kinds()):
            raise Failure("a run with Python workers had a process of Go")
        return {
            "batches": sum(len(notes["digests"]) for notes in go[0].notes.values()),
            "ratio": ratio(go, python, Result.rate), "steady": ratio(go, python, Result.steady_rate),
            "spread": [spread(go), spread(python)],
        }


class Result:
    """One run of a script."""

    def __init__(self, out, err, notes):
        self.out, self.err, self.notes = out, err, notes

    def kinds(self):
        """The kinds of processes that ran while the batches came, and the largest number of each."""
        all = {}
        for notes in self.notes.values():
            for kind, n in notes["processes"].items():
                all[kind] = max(n, all.get(kind, 0))
        return all

    def check_processes(self, script):
        """Fails where other processes than Go's made the samples."""
        kinds = self.kinds()
        if script.go is not None and not kinds.get(script.go):
            raise Failure(f"no {script.go} was seen, only {kinds}")
        wrong = {kind for kind in kinds if kind == "python worker" and kind not in script.python}
        if wrong or script.go is None and kinds.get("go worker"):
            raise Failure(f"the processes were {kinds}")

    def agrees(self, other, says):
        """Fails where another run printed or was given something else, but for a text on stderr that this run must have."""
        if self.notes.keys() != other.notes.keys() or not other.notes:
            raise Failure(f"notes of {sorted(self.notes)} and {sorted(other.notes)}")
        for file in other.notes:
            mine, theirs = self.notes[file]["digests"], other.notes[file]["digests"]
            if mine != theirs or not mine:
                at = next((k for k, (a, b) in enumerate(zip(mine, theirs)) if a != b), min(len(mine), len(theirs)))
                raise Failure(f"{file}: {len(mine)} batches and {len(theirs)}, which differ from number {at} on; in order or not, "
                              f"{len(set(mine) & set(theirs))} are the same")
        if self.out != other.out:
            raise Failure(f"it printed\n{self.out}and not\n{other.out}")
        known = {re.sub(r"\d+", "0", line) for line in other.err.splitlines()}
        new = [line for line in self.err.splitlines() if re.sub(r"\d+", "0", line) not in known]
        if says is not None:
            if not any(says in line for line in new):
                raise Failure(f"stderr has not {says!r}:\n{self.err}")
            new = [line for line in new if says not in line]
        if new:
            raise Failure("on stderr, and not in the other run:\n" + "\n".join(new))

    def total(self, what):
        return sum(notes[what] for notes in self.notes.values())

    def rate(self):
        """Samples a second, with the start of the workers."""
        return self.total("samples") / self.total("seconds")

    def steady_rate(self):
        """Samples a second from the first batch on."""
        return self.total("steady_samples") / max(self.total("steady_seconds"), 1e-9)


def gone(group, limit=20):
    """Whether a group of processes ends."""
    for _ in range(limit * 20):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def ratio(a, b, what):
    return round(statistics.median(map(what, a)) / statistics.median(map(what, b)), 2)


def spread(runs):
    """The slowest and the fastest by the median, less one."""
    rates = [r.rate() for r in runs]
    return round((max(rates) - min(rates)) / statistics.median(rates), 2)


# The scripts that need nothing but PyTorch and torchdata, which run with each version of Python.
MATRIX = ["start_methods", "plain_loop", "stateful"]


def matrix(args):
    """Runs the short scripts with other versions of Python, each with the newest PyTorch that pip has for it; returns the failures."""
    failed = 0
    for python in args.matrix.split(os.pathsep):
        venv = tempfile.mkdtemp(prefix="userscripts-venv-")
        try:
            subprocess.run([python, "-m", "venv", venv], check=True)
            new = os.path.join(venv, "bin", "python")
            install = [new, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-cache-dir", "torch", "numpy", "torchdata"]
            subprocess.run(install, check=True)
            code = "import sys, torch; print('Python', sys.version.split()[0], 'with PyTorch', torch.__version__)"
            print(subprocess.run([new, "-c", code], check=True, capture_output=True, text=True).stdout.strip())
            command = [sys.executable, os.path.abspath(__file__), "--python", new, "--samples", str(args.samples), "--epochs", str(args.epochs),
                       "--turns", "1", "--timeout", str(args.timeout), *(name for name in MATRIX if name in args.scripts)]
            failed += subprocess.run(command).returncode != 0
        except subprocess.CalledProcessError as e:
            failed += 1
            print(f"{python}: FAILED: {e}")
        finally:
            shutil.rmtree(venv, ignore_errors=True)
    return failed


def readme(args):
    """Runs the README's program so many times; returns the runs and the failures."""
    env = dict(os.environ, SHOAL_TORCH_PYTHONS=args.python)
    env.pop("SHOAL_INTEROP", None)  # with it the tests want cells of the matrix
    command = ["go", "test", "-count=1", "-timeout=60m", "-v", "./torch", "-run", "^TestSpawn_TheProgramOfTheReadmeRuns$", "-torch.readme", str(args.readme)]
    p = subprocess.run(command, cwd=TREE, env=env, capture_output=True, text=True)
    found = re.findall(r'"readme_runs":(\d+),"readme_failures":(\d+)', p.stdout)
    if not found:
        print(p.stdout + p.stderr, file=sys.stderr)
        return 0, args.readme
    runs, failures = (sum(map(int, column)) for column in zip(*found))
    if p.returncode != 0:
        print(p.stdout + p.stderr, file=sys.stderr)
        failures = max(failures, 1)
    return runs, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable, help="the interpreter, with a PyTorch")
    parser.add_argument("--loader", help="the Go program; it is built where it is not given")
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one run of a script")
    parser.add_argument("--doctor", metavar="PROGRAM", help="shoal, which examines each script while it runs: a finding is a failure")
    parser.add_argument("--readme", type=int, default=0, help="how many times the program of the README runs")
    parser.add_argument("--matrix", help="interpreters with colons between them: the short scripts run with each of them, in a virtual "
                        "environment that is made with the newest PyTorch and removed; nothing else runs")
    parser.add_argument("scripts", nargs="*", default=list(SCRIPTS), metavar="script", help="by name; all if there is none")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    sys.stdout.reconfigure(line_buffering=True)
    if args.matrix:
        return matrix(args) > 0
    summary = {"scripts": len(args.scripts), "pass": 0, "skip": 0}
    directory = tempfile.mkdtemp(prefix="userscripts-")
    began = time.monotonic()
    try:
        runner = Runner(args, directory)
        runner.prepare()
        for name in args.scripts:
            missing = runner.missing(SCRIPTS[name].modules)
            if missing:
                summary["skip"] += 1
                print(f"{name}: skipped, since there is no module {' and no '.join(missing)}")
                continue
            try:
                line = runner.compare(name)
            except Failure as e:
                print(f"{name}: FAILED: {e}")
                continue
            summary["pass"] += 1
            print(f"{name}: {line['batches']} batches are the same; Go workers are {line['ratio']} × as fast, {line['steady']} × from the "
                  f"first batch on (spreads {line['spread'][0]} and {line['spread'][1]} of {args.turns} runs)")
            summary.setdefault("ratio", {})[name] = line["ratio"]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if args.readme:
        summary["readme_runs"], summary["readme_failures"] = readme(args)
    if args.doctor:
        summary["examinations"] = runner.examinations
    summary["seconds"] = round(time.monotonic() - began)
    print(json.dumps(summary))
    return summary["pass"] + summary["skip"] != summary["scripts"] or summary.get("readme_failures", 0) > 0


if __name__ == "__main__":
    sys.exit(main())
