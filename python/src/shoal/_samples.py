"""Samples of a data set from a helper program, for a process that needs them in Python."""

from __future__ import annotations

import multiprocessing.process
import os
import socket
import subprocess
import threading
import weakref
from multiprocessing.connection import Connection
from typing import Any, Optional

import torch

from . import _programs

MAP, STREAM = 0, 1  # the values of torch.utils.data._DatasetKind


def error_for(text: str, otherwise: type) -> Exception:
    """Returns the exception for the error text of a program, with the class that Python would use."""
    for words, cls in (("no such file or directory", FileNotFoundError), ("permission denied", PermissionError),
                       ("is unknown for this data set", TypeError)):
        if words in text:
            otherwise = cls
    return otherwise(text.replace("error in Go: ", ""))


class Helper:
    """A process of the Go program that reads the samples of one data set for this process.

    It ends with this process, because it serves until its socket is closed. It has a session of
    its own, so that Ctrl-C does not end it.
    """

    def __init__(self, program: str, dataset: Any, kind: int, seed: Optional[int] = None) -> None:
        self.pid, self.program = os.getpid(), program
        self._lock = threading.Lock()
        ours, theirs = socket.socketpair()
        with ours, theirs:
            try:
                self.process = subprocess.Popen(
                    [program, "--shoal-samples", str(theirs.fileno())], stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()], start_new_session=True)
            except OSError as e:
                raise _programs.cannot_run(program, e) from e
            self._conn = Connection(ours.detach())
        self.close = weakref.finalize(self, _end, self._conn, self.process, self.pid)
        info = torch.utils.data.get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        if seed is None or info is not None:
            seed = (torch.initial_seed() - worker) & (1 << 62) - 1
        try:
            self._conn.send_bytes(multiprocessing.process.current_process().authkey)
            self._conn.send((kind, dataset, seed, worker, workers))
        except (BrokenPipeError, ConnectionResetError):
            pass  # the first request is an error
        except BaseException:
            self.close()
            raise

    @property
    def usable(self) -> bool:
        """Whether this process may send requests."""
        return self.close.alive and self.pid == os.getpid() and self.process.poll() is None

    def ask(self, what: str, *args: Any) -> Any:
        """Sends a request and returns the answer; see torch/samples.go for the protocol."""
        try:
            with self._lock:
                self._conn.send((what, *args))
                ok, answer = self._conn.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError) as e:
            self.close()
            raise RuntimeError(f"{self.program}, which reads the samples, exited with status {self.process.returncode}: "
                               "see stderr. A program of one's own must call torch.Child.Main first in main") from e
        except BaseException:  # an answer may be left in the socket
            self.close()
            raise
        if not ok:
            raise error_for(answer, RuntimeError)
        return answer


def _end(conn: Connection, process: subprocess.Popen, pid: int) -> None:
    """Ends a helper program. In a forked child it only closes the descriptor."""
    if pid == os.getpid():
        with socket.socket(fileno=os.dup(conn.fileno())) as s:
            try:  # forked processes may have copies of the descriptor
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
    conn.close()
    if pid == os.getpid():
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    else:
        process.returncode = 0  # it is no child of this process, which must not warn about it
