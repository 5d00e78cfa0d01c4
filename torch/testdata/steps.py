"""Functions at a step of which, a line of leave.py or of ahead.py, their process is killed, or Go is killed or stopped."""
import multiprocessing
import os
import signal
import sys
import time

HAND_OVER = "leave", "hand_over"  # what Go takes part in


class Steps:
    """Counts the lines of a file that the process comes to, each once, writes that down, and does something at one of them."""

    def __init__(self, at, act, whom, note, file):
        self.at, self.act, self.file = at, act, file
        self.note = os.open(note, os.O_WRONLY | os.O_CREAT, 0o600)
        self.functions = HAND_OVER if whom != "python" and file == "torch/leave.py" else None
        self.seen = set()
        self.write()

    def write(self):
        os.pwrite(self.note, b"%10d %6d" % (os.getpid(), len(self.seen)), 0)  # whoever reads it sees one or the other

    def trace(self, frame, event, arg):
        code = frame.f_code
        if code.co_filename != self.file or self.functions and code.co_name not in self.functions:
            return None
        if event == "line" and frame.f_lineno not in self.seen:
            self.seen.add(frame.f_lineno)
            self.write()
            if len(self.seen) == self.at:
                self.act()
        return self.trace


def kill_python():
    os.kill(os.getpid(), signal.SIGKILL)


def kill_go():
    parent = os.getppid()
    os.kill(parent, signal.SIGKILL)
    while os.getppid() == parent:
        time.sleep(0.001)


def stop_go():
    """Stops it; the test has it go on, perhaps before that is seen here."""
    parent = os.getppid()
    os.kill(parent, signal.SIGSTOP)
    for _ in range(100):
        with open("/proc/%d/stat" % parent) as f:
            if f.read().rpartition(")")[2].split()[0] == "T":
                return
        time.sleep(0.001)


def watch(whom, at, note, file="torch/leave.py"):
    act = {"python": kill_python, "go": kill_go, "stop": stop_go}[whom]
    sys.settrace(Steps(at, act, whom, note, file).trace)


def connections(conn, whom, at, note):
    """Sends three connections with a message in each, which go through another one, and ends."""
    send_connections(another(conn))
    watch(whom, at, note)


def tensors(conn, whom, at, note):
    """Sends three tensors by each strategy through another connection, and ends."""
    send_tensors(another(conn))
    watch(whom, at, note)


def connections_ahead(conn, whom, at, note):
    """Sends three connections."""
    watch(whom, at, note, "torch/ahead.py")
    send_connections(conn)


def tensors_ahead(conn, whom, at, note):
    """Sends three tensors by each strategy."""
    import torch
    watch(whom, at, note, "torch/ahead.py")
    send_tensors(conn)


def another(conn):
    near, far = multiprocessing.Pipe()
    conn.send(far)
    return near


def send_connections(conn):
    for i in range(3):
        near, far = multiprocessing.Pipe()
        near.send(i)
        conn.send(far)


def send_tensors(conn):
    import torch
    import torch.multiprocessing
    for strategy in "file_descriptor", "file_system":
        torch.multiprocessing.set_sharing_strategy(strategy)
        for i in range(3):
            conn.send(torch.full((2,), float(i)))
