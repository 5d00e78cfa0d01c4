"""The rows of the suite python, done with iceoryx2 and with Ray, where the Python has them.

Both are written from their documentation: https://github.com/eclipse-iceoryx/iceoryx2/tree/v0.10.0/examples/python and
https://docs.ray.io/en/latest/ray-core/objects.html.
"""

import ctypes
import importlib.metadata
import importlib.util
import itertools
import os
import pickle
import secrets
import shutil
import sys
import time

import torch

REQUIREMENTS = {"iceoryx2": "iceoryx2==0.10.0", "ray": "ray==2.60.0"}  # the versions that docs/bench.md compares
now = time.perf_counter_ns


def missing():
    """By library, why its rows are skipped."""
    return {name: f"it is not installed; '{sys.executable} -m pip install {requirement}' adds it"
            for name, requirement in REQUIREMENTS.items() if importlib.util.find_spec(name) is None}


def variants():
    """The variants by operation, and the name of each variant with the version of its library."""
    ops, names = {}, {}
    for library in REQUIREMENTS.keys() - missing().keys():
        version = importlib.metadata.version(library)
        for op, kinds in OPS[library].items():
            ops[f"{op} {library}"] = [f"{library} {kind}" for kind in kinds]
            names.update((f"{library} {kind}", f"{library} {version} {kind}") for kind in kinds)
    return ops, names


class Values(ctypes.Structure):
    """The values of the row python_value_rtt, as a type that iceoryx2 can send."""

    _fields_ = [("step", ctypes.c_int64), ("loss", ctypes.c_double), ("name", ctypes.c_char * 16)]


class Topic:
    """A publish-subscribe service of iceoryx2 with one publisher and one subscriber, as a queue. The publisher waits if the
    subscriber's buffer is full, so no sample is lost. Each process opens the service when it first puts or gets."""

    ids = itertools.count()

    def __init__(self, waits=False, capacity=2):
        self.args = f"shoal/bench/{os.getpid()}/{next(self.ids)}", waits, capacity
        self.__setstate__(self.args)

    def __getstate__(self):
        return self.args

    def __setstate__(self, args):
        self.args = args
        self.publisher = self.subscriber = self.event = self.received = self.loaned = self.fresh = None

    def open(self, kind):
        """Returns the service with samples of kind, and opens the service of events beside it if this queue has one."""
        import iceoryx2 as iox2
        name, waits, capacity = self.args
        iox2.set_log_level(iox2.LogLevel.Error)
        node = iox2.NodeBuilder.new().signal_handling_mode(iox2.SignalHandlingMode.Disabled).create(iox2.ServiceType.Ipc)
        if waits:
            self.event = node.service_builder(iox2.ServiceName.new(name)).event().open_or_create()
        service = node.service_builder(iox2.ServiceName.new(name)).publish_subscribe(kind)
        if kind is not Values:
            service = service.payload_alignment(iox2.Alignment.new(64))
        return (service.enable_safe_overflow(False).subscriber_max_buffer_size(capacity)
                .max_publishers(1).max_subscribers(1).open_or_create())

    def open_publisher(self, kind, initial_size=None):
        """Waits for the subscriber, because samples without a subscriber are dropped."""
        import iceoryx2 as iox2
        service = self.open(kind)
        builder = service.publisher_builder().backpressure_strategy(iox2.BackpressureStrategy.RetryUntilDelivered)
        if initial_size:
            builder = builder.initial_max_slice_len(initial_size).allocation_strategy(iox2.AllocationStrategy.PowerOfTwo)
        self.publisher = builder.create()
        while service.dynamic_config.number_of_subscribers == 0:
            time.sleep(0.001)
        self.notifier = self.event and self.event.notifier_builder().create()

    def open_subscriber(self, kind):
        import iceoryx2 as iox2
        service = self.open(kind)
        if self.event:
            self.listener = self.event.listener_builder().create()
            self.waitset = (iox2.WaitSetBuilder.new().signal_handling_mode(iox2.SignalHandlingMode.Disabled)
                            .create(iox2.ServiceType.Ipc))
            self.guard = self.waitset.attach_notification(self.listener)
        self.subscriber = service.subscriber_builder().create()

    def send(self, sample):
        sample.send()
        if self.event:
            self.notifier.notify()

    def receive(self):
        """Returns the next sample: polls, or waits for an event if there is none."""
        receive = self.subscriber.receive
        while (sample := receive()) is None:
            if self.event:
                self.waitset.wait_and_process()
                self.listener.try_wait()  # takes the event, or the next wait would end at once
        return sample


def view(sample):
    """A tensor in the memory of a sample, which must be kept as long."""
    return torch.frombuffer(sample.payload().as_memory_view(), dtype=torch.int64)


class Bytes(Topic):
    """Slices of bytes."""

    def loan(self, size):
        if not self.publisher:
            import iceoryx2 as iox2
            self.open_publisher(iox2.Slice[ctypes.c_uint8], size)
        return self.publisher.loan_slice_uninit(size)

    def receive(self):
        if not self.subscriber:
            import iceoryx2 as iox2
            self.open_subscriber(iox2.Slice[ctypes.c_uint8])
        return super().receive()


class Tensors(Bytes):
    """Slices that both sides see as tensors, without a copy. A tensor is valid until the next get."""

    def put(self, t):
        if t is self.fresh:
            sample, self.loaned, self.fresh = self.loaned, None, None
        else:
            sample = self.loan(t.nbytes)
            ctypes.memmove(sample.payload_ptr, t.data_ptr(), t.nbytes)
        self.send(sample.assume_init())

    def get(self):
        self.received = self.receive()
        return view(self.received)

    def edges(self, t):
        """Received samples are read-only: what a process computes from one is written to another, which it loans."""
        self.loaned = self.loan(t.nbytes)
        self.fresh = view(self.loaned)
        self.fresh[0] = t[0] + 1
        self.fresh[-1] = t[-1] + 1
        return self.fresh


class Pickles(Bytes):
    """Slices with a pickled value."""

    def put(self, value):
        data = pickle.dumps(value)
        sample = self.loan(len(data))
        ctypes.memmove(sample.payload_ptr, data, len(data))
        self.send(sample.assume_init())

    def get(self):
        sample = self.receive()
        return pickle.loads(sample.payload().as_memory_view())


class Structures(Topic):
    """Samples of a fixed type."""

    def put(self, value):
        if not self.publisher:
            self.open_publisher(Values)
        self.send(self.publisher.loan_uninit().write_payload(Values(value["step"], value["loss"], value["name"].encode())))

    def get(self):
        if not self.subscriber:
            self.open_subscriber(Values)
        values = self.receive().payload().contents
        return {"step": values.step, "loss": values.loss, "name": values.name.decode()}


STREAM = 1024  # samples, as in a queue of Shoal here
QUEUES = {
    "iceoryx2 slices, polling": Tensors,
    "iceoryx2 slices, WaitSet": lambda: Tensors(waits=True),
    "iceoryx2 slices, 1024 samples, polling": lambda: Tensors(capacity=STREAM),
    "iceoryx2 slices, 1024 samples, WaitSet": lambda: Tensors(waits=True, capacity=STREAM),
    "iceoryx2 pickle, polling": Pickles,
    "iceoryx2 structure, polling": Structures,
}
OPS = {
    "iceoryx2": {
        "rtt": ["slices, polling"],
        "parked": ["slices, WaitSet"],
        "echo": ["pickle, polling", "structure, polling"],
        "count": ["slices, 1024 samples, polling", "slices, 1024 samples, WaitSet"],
    },
    "ray": {op: ["actor"] for op in ("rtt", "parked", "echo", "count")},
}


class Other:
    """The actor of Ray. Arrays that it gets from the object store are read-only, so it writes to a copy."""

    def __init__(self, pause):
        self.pause, self.spent = pause, 0

    def edges(self, a, computes):
        a = a.copy()
        a[0] += 1
        a[-1] += 1
        if computes:
            begin = now()
            while now() - begin < self.pause:
                pass
            self.spent += now() - begin
        return a

    def echo(self, value):
        return value

    def take(self, a):
        pass

    def pauses(self):
        spent, self.spent = self.spent, 0
        return spent


class Ray:
    """This process and an actor, on a node of Ray that lives as long as this object."""

    def __init__(self, pause):
        # Ray reads these when it is imported. On Linux it replaces 127.0.0.1 by an address that other machines can reach,
        # unless clusters are disabled by the second one (ray/_private/services.py, get_node_ip_address).
        # The token is for this node only: without one, Ray saves a token in the home directory.
        os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
                          RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
        import ray
        self.ray, self.pause = ray, pause
        # The bench removes the folder of this script. The name is short because the paths of sockets are limited.
        self.dir = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ray")
        try:
            ray.init(address="local", num_cpus=2, num_gpus=0, include_dashboard=False, _node_ip_address="127.0.0.1",
                     object_store_memory=256 << 20, log_to_driver=False, logging_level="ERROR", _temp_dir=self.dir)
            self.other = ray.remote(Other).remote(pause)
            ray.get(self.other.pauses.remote())  # returns when the actor has started
        except BaseException:
            self.close()
            raise

    def value(self, size):
        import numpy
        return numpy.zeros(size // 8, dtype=numpy.int64)

    def rtt(self, op, value, rounds):
        """Sends a value to and fro, and returns the ns that a round takes without the pauses."""
        get, put, pauses = self.ray.get, self.ray.put, 0
        other, echo, parked = self.other.edges, self.other.echo, op == "parked"
        begin = now()
        for _ in range(rounds):
            if op == "echo":
                value = get(echo.remote(value))
                continue
            if parked:
                pause = now()
                while now() - pause < self.pause:
                    pass
                pauses += now() - pause
            value = get(other.remote(put(value), parked)).copy()
            value[0] += 1
            value[-1] += 1
        spent = now() - begin - pauses
        return (spent - get(self.other.pauses.remote())) / rounds

    def count(self, value, rounds):
        """Sends values one way, and returns how many a second."""
        take = self.other.take
        begin = now()
        for _ in range(rounds):
            take.remote(value)
        self.ray.get(self.other.pauses.remote())  # calls of an actor are done in their order
        return rounds * 1e9 / (now() - begin)

    def close(self):
        self.ray.shutdown()
        shutil.rmtree(self.dir, ignore_errors=True)
