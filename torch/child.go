package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/goexit"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// Note [Being started by Python] After torch.multiprocessing.set_executable("program") every
// process of a spawn context is our program, with the arguments of a Python interpreter: see Note
// [Starting Python]. So are the helpers that multiprocessing starts for itself, and those of
// libraries that do the same. A process that the program does not serve becomes Python: see Note
// [Handing over to Python].

// A Child says how a program serves the processes that Python starts with it.
type Child struct {
	// Functions are the targets of Process(target=…), by their names in Python: "module.function",
	// where module is "__main__" for a function of the user's script. The arguments may be what
	// Conn.Recv returns, Queue, Semaphore, Cond, Event and *python.Record. An error is
	// printed and ends the process with status 1; a panic ends it with status 2.
	Functions map[string]func(ctx context.Context, args python.Tuple, kwargs *python.Dict) error
	// Datasets and Streams are the data sets that workers of a DataLoader serve, by the names that
	// Python gives them.
	Datasets map[string]OpenDataset
	Streams  map[string]OpenStream
	// Linger is how long a process whose function has returned waits for others to fetch the
	// tensors that it has sent; 0 stands for a minute. After Linger the process ends with status 1
	// and says on stderr what is lost. The worker of a DataLoader waits only while the DataLoader
	// wants more batches.
	Linger time.Duration
	// ValueStreams are streams whose samples have any structure, by name.
	ValueStreams map[string]OpenValueStream
	// Collates make the batches of a DataLoader whose collate_fn has that name, in the form of the
	// names of Functions. The collate_fn itself is never called. PyTorch's default_collate and
	// default_convert need no entry. With any other collate_fn, and with a worker_init_fn, the
	// worker becomes Python, and gets its samples from another process of this program: see
	// docs/torch.md.
	Collates map[string]Collate
}

// dataLoaderWorker is the target of the workers of a DataLoader.
const dataLoaderWorker = "torch.utils.data._utils.worker._worker_loop"

// Main returns at once in a program that a user has started. In a program that Python has started
// as its interpreter Main does not return: it serves what the Child has, and becomes the
// interpreter for all else. Main comes first in main.
//
// A user may call the program as "program --shoal-probe NAME ARGS". Then Main prints as JSON how
// many samples the data set NAME has, and the names of its classes. The method Classes() []string
// of a data set returns these names.
func (c Child) Main() {
	serve := c.server(os.Args)
	if serve == nil {
		return
	}
	goexit.Call(serve, func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	})
}

// server returns the function that does what the arguments of this process ask for. It returns nil
// if a user has started the process.
func (c Child) server(args []string) func() error {
	if code, ok := pythonCode(args); ok {
		return func() error { return c.do(code) }
	}
	switch {
	case len(args) > 1 && args[1] == probeFlag:
		return func() error { return c.probe(context.Background(), os.Stdout, args[2:]) }
	case len(args) == 3 && args[1] == samplesFlag:
		return func() error { return c.servesSamples(args[2]) }
	}
	return nil
}

// pythonCode returns the code of python -c, if the arguments are those of one that imports a
// function and calls it.
func pythonCode(args []string) (code string, ok bool) {
	at := slices.Index(args, "-c")
	if at < 0 || at+1 >= len(args) || !fromCode.MatchString(args[at+1]) {
		return "", false
	}
	return args[at+1], true
}

var (
	fromCode  = regexp.MustCompile(`^from [\w.]+ import \w+;`)
	spawnMain = regexp.MustCompile(`^from multiprocessing\.spawn import .*spawn_main\(.*pipe_handle=(\d+)`)
)

// do does what that code would do in Python.
func (c Child) do(code string) error {
	match := spawnMain.FindStringSubmatch(code)
	if match == nil {
		return becomePython(code)
	}
	pipe, err := strconv.Atoi(match[1])
	if err != nil {
		return err
	}
	s, err := readStart(code, pipe)
	if err != nil {
		return err
	}
	if !s.mentions(c.targets()...) || !s.mentions(c.words()...) { // most do not; decoding may take long
		return s.handOver()
	}
	preparation, process, err := s.decode()
	if err == nil && c.serves(process) {
		switch args := loaderArgs(process); {
		case c.needsPython(args) == "":
			return c.run(s, preparation, process)
		case c.names(args[argDataset]):
			return s.handOverLoader()
		default: // Python can make the samples, and makes those that the script expects
			tellOnce(args, c.needsPython(args))
		}
	}
	if err != nil && s.mentions(datasetName) {
		fmt.Fprintln(os.Stderr, "a data set of Go's goes to Python, since Go cannot read what comes with it:", err)
	}
	return s.handOver()
}

// serves reports whether Go runs the target of a process object.
func (c Child) serves(process any) bool {
	o, _ := process.(*pickle.Object)
	if o == nil {
		return false
	}
	state, _ := o.State.(*python.Dict)
	v, _ := state.Get("_target")
	target, _ := v.(python.Global)
	if target.String() != dataLoaderWorker {
		return c.Functions[target.String()] != nil
	}
	return c.loads(loaderArgs(process))
}

// loaderArgs returns the arguments of a worker of a DataLoader, as they are in the pickle of its
// process object. It returns nil for another process.
func loaderArgs(process any) python.Tuple {
	o, _ := process.(*pickle.Object)
	if o == nil {
		return nil
	}
	state, _ := o.State.(*python.Dict)
	if target, _ := state.Get("_target"); functionName(target) != dataLoaderWorker {
		return nil
	}
	v, _ := state.Get("_args")
	args, _ := v.(python.Tuple)
	return args
}

// run runs the target of a process object. When the pipe ends the parent has ended, and this
// process ends as well.
func (c Child) run(s *start, preparation *python.Dict, process any) error {
	s.said.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		io.Copy(io.Discard, s.pipe)
		os.Exit(1)
	}()
	if dir, ok := preparation.Get("orig_dir"); ok && dir != nil {
		if err := os.Chdir(fmt.Sprint(dir)); err != nil {
			return fmt.Errorf("start: %w", err)
		}
	}
	key, _ := preparation.Get("authkey")
	keyBytes, _ := key.([]byte)
	processKey = func() []byte { return keyBytes }
	return c.call(ctx, process, Options{AuthKey: keyBytes})
}

// inertNames allows all names in the parent's data: nothing in the data runs.
func inertNames(g python.Global) (pickle.Constructor, bool) {
	construct := allowed()[g]
	return construct, true
}

// call runs the target of a process object.
func (c Child) call(ctx context.Context, process any, opts Options) error {
	o, ok := process.(*pickle.Object)
	if !ok {
		return protocolError("a process is %T", process)
	}
	state, _ := o.State.(*python.Dict)
	i := &importer{ctx: ctx, opts: opts, child: true}
	i.begin()
	get := func(name string) (any, error) {
		v, _ := state.Get(name)
		return i.Lift(v)
	}
	target, err1 := get("_target")
	args, err2 := get("_args")
	kwargs, err3 := get("_kwargs")
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	list, _ := args.(python.Tuple)
	named, _ := kwargs.(*python.Dict)
	name, _ := target.(python.Global)
	if name.String() == dataLoaderWorker {
		return c.loaderWorker(ctx, list)
	}
	return errors.Join(c.Functions[name.String()](ctx, list, named), c.finish(ctx))
}

// inherited makes the objects that only the arguments of a process have: queues, locks, events, and
// records of all unknown classes.
func (i *importer) inherited(o *pickle.Object) (v any, ok bool, err error) {
	switch o.Class.String() {
	case "multiprocessing.queues.Queue", "multiprocessing.queues.SimpleQueue",
		"torch.multiprocessing.queue.Queue", "torch.multiprocessing.queue.SimpleQueue":
		v, err = i.queue(o)
	case "torch.multiprocessing.queue.ConnectionWrapper":
		v, err = i.wrapped(o)
	case "multiprocessing.synchronize.Lock", "multiprocessing.synchronize.RLock",
		"multiprocessing.synchronize.Semaphore", "multiprocessing.synchronize.BoundedSemaphore":
		v, err = i.semaphore(o)
	case "multiprocessing.synchronize.Event":
		v, err = i.event(o)
	case "multiprocessing.synchronize.Condition":
		v, err = i.condition(o)
	default:
		if _, known := allowed()[o.Class]; known {
			return nil, false, nil
		}
		v, err = i.Record(o)
	}
	return v, true, err
}

// wrapped reads the state {'conn': Connection} of torch's own Queue, which has this in place of a
// Connection.
func (i *importer) wrapped(o *pickle.Object) (any, error) {
	state, err := i.Lift(o.State)
	if err != nil {
		return nil, err
	}
	d, _ := state.(*python.Dict)
	v, _ := d.Get("conn")
	c, ok := v.(*Conn)
	if !ok {
		return nil, protocolError("a ConnectionWrapper of %T", v)
	}
	return c, nil
}

// inheritedOrFetched returns a descriptor that this process has inherited, or fetches one that was
// promised.
func (i *importer) inheritedOrFetched(df *pickle.Object) (*os.File, error) {
	if fd, ok := i.inheritedFD(df); ok {
		return os.NewFile(uintptr(fd), "inherited"), nil
	}
	return i.fetch(df)
}

// inheritedFD is the number of a descriptor that this process has inherited.
func (i *importer) inheritedFD(df *pickle.Object) (fd int, ok bool) {
	if df.Class != inheritedFD || !i.child {
		return 0, false
	}
	state, _ := df.State.(*python.Dict)
	number, _ := state.Get("fd")
	n, ok := number.(int64)
	return int(n), ok && n >= 3 && n <= 1<<20
}
