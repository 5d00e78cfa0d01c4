"""How descriptors in messages to Go get there: see Note [Descriptors sent ahead] in ahead.go."""


def precede(fd, conn, address, key):
    """Makes conn.send send each descriptor to Go before its message, over the socket fd. The message names descriptors by keys from this one on."""
    import array
    import itertools
    import os
    import socket
    import struct
    import threading
    from multiprocessing import connection, reduction

    me, heir, keys, to_go = os.getpid(), socket.socket(fileno=fd), itertools.count(key), threading.local()
    send, dup_fd = connection.Connection.send, reduction.DupFd
    os.set_inheritable(fd, False)

    def send_marked(self, obj):
        if self._handle != conn:
            return send(self, obj)
        to_go.now = True
        try:
            send(self, obj)
        finally:
            to_go.now = False

    def dup_ahead(fd):
        if not getattr(to_go, "now", False) or os.getpid() != me:  # another connection, or a forked process
            return dup_fd(fd)
        key = next(keys)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
        try:
            heir.sendmsg([struct.pack("!q", key)], rights, socket.MSG_DONTWAIT)
        except OSError:  # the queue of the socket is full, or Go has ended
            return dup_fd(fd)
        from multiprocessing.resource_sharer import DupFd

        there = DupFd.__new__(DupFd)
        there._id = address, key
        return there

    connection.Connection.send, reduction.DupFd = send_marked, dup_ahead


precede(fd, conn, address, key)  # Go defines these names
