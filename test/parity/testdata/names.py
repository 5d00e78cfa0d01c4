"""Records the public names of multiprocessing, torch.multiprocessing and torch.utils.data in names.txt.

    python3 names.py PYTHON...

runs itself by each interpreter and writes all the names that they have, one in a line, as a user
writes it: Class.method, function or CONSTANT. Left out is what begins with an underscore, what every
object has, what comes from another module, and torch.utils.data's pipes, which are given up there.
"""
import importlib
import inspect
import subprocess
import sys
import warnings

MODULES = """multiprocessing multiprocessing.connection multiprocessing.context multiprocessing.managers
multiprocessing.pool multiprocessing.process multiprocessing.queues multiprocessing.reduction
multiprocessing.shared_memory multiprocessing.sharedctypes multiprocessing.synchronize multiprocessing.util
torch.multiprocessing torch.multiprocessing.spawn torch.multiprocessing.reductions torch.utils.data""".split()

# Classes that no __all__ has, because users meet them as the results of functions.
RESULTS = {
    "multiprocessing.connection": "Connection",
    "multiprocessing.managers": """DictProxy ListProxy SetProxy NamespaceProxy ValueProxy ArrayProxy AcquirerProxy
        ConditionProxy EventProxy BarrierProxy IteratorProxy PoolProxy Server""",
    "multiprocessing.pool": "AsyncResult MapResult IMapIterator IMapUnorderedIterator",
    "multiprocessing.sharedctypes": "Synchronized SynchronizedArray SynchronizedString",
    "multiprocessing.shared_memory": "SharedMemory ShareableList",
}

# What Python calls one class in two places is one name in the table.
ALIASES = {
    "ApplyResult": "AsyncResult", "BaseDictProxy": "DictProxy", "BaseListProxy": "ListProxy", "BaseProcess": "Process",
    "BasePoolProxy": "PoolProxy", "BaseSetProxy": "SetProxy", "ConnectionBase": "Connection", "SpawnContext": "ProcessContext",
    "SynchronizedBase": "Synchronized", "SemLock": "Lock",
}


def samples():
    """Objects whose methods are made with them."""
    import multiprocessing as mp
    yield from (mp.Lock(), mp.RLock(), mp.Semaphore(), mp.BoundedSemaphore(), mp.Condition(), mp.Event(), mp.Barrier(1))
    yield from (mp.Queue(), mp.JoinableQueue(), mp.SimpleQueue(), mp.Pipe()[0])
    yield from (mp.Value("i"), mp.Array("i", 1), mp.Array("c", 1))


def ours(v):
    return (getattr(v, "__module__", None) or "").split(".")[0] in ("multiprocessing", "_multiprocessing", "torch")


def called(cls):
    name = cls.__name__.lstrip("_")
    return ALIASES.get(name, name)


def members(cls, names):
    """Class.method for each, by the class whose method it is: JoinableQueue.get is Queue.get."""
    for n in names:
        owner = next((base for base in cls.__mro__ if n in vars(base)), cls)
        if not n.startswith("_") and ours(owner):
            yield called(owner) + "." + n


def public(module):
    names = getattr(module, "__all__", None)
    if names is None:
        names = [n for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
    return [n for n in names if not n.startswith("_")]


def record():
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        for n in public(module) + RESULTS.get(name, "").split():
            v = getattr(module, n, None)
            if v is None or inspect.ismodule(v) or "datapipes" in (getattr(v, "__module__", None) or ""):
                continue
            yield ALIASES.get(n, n)
            if inspect.isclass(v):
                yield from members(v, dir(v))
    for v in samples():
        yield from members(type(v), dir(v))


def version():
    python = "CPython %d.%d.%d" % sys.version_info[:3]
    try:
        import torch
    except ImportError:
        return python
    return python + " with torch " + torch.__version__.split("+")[0]


def main(pythons):
    versions, names = [], set()
    for python in pythons:
        out = subprocess.run([python, __file__], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
        versions.append(out[0])
        names.update(out[1:])
    with open(__file__.replace(".py", ".txt"), "w") as f:
        f.write("# Recorded by names.py: " + ", ".join(versions) + "\n")
        f.write("\n".join(sorted(names - {""})) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:]:
        main(sys.argv[1:])
    else:
        print(version())
        print("\n".join(record()))
