"""Runs jobs by each backend of joblib: python jobs.py PROGRAM, which is what set_executable names."""
import multiprocessing
import os
import sys

import joblib


def square(x):
    return x * x, os.path.realpath("/proc/self/exe") == os.path.realpath(sys.executable)


if __name__ == "__main__":
    multiprocessing.set_executable(sys.argv[1])
    for backend in "loky", "multiprocessing", "threading":
        with joblib.parallel_config(backend=backend, n_jobs=2):
            print(backend, joblib.Parallel()(joblib.delayed(square)(i) for i in range(4)))
