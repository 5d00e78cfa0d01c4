"""Tensors and arrays in queues, pipes and arguments: after PyTorch's test_multiprocessing.py."""

import gc
import os
import time

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


def write_received(q, answers):
    for t in q.get(timeout=WAIT):
        t[:] = 4
    answers.put("written")


def test_tensors_share_memory(ctx, torch):
    """A write of the receiver is seen by the sender, after it has put a tensor from shared memory."""
    q, answers = ctx.Queue(), ctx.Queue()
    x = new(torch, 5, 5) if is_shoal(ctx) else torch.zeros(5, 5).share_memory_()
    p = run(ctx, write_received, q, answers)
    q.put([x])
    assert answers.get(timeout=WAIT) == "written"
    assert x.eq(4).all()
    finish(p)


def new(torch, *shape):
    import shoal

    return shoal.zeros(shape, torch.float32)


def send_tensors(q, done):
    import torch

    q.put([torch.full((2, 3), float(i)) for i in range(5)])
    done.wait(WAIT)


def test_tensors_from_a_child(ctx, torch):
    q, done = ctx.Queue(), ctx.Event()
    p = run(ctx, send_tensors, q, done)
    for i, t in enumerate(q.get(timeout=WAIT)):
        assert t.shape == (2, 3) and t.eq(i).all()
    done.set()
    finish(p)


DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128"]


def echo(a, b, got):
    while True:
        t = a.get()
        if t is None:
            break
        b.put(t)
        got.acquire(timeout=WAIT)


def start_echo(ctx):
    a, b, got = ctx.Queue(), ctx.Queue(), ctx.Semaphore(0)
    return a, b, got, run(ctx, echo, a, b, got)


def test_dtypes(ctx, torch):
    a, b, got, p = start_echo(ctx)
    for name in DTYPES:
        t = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
        a.put(t)
        r = b.get(timeout=WAIT)
        assert r.dtype == t.dtype and r.shape == t.shape and torch.equal(r, t), name
        got.release()
    a.put(None)
    finish(p)


def has_dlpack(torch, t):
    """Reports whether this PyTorch exports tensors of the dtype: 2.4 does not export float8."""
    try:
        torch._C._to_dlpack(t)
    except (RuntimeError, BufferError):
        return False
    return True


def test_float8_tensor(ctx, torch):
    q = ctx.SimpleQueue()
    for name in ("float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64"):
        if not hasattr(torch, name):
            continue
        t = torch.arange(6, dtype=torch.uint8).reshape(2, 3).view(torch.uint8)
        t = t.to(torch.int64).to(getattr(torch, name)) if name.startswith("u") else t.view(getattr(torch, name))
        if type(ctx).__module__.startswith("shoal") and not has_dlpack(torch, t):
            with pytest.raises(TypeError, match=r"torch.uint8"):
                q.put(t)
            continue
        q.put(t)
        r = q.get()
        assert r.dtype == t.dtype and torch.equal(r.view(torch.uint8), t.view(torch.uint8)), name


def test_layouts(ctx, torch):
    """Transposed, strided, broadcast, empty and scalar tensors keep their shape and values."""
    a, b, got, p = start_echo(ctx)
    base = torch.arange(24.0).reshape(2, 3, 4)
    for t in (base.transpose(0, 2), base[:, ::2, 1:], base[0, 0, 0], torch.empty(0), torch.empty(3, 0, 2),
              torch.ones(1).expand(3, 4), base.permute(2, 0, 1), base[1:]):
        a.put(t)
        r = b.get(timeout=WAIT)
        assert r.shape == t.shape and torch.equal(r, t)
        got.release()
    a.put(None)
    finish(p)


def test_nested_containers(ctx, torch):
    a, b, got, p = start_echo(ctx)
    t = torch.arange(3)
    value = {"a": [t, (t, 1, None)], 2: {"deep": [[t + 1]]}, "text": "x"}
    a.put(value)
    r = b.get(timeout=WAIT)
    got.release()
    assert torch.equal(r["a"][0], t) and torch.equal(r["a"][1][0], t) and r["a"][1][1:] == (1, None)
    assert torch.equal(r[2]["deep"][0][0], t + 1) and r["text"] == "x"
    a.put(None)
    finish(p)


def test_one_tensor_twice(ctx, torch):
    q = ctx.SimpleQueue()
    t = torch.zeros(3)
    q.put([t, t])
    a, b = q.get()
    a[0] = 5
    assert b[0] == 5


def test_views_share_their_storage(ctx, torch):
    """Two views of one shared storage in one message still share it."""
    q = ctx.SimpleQueue()
    base = torch.zeros(10).share_memory_() if not is_shoal(ctx) else new(torch, 10)
    q.put([base[:5], base[2:8]])
    a, b = q.get()
    b[0] = 7
    assert a[2] == 7


def test_views_share_their_storage_across_messages(ctx, torch):
    q = ctx.SimpleQueue()
    base = new(torch, 10)
    q.put(base[:5])
    q.put(base[2:8])
    a, b = q.get(), q.get()
    b[0] = 7
    assert a[2] == 7 and base[2] == 7


def is_shoal(ctx):
    return type(ctx).__module__.startswith("shoal")


def test_tensor_in_shared_memory_is_not_copied(ctx, torch):
    import shoal

    q = ctx.Queue()
    t = shoal.empty((4, 4), torch.int32)
    assert shoal.is_shared(t) and not shoal.is_shared(torch.empty(2))
    q.put(t)
    q.put(t[1:3, ::2].t())
    a, b = q.get(timeout=WAIT), q.get(timeout=WAIT)
    t[1, 2] = 77
    assert a[1, 2] == 77 and b[1, 0] == 77
    a[3, 3] = 5
    assert t[3, 3] == 5


def put_and_leave(q):
    import torch

    q.put(torch.arange(1000))
    time.sleep(0.5)  # so that a thread that sends later has time for it


def test_receiver_outlives_sender(ctx, torch):
    q = ctx.Queue()
    p = run(ctx, put_and_leave, q)
    finish(p)
    assert q.get(timeout=WAIT).sum() == 499500


def receive_and_keep(q, results):
    t = q.get(timeout=WAIT)
    results.put("ready")
    q.get(timeout=WAIT)
    results.put(float(t.sum()))


def test_receiver_keeps_a_tensor(ctx, torch):
    """A receiver's tensor stays valid when the sender's is gone."""
    q, results = ctx.Queue(), ctx.Queue()
    p = run(ctx, receive_and_keep, q, results)
    q.put(torch.ones(100))
    assert results.get(timeout=WAIT) == "ready"
    gc.collect()
    junk = [torch.zeros(100).share_memory_() for _ in range(10)]
    q.put("go on")
    assert results.get(timeout=WAIT) == 100.0
    assert len(junk) == 10
    finish(p)


def check_args(t, p, q):
    q.put((t.tolist(), p.requires_grad))
    t[0] = 9


def test_tensor_as_an_argument(ctx, torch):
    q = ctx.Queue()
    t = torch.arange(3).share_memory_() if not is_shoal(ctx) else new(torch, 3)
    t[:] = torch.arange(3)
    p = run(ctx, check_args, t, torch.nn.Parameter(torch.zeros(1)), q)
    assert q.get(timeout=WAIT) == ([0, 1, 2], True)
    finish(p)
    assert t[0] == 9


def test_requires_grad(ctx, torch):
    q = ctx.SimpleQueue()
    t = torch.ones(3, requires_grad=True)
    q.put(t)
    r = q.get()
    assert r.requires_grad and r.is_leaf and torch.equal(r, t)
    with pytest.raises(RuntimeError, match="requires_grad"):
        q.put(t * 2)
    q.put((t * 2).detach())
    assert not q.get().requires_grad


def test_meta_tensor(ctx, torch):
    q = ctx.SimpleQueue()
    q.put([torch.empty(2, 3, device="meta")])
    r = q.get()[0]
    assert r.device.type == "meta" and r.shape == (2, 3)


def test_memory_of_a_plain_tensor(ctx, torch):
    """PyTorch moves the sender's tensor to shared memory when it is put."""
    q = ctx.SimpleQueue()
    t = torch.zeros(3)
    q.put(t)
    q.get()[0] = 1
    assert t[0] == 1


class Adder:
    """A target that has a tensor."""

    def __init__(self, t):
        self.t = t

    def __call__(self):
        self.t.add_(3)


def test_inherited_tensor(ctx, torch):
    t = torch.zeros(5, 5).share_memory_()
    finish(run(ctx, Adder(t)))
    assert t.eq(3).all()


def autograd(_):
    import torch

    t = torch.rand(3, requires_grad=True)
    t.mean().backward()
    return t.grad is not None


def test_autograd_in_a_pool(ctx, torch):
    autograd(None)
    with ctx.Pool(2) as pool:
        assert pool.map(autograd, range(3)) == [True] * 3


def test_parameter(ctx, torch):
    q = ctx.SimpleQueue()
    for requires_grad in True, False:
        q.put(torch.nn.Parameter(torch.ones(3), requires_grad=requires_grad))
        r = q.get()
        assert type(r) is torch.nn.Parameter and r.requires_grad == requires_grad and torch.equal(r.data, torch.ones(3))


def test_module(ctx, torch):
    q = ctx.SimpleQueue()
    model = torch.nn.Linear(3, 2)
    q.put(model.state_dict())
    state = q.get()
    assert list(state) == ["weight", "bias"] and torch.equal(state["weight"], model.weight)


def test_conjugate_and_negative_views(ctx, torch):
    q = ctx.SimpleQueue()
    t = torch.tensor([1 + 2j, 3 - 1j])
    for x in t.conj(), t.conj().imag:
        q.put(x)
        assert torch.equal(q.get(), x)


def test_refused_tensors(ctx, torch):
    """Tensors that no process could share raise in put, or are copied whole."""
    if not is_shoal(ctx):
        pytest.skip("the messages are those of shoal")
    q = ctx.SimpleQueue()
    with pytest.raises(NotImplementedError, match="layout"):
        q.put(torch.eye(3).to_sparse())
    with pytest.raises(NotImplementedError, match="quantized"):
        q.put(torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8))
    q.put(1)
    assert q.get() == 1


def test_numpy_array_is_shared(ctx):
    numpy = pytest.importorskip("numpy")
    import shoal

    q = ctx.Queue()
    a = shoal.empty_array((3, 4), "int16")
    assert shoal.is_shared(a)
    a[:] = 1
    q.put({"a": a, "part": a[1:, ::2]})
    r = q.get(timeout=WAIT)
    r["a"][1, 2] = 5
    assert a[1, 2] == 5 and r["part"][0, 1] == 5 and isinstance(r["a"], numpy.ndarray)


def test_numpy_arrays(ctx):
    numpy = pytest.importorskip("numpy")
    a, b, got, p = start_echo(ctx)
    base = numpy.arange(24).reshape(2, 3, 4)
    structured = numpy.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    for x in (base, base.T, base[:, ::-1], base[::2, 1:, ::3], numpy.asfortranarray(base), numpy.array(3.5),
              numpy.empty((0, 3)), numpy.array(["a", "bc"]), structured, base.astype(">i4"),
              numpy.array(["2026-01-01"], dtype="datetime64[D]"), numpy.array([1, "x"], dtype=object),
              base.astype("complex64"), base.astype("float16"), base > 5, numpy.broadcast_to(numpy.arange(3), (2, 3))):
        a.put(x)
        r = b.get(timeout=WAIT)
        same = r.dtype.newbyteorder("=") == x.dtype.newbyteorder("=")
        assert type(r) is numpy.ndarray and same and r.shape == x.shape
        assert numpy.array_equal(r, x)
        got.release()
    a.put(None)
    finish(p)


def test_many_tensors_in_one_message(ctx, torch):
    q = ctx.SimpleQueue()
    ts = [torch.full((3,), i) for i in range(200)]
    q.put(ts)
    assert all(torch.equal(r, t) for r, t in zip(q.get(), ts))


def test_tensors_through_a_pipe(ctx, torch):
    a, b = ctx.Pipe()
    a.send({"t": torch.arange(4)})
    assert torch.equal(b.recv()["t"], torch.arange(4))


def pid_of(_):
    return os.getpid()


def double(t):
    return t * 2


def test_pool(ctx, torch):
    with ctx.Pool(2) as pool:
        rs = pool.map(double, [torch.full((2,), i) for i in range(6)])
        assert [r.tolist() for r in rs] == [[2 * i, 2 * i] for i in range(6)]
        assert pool.apply(double, (torch.ones(1),)).item() == 2
        assert len(set(pool.map(pid_of, range(20)))) <= 2


def fail():
    raise ValueError("on purpose")


def test_pool_error(ctx):
    with ctx.Pool(1) as pool:
        with pytest.raises(ValueError, match="on purpose"):
            pool.apply(fail)
        assert pool.apply(pid_of, (1,)) != os.getpid()
