# Two ranks of PyTorch in a job whose rank 0 is Go and serves the store: all that a client of a TCPStore can ask for, and a process group by it.
import datetime
import os

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
libuv = {"use_libuv": False} if os.environ.get("USE_LIBUV") == "0" else {}
tcp = dist.TCPStore(host, port, None, False, timeout=datetime.timedelta(seconds=60), wait_for_workers=rank == 1, **libuv)
store = dist.PrefixStore("shoal/" + os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"), tcp)


def fails(call, *args):
    try:
        call(*args)
    except Exception as e:
        return type(e).__name__
    raise AssertionError("%s%s has not failed" % (call, args))


def calls():
    """Asks for everything, by what this PyTorch has, and returns the names."""
    done = []

    def has(name):
        done.append(name)
        return hasattr(tcp, name)

    tcp.set("a", "1")
    assert tcp.get("a") == b"1"
    tcp.set("a", "")
    assert tcp.get("a") == b""
    assert tcp.add("n", 5) == 5 and tcp.add("n", -7) == -2 and tcp.get("n") == b"-2"
    assert tcp.compare_set("c", "x", "y") == b"x" and tcp.compare_set("c", "", "y") == b"y"
    assert tcp.compare_set("c", "x", "z") == b"y" and tcp.compare_set("c", "y", "z") == b"z"
    before = tcp.num_keys()
    assert tcp.delete_key("c") and not tcp.delete_key("c") and tcp.num_keys() == before - 1
    large = b"\xff" * (1 << 20)
    tcp.set("large", large.decode("latin-1")[:1 << 19])
    assert len(tcp.get("large")) == 1 << 20  # as UTF-8
    # A wait that ends by its time-out leaves a connection that can be used; 1.13 has no way to say that it waits no longer.
    fails(tcp.wait, ["never"], datetime.timedelta(milliseconds=100))
    assert tcp.add("n", 1) == -1
    tcp.wait(["a", "n", "a"], datetime.timedelta(seconds=60))
    dist.PrefixStore("p", dist.PrefixStore("q", tcp)).set("k", "v")
    assert tcp.get("q/p/k") == b"v"
    if has("check"):
        assert tcp.check(["a", "n"]) and not tcp.check(["a", "never"])
    if has("append"):
        tcp.append("log", "one")
        tcp.append("log", "two")
        assert tcp.get("log") == b"onetwo"
        tcp.multi_set(["m1", "m2"], ["x", "y"])
        assert tcp.multi_get(["m2", "m1"]) == [b"y", b"x"]
    if has("clone"):
        assert tcp.clone().get("a") == b""
    if has("queue_push") and not libuv:  # without which a PyTorch has no queues
        tcp.queue_push("queue", "first")
        tcp.queue_push("queue", "second")
        assert tcp.queue_len("queue") == 2 and tcp.queue_pop("queue") == b"first" and tcp.queue_pop("queue", False) == b"second"
        assert fails(tcp.queue_pop, "queue", False) == "QueueEmptyError" or tcp.queue_len("queue") == 0
    if has("list_keys"):
        assert {"a", "n", "large", "q/p/k"} <= set(tcp.list_keys()), tcp.list_keys()
    if has("barrier"):
        tcp.barrier("alone", 1)
        fails(tcp.barrier, "two", 2, datetime.timedelta(milliseconds=100))
        assert tcp.add("n", 1) == 0
    return done


if rank == 1:
    calls()
    store.set("python", "is here")
if hasattr(tcp, "barrier"):
    tcp.barrier("both", 2)
assert store.get("go") == "gö".encode()  # waits for it
store.add("met", 1)
group = dist.PrefixStore("group", tcp)
dist.init_process_group("gloo", store=group, rank=rank - 1, world_size=2, timeout=datetime.timedelta(seconds=60))
x = torch.full((3,), float(rank))
dist.all_reduce(x)
assert x.tolist() == [3, 3, 3], x
dist.barrier()
pair = dist.new_group([0, 1])
dist.all_reduce(x, group=pair)
assert x.tolist() == [6, 6, 6], x
objects = [None, None]
dist.all_gather_object(objects, {"rank": rank})
assert [o["rank"] for o in objects] == [1, 2], objects
if not torch.__version__.startswith("2.4."):  # whose Gloo ends in every second run, and waits for ever in the others
    dist.destroy_process_group()
store.set("gather/metrics/0/%d" % rank, '{"rank": %d}' % rank)
store.get("bye")
print("python %d is done" % rank, flush=True)
