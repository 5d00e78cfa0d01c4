"""Runs at the end of a process that Go has started: see Note [What a process leaves] in estate.go."""


def arrange(fd, conn, limit):
    """Makes the process hand over at its end the descriptors and names that its messages promise. PyTorch's manager gets neither fd nor conn."""
    import os
    import sys
    import threading
    from multiprocessing import process, util

    # The resource tracker removes the names of a process that Go ends, and must print no warning. It is started with these options.
    sys.warnoptions.append("ignore:resource_tracker:UserWarning")
    me, run, wait_for_threads = os.getpid(), process.BaseProcess.run, threading._shutdown
    failed, left = [], []
    os.set_inheritable(fd, False)
    os.set_inheritable(conn, False)

    def run_and_note(self):
        try:
            run(self)
        except BaseException as e:
            if not isinstance(e, SystemExit) or e.code:
                failed.append(True)
            raise
        finally:
            if os.getpid() == me:  # not in a process that this one has forked
                util.Finalize(None, keep_address, args=(2,), exitpriority=FIRST)

    def wait_and_leave():
        try:
            wait_for_threads()
            wait_for_pools()
        finally:
            if os.getpid() == me and not left:  # the interpreter calls this function again
                left.append(True)
                leave(fd, limit, failed)

    # Python ends a process in this order: the function, the finalizers of multiprocessing, threading._shutdown, the interpreter.
    process.BaseProcess.run = run_and_note
    threading._shutdown = wait_and_leave


FIRST = 1  # before the finalizers of priority 0, one of which removes the sharer's address


def keep_address(times):
    """Keeps the sharer's address for Go. Finalizers are run twice, and a thread may begin to send in between."""
    import sys
    from multiprocessing import util

    if times > 1:
        util.Finalize(None, keep_address, args=(times - 1,), exitpriority=FIRST)
    module = sys.modules.get("multiprocessing.resource_sharer")
    sharer = module and module._resource_sharer
    if sharer is not None:
        with sharer._lock:
            if sharer._listener is not None:
                sharer._listener._listener._unlink.cancel()


def wait_for_pools():
    """Waits for the threads of a ThreadPoolExecutor, as Python 3.9 and later do in threading._shutdown. In 3.8 they are daemons until atexit."""
    import sys

    pools = sys.modules.get("concurrent.futures.thread")
    if pools is not None and sys.version_info < (3, 9):
        pools._python_exit()


def leave(fd, limit, failed):
    import os
    import sys

    try:
        os.write(fd, b"e")
    except OSError:  # Go has ended
        return clear()
    if not {"torch", "multiprocessing.resource_sharer"} & set(sys.modules):
        return
    flush()
    will = Will(fd, limit)
    try:
        if will.begin():
            will.hand_over()
    except (BrokenPipeError, ConnectionResetError):  # Go has ended: no process is left that would fetch them
        clear()
    except Exception as e:
        lost = "data lost at process exit, because Go did not take it over: %s (%s: %s)" % (will, type(e).__name__, e)
        if not failed:
            raise RuntimeError(lost) from None
        sys.stderr.write(lost + "\n")


def clear():
    """Removes the process's directory for temporary files, as any process does that Go has not started. Go would remove it, but has ended."""
    import os
    import shutil
    from multiprocessing import process

    dir = process.current_process()._config.get("tempdir")
    if dir:
        try:  # The marks may go before the rest, and this process may be killed then: so the directory's name has a mark.
            mark = next(name for name in os.listdir(dir) if name.startswith("shoal_%d_" % os.getpid()))
            parent, name = os.path.split(dir)
            going = os.path.join(parent, "pymp-%s-%s" % (mark, name.rpartition("-")[2]))
            os.rename(dir, going)
            dir = going
        except (OSError, StopIteration):
            pass
        shutil.rmtree(dir, True)


def flush():
    """Lets queues write the messages that threads have put into them since the finalizers were run."""
    from multiprocessing import util

    finalizers = util._finalizer_registry
    for key in sorted((k for k in list(finalizers) if k[0] is not None), reverse=True):
        f = finalizers.get(key)
        if f is not None and getattr(f._callback, "__name__", "") in ("_finalize_close", "_finalize_join"):
            f()


class Will:
    """The descriptors that the process leaves, with the socket where they are fetched, and the connections that keep named memory."""

    def __init__(self, fd, limit):
        import socket
        import sys
        import time

        self.limit = limit
        self.deadline = time.monotonic() + limit
        self.heir = socket.socket(fileno=fd)
        module = sys.modules.get("multiprocessing.resource_sharer")
        self.sharer = module and module._resource_sharer
        self.files, self.keys, self.names = [], [], {}
        self.address, self.authkey = "", b""

    def __str__(self):
        parts = ["%d descriptors" % len(self.keys)] * bool(self.keys) + sorted(self.names)
        return ", ".join(parts) or "what was sent"

    def begin(self):
        """Collects them, and reports whether there are any."""
        if self.sharer is not None and self.sharer._address is not None and self.sharer._cache:
            self.take_sharer()
        self.names = names()
        if self.names:
            self.managers = managers()
            self.files += self.managers
        else:
            self.managers = []
        return bool(self.files)

    def left(self):
        import time

        return max(self.deadline - time.monotonic(), 0.001)

    def take_sharer(self):
        """Ends the thread that serves descriptors, after the requests that it has got, and keeps its socket."""
        import threading
        from multiprocessing.connection import Client

        sharer = self.sharer
        self.keys = list(sharer._cache)
        listener = sharer._listener

        def stop():
            with Client(sharer._address, authkey=listener._authkey) as c:
                c.send(None)

        threading.Thread(target=stop, daemon=True).start()
        sharer._thread.join(self.left())
        if sharer._thread.is_alive():
            raise TimeoutError("a receiver of descriptors stalled for %g s" % self.limit)
        promised = sorted(sharer._cache.items())
        self.keys = [key for key, _ in promised]
        if not promised:
            return
        self.address, self.authkey = sharer._address, bytes(listener._authkey)
        self.files.append(listener._listener._socket.fileno())
        self.files += [descriptor(send) for _, (send, _) in promised]
        listener._listener._unlink.cancel()  # Go removes the socket's path

    def hand_over(self):
        import array
        import errno
        import pickle
        import socket
        import struct
        import time

        will = (self.address, self.authkey, self.keys, list(self.names.items()), len(self.managers))
        data = pickle.dumps(will, 4)
        self.heir.settimeout(self.left())
        self.heir.sendall(struct.pack("!i", len(data)) + data)
        for fd in self.files:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
            while True:
                self.heir.settimeout(self.left())
                try:
                    self.heir.sendmsg([b"f"], rights)
                    break
                except OSError as e:  # a user may have no more descriptors under way
                    if e.errno != errno.ETOOMANYREFS or self.left() <= 0.001:
                        raise
                    time.sleep(0.001)
        self.heir.settimeout(self.left())
        answer = self.heir.recv(1024)
        if answer != b"A":
            raise RuntimeError(answer.decode() or "Go has closed the connection")


def descriptor(send):
    """Returns the descriptor that a sharer's entry would send."""
    import array
    import os
    import socket

    near, far = socket.socketpair()
    with near, far:
        far.send(b"A")  # from 3.14 on the sender waits for this byte
        send(near, os.getpid())
        _, [(_, _, data)], _, _ = far.recvmsg(1, socket.CMSG_SPACE(4))
    return array.array("i", data)[0]


def names():
    """Returns the shared memory that PyTorch has named in this process, with how often it is mapped here."""
    import glob
    import os

    mine = {os.path.basename(f): 0 for f in glob.glob("/dev/shm/torch_%d_*" % os.getpid())}
    if mine:
        with open("/proc/self/maps") as maps:
            for line in maps:
                name = line.rstrip("\n").rpartition("/dev/shm/")[2]
                if name in mine:
                    mine[name] += 1
    return mine


def managers():
    """Returns the connections to PyTorch's managers, which remove the names of memory when no process is connected any more."""
    import os
    import socket

    found = []
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if not os.readlink("/proc/self/fd/%d" % fd).startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(fd)) as s:
                peer = s.getpeername()
        except OSError:
            continue
        if isinstance(peer, str) and "/torch-shm-" in peer:
            found.append(fd)
    return found


arrange(fd, conn, limit)  # Go defines these names
