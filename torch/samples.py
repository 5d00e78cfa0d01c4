import multiprocessing.connection, multiprocessing.process, operator, os, queue, socket, subprocess, sys

# Runs a worker of a DataLoader if the script has a collate_fn or a worker_init_fn of its own. The worker is PyTorch's loop, unchanged, over a
# data set whose samples come from another process of the Go program. See samples.go.


class Samples:
    """The process that has the data set, and the requests to it."""

    def __init__(self, program, flag):
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen([program, flag, str(theirs.fileno())], pass_fds=[theirs.fileno()])
        self.conn = multiprocessing.connection.Connection(ours.detach())
        self.opened = False
        self.epoch = 0

    def begin(self, worker_args):
        """Keeps the description of the worker. It is sent, with the data set, when the first sample is wanted, after worker_init_fn."""
        self.kind, self.dataset, self.base_seed, self.id, self.workers = worker_args

    def ask(self, what, *args):
        try:
            if not self.opened:
                self.opened = True
                self.conn.send_bytes(multiprocessing.process.current_process().authkey)
                self.conn.send((self.kind, original(self.dataset), self.base_seed, self.id, self.workers))
            self.conn.send((what, self.epoch, *args))
            ok, answer = self.conn.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError) as e:
            self.process.wait()
            raise RuntimeError(f"the Go program that loads samples exited with status {self.process.returncode}") from e
        if not ok:
            raise RuntimeError(answer)
        return answer

    def close(self):
        self.conn.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Indices:
    """The index queue of the worker. Another epoch of a worker that stays begins with a message in it."""

    def __init__(self, queue, samples):
        self.queue, self.samples = queue, samples

    def get(self, *args, **kwargs):
        try:
            message = self.queue.get(*args, **kwargs)
        except queue.Empty:
            # PyTorch compares the number of the parent with that at the begin of the loop, which is another one if the parent had ended by then.
            if not multiprocessing.process.parent_process().is_alive():
                sys.exit(1)
            raise
        if type(message).__name__ == "_ResumeIteration":
            self.samples.epoch += 1
        return message

    def __getattr__(self, name):
        return getattr(self.queue, name)


def original(dataset):
    """A copy of the data set as it is now, of the class that the script has given it. In a spawned process the names of the script's own
    classes are those of __mp_main__, and the Go program knows that."""
    import copy

    own = copy.copy(dataset)
    own.__class__ = type(dataset).__mro__[1]
    return own


def over(dataset, samples):
    """Makes the samples of a data set come from Go: by a class of its own, because Python looks for these methods in the class."""

    def numbers(self, indices):
        return samples.ask("batch", [int(i) for i in indices])

    def number(self, index):
        try:
            one = operator.index(index)
        except TypeError:  # a batch of them
            return numbers(self, index)
        return samples.ask("get", [one])[0]

    def one_by_one(self):
        samples.ask("begin")
        n, most = 1, 16
        while batch := samples.ask("next", n):
            yield from batch
            n = min(2 * n, most)

    cls = type(dataset)
    methods = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    if samples.kind == 1:
        methods["__iter__"] = one_by_one
    else:
        methods["__getitem__"], methods["__getitems__"] = number, numbers
    dataset.__class__ = type(cls.__name__, (cls,), methods)


def begin(program, flag):
    samples = Samples(program, flag)  # its process starts while Python imports the script
    bootstrap = multiprocessing.process.BaseProcess._bootstrap

    def taken_over(self, *args, **kwargs):
        multiprocessing.process.BaseProcess._bootstrap = bootstrap
        worker = list(self._args)
        dataset = worker[1][0] if isinstance(worker[1], list) else worker[1]  # the list is PyTorch's, from 2.14 on
        samples.begin((worker[0], dataset, worker[8], worker[10], worker[11]))
        over(dataset, samples)
        worker[2] = Indices(worker[2], samples)
        self._args = tuple(worker)
        try:
            return bootstrap(self, *args, **kwargs)
        finally:
            samples.close()

    multiprocessing.process.BaseProcess._bootstrap = taken_over
