"""Pipes: after CPython's _TestConnection, _TestPoll, _TestPicklingConnections, _TestPollEintr and TestWait."""

import array
import os
import pickle
import signal
import time
from multiprocessing.connection import wait

import pytest

WAIT = 60


def run(ctx, target, *args):
    p = ctx.Process(target=target, args=args, daemon=True)
    p.start()
    return p


def finish(*processes):
    for p in processes:
        p.join(WAIT)
        assert p.exitcode == 0


def echo(conn):
    for message in iter(conn.recv_bytes, b""):
        conn.send_bytes(message)
    conn.close()


def echo_values(conn):
    for v in iter(conn.recv, None):
        conn.send(v)
    conn.close()


def test_values(ctx):
    a, b = ctx.Pipe()
    p = run(ctx, echo_values, b)
    for v in [1, 2.25, "x", [1, [2]], {"a": (1, 2)}, b"z" * 100000, list(range(5000))]:
        a.send(v)
        assert a.recv() == v
    a.send(None)
    finish(p)


def test_bytes(ctx):
    a, b = ctx.Pipe()
    p = run(ctx, echo, b)
    b.close()
    for message in [b"hello", b"\x00" * 3, os.urandom(200000)]:
        a.send_bytes(message)
        assert a.recv_bytes() == message
    into = array.array("i", [0] * 10)
    numbers = array.array("i", range(4))
    a.send_bytes(numbers)
    assert a.recv_bytes_into(into) == len(numbers) * numbers.itemsize
    assert list(into) == [0, 1, 2, 3] + [0] * 6
    a.send_bytes(numbers)
    assert a.recv_bytes_into(into, 3 * into.itemsize) == len(numbers) * numbers.itemsize
    assert list(into) == [0, 1, 2, 0, 1, 2, 3, 0, 0, 0]
    buffer = bytearray(b" " * 40)
    long = b"hello world " * 8
    a.send_bytes(long)
    with pytest.raises(ctx.BufferTooShort) as e:
        a.recv_bytes_into(buffer)
    assert e.value.args == (long,)
    a.send_bytes(b"")
    finish(p)
    with pytest.raises(EOFError):
        a.recv_bytes()


def test_poll(ctx):
    a, b = ctx.Pipe()
    p = run(ctx, echo, b)
    assert a.poll() is False
    for seconds in (0, -1, 0.1):
        began = time.monotonic()
        assert a.poll(seconds) is False
        assert seconds <= time.monotonic() - began < 10
    a.send_bytes(b"x")
    assert a.poll(WAIT) is True and a.poll() is True and a.poll(None) is True
    assert a.recv_bytes() == b"x"
    assert a.poll() is False
    a.send_bytes(b"")
    finish(p)


def test_closed_connection(ctx):
    a, b = ctx.Pipe()
    assert not a.closed and a.readable and a.writable
    a.close()
    assert a.closed
    for use in (lambda: a.send(1), a.recv, a.poll, a.fileno, a.recv_bytes, lambda: a.send_bytes(b"")):
        with pytest.raises(OSError):
            use()
    a.close()
    with pytest.raises(EOFError):
        b.recv()
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        b.send(1)


def test_duplex_false(ctx):
    reader, writer = ctx.Pipe(duplex=False)
    assert reader.readable and not reader.writable and writer.writable and not writer.readable
    writer.send(1)
    assert reader.recv() == 1
    for use in (writer.recv, writer.poll, lambda: reader.send(2)):
        with pytest.raises(OSError):
            use()


def test_end_of_file(ctx):
    reader, writer = ctx.Pipe(duplex=False)
    p = run(ctx, send_and_close, writer)
    writer.close()
    assert reader.recv() == 1
    with pytest.raises(EOFError):
        reader.recv()
    assert reader.poll() is True
    finish(p)


def send_and_close(writer):
    writer.send(1)
    writer.close()


def send_and_wait(writer):
    writer.send(1)
    time.sleep(1000)


def test_killed_sender(ctx):
    reader, writer = ctx.Pipe(duplex=False)
    p = run(ctx, send_and_wait, writer)
    writer.close()
    assert reader.recv() == 1
    os.kill(p.pid, signal.SIGKILL)
    with pytest.raises(EOFError):
        reader.recv()
    p.join(WAIT)


def test_spawn_close(ctx):
    """The parent may close its copy of an end after the start."""
    a, b = ctx.Pipe()
    p = run(ctx, echo, b)
    b.close()
    a.send_bytes(b"hello")
    assert a.recv_bytes() == b"hello"
    a.send_bytes(b"")
    a.close()
    finish(p)


def test_send_bytes(ctx):
    a, b = ctx.Pipe()
    message = b"abcdefghijklmnopqrstuvwxyz"
    for args, expected in (((), message), ((5,), message[5:]), ((7, 8), message[7:15]), ((26,), b""), ((26, 0), b"")):
        a.send_bytes(message, *args)
        assert b.recv_bytes() == expected
    for args in ((27,), (22, 5), (26, 1), (-1,), (4, -1)):
        with pytest.raises(ValueError):
            a.send_bytes(message, *args)


def test_max_length(ctx):
    a, b = ctx.Pipe(duplex=False)
    b.send_bytes(b"abc")
    assert a.recv_bytes(3) == b"abc"
    with pytest.raises(ValueError):
        a.recv_bytes(-1)
    b.send_bytes(b"abcd")
    with pytest.raises(OSError):
        a.recv_bytes(3)
    assert a.closed


def test_context_manager(ctx):
    a, b = ctx.Pipe()
    with a, b:
        a.send(1729)
        assert b.recv() == 1729
        assert not a.closed
    assert a.closed and b.closed
    with pytest.raises(OSError):
        a.recv()


def test_messages_do_not_merge(ctx):
    a, b = ctx.Pipe()
    for message in (b"a", b"", b"bc", b"d" * 5000):
        a.send_bytes(message)
    assert [b.recv_bytes() for _ in range(4)] == [b"a", b"", b"bc", b"d" * 5000]
    assert b.poll(0.05) is False


def receive_connection(outer, inner_done):
    inner = outer.recv()
    inner.send("through the inner pipe")
    inner.close()
    assert inner_done.wait(WAIT)


def test_connection_in_a_connection(ctx):
    a, b = ctx.Pipe()
    done = ctx.Event()
    p = run(ctx, receive_connection, b, done)
    reader, writer = ctx.Pipe(duplex=False)
    a.send(writer)
    assert reader.recv() == "through the inner pipe"
    done.set()
    finish(p)


def test_unpicklable_value(ctx):
    a, b = ctx.Pipe()
    with pytest.raises((pickle.PicklingError, AttributeError)):
        a.send(lambda: 1)
    a.send(1)
    assert b.recv() == 1


def write_often(writer, n):
    for i in range(n):
        writer.send((i, os.getpid()))
        time.sleep(0.001)
    writer.close()


def test_wait(ctx):
    """multiprocessing.connection.wait accepts the connections."""
    readers, ps = [], []
    for _ in range(3):
        reader, writer = ctx.Pipe(duplex=False)
        ps.append(run(ctx, write_often, writer, 10))
        writer.close()
        readers.append(reader)
    got = []
    while readers:
        for reader in wait(readers, WAIT):
            try:
                got.append(reader.recv())
            except EOFError:
                readers.remove(reader)
                reader.close()
    assert sorted(got) == sorted((i, p.pid) for i in range(10) for p in ps)
    finish(*ps)


def test_wait_timeout(ctx):
    a, b = ctx.Pipe()
    began = time.monotonic()
    assert wait([a, b], 0.1) == []
    assert 0.09 <= time.monotonic() - began < 10
    b.send(None)
    assert wait([a, b], WAIT) == [a]
    assert wait([a, b], -1) == [a]
    a.recv()
    assert wait([a, b], 0) == []


def test_wait_with_a_sentinel(ctx):
    a, b = ctx.Pipe()
    p = run(ctx, sleep_briefly)
    ready = wait([a, p.sentinel], WAIT)
    assert ready == [p.sentinel]
    b.send(1)
    assert set(wait([a, p.sentinel], WAIT)) == {a, p.sentinel}
    finish(p)


def sleep_briefly():
    time.sleep(0.2)


def test_poll_is_not_ended_by_a_signal(ctx):
    seen = []
    old = signal.signal(signal.SIGUSR1, lambda *args: seen.append(1))
    try:
        p = run(ctx, signal_parent, os.getpid())
        a, _b = ctx.Pipe()
        assert a.poll(0.5) is False
        p.join(WAIT)
        end = time.monotonic() + WAIT
        while not seen and time.monotonic() < end:
            time.sleep(0.01)
        assert seen
    finally:
        signal.signal(signal.SIGUSR1, old)


def signal_parent(pid):
    time.sleep(0.1)
    os.kill(pid, signal.SIGUSR1)
