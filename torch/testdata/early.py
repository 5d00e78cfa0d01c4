"""Starts processes with more to read than a pipe holds, which a Go program ends at once or cannot serve: python early.py PROGRAM."""
import multiprocessing
import sys


class Odd:
    """Arguments that Go has no form for, before all else."""

    def __reduce__(self):
        return complex, ("1+nothing",)  # fails where it is called


def fails(*args):
    raise RuntimeError("Go does this, and fails")


def nobodys(*args):
    sys.exit(3)


if __name__ == "__main__":
    multiprocessing.set_executable(sys.argv[1])
    ctx = multiprocessing.get_context("spawn")
    blob = bytes(4 << 20)
    for target, args in (fails, (blob,)), (fails, (Odd(), blob)), (nobodys, (blob,)), (nobodys, (Odd(), blob)):
        p = ctx.Process(target=target, args=args)
        p.start()  # hangs where nobody reads all of it: the parent has both ends of the pipe
        p.join()
        print(target.__name__, p.exitcode)
