package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// Note [Being started by Python]
// After torch.multiprocessing.set_executable("program") every process of a spawn context is our program with the arguments that a
// Python interpreter would get: see Note [Starting Python]. So are the helpers that multiprocessing starts for itself; those are
// Python code, for which the program becomes the interpreter that started it.

// A Child says what a program does when Python starts it.
type Child struct {
	// Functions are what Process(target=…) may name: by the target's name in Python, "module.function", where module is
	// "__main__" for what the user's script defines. The arguments may be what Conn.Recv returns, *Queue, *Semaphore, *Condition,
	// *Event and *Record. An error, or a panic, is printed and ends the process with status 1.
	Functions map[string]func(ctx context.Context, args Tuple, kwargs *Dict) error
	// Datasets and Streams are what the workers of a DataLoader serve: see OpenDataset and OpenStream.
	Datasets map[string]OpenDataset
	Streams  map[string]OpenStream
}

// dataLoaderWorker is the target of the workers of a DataLoader.
const dataLoaderWorker = "torch.utils.data._utils.worker._worker_loop"

// Main returns at once in a program that was started by hand. In one that Python has started, as its interpreter, it does what it
// was started for, and does not return. It comes first in main. As "program --shoal-probe NAME ARGS" it prints how many samples the data set NAME has,
// and what its classes are, as JSON: see Classified.
func (c Child) Main() {
	c.answerProbe()
	code, ok := pythonCode(os.Args)
	if !ok {
		return
	}
	match := regexp.MustCompile(`spawn_main\(.*pipe_handle=(\d+)`).FindStringSubmatch(code)
	if match == nil {
		becomePython(code)
	}
	fd, err := strconv.Atoi(match[1])
	if err == nil {
		err = c.run(os.NewFile(uintptr(fd), "start"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// pythonCode returns the code of python -c, if that is what the arguments are for.
func pythonCode(args []string) (code string, ok bool) {
	at := slices.Index(args, "-c")
	if at < 0 || at+1 >= len(args) || !strings.HasPrefix(args[at+1], "from multiprocessing.") {
		return "", false
	}
	return args[at+1], true
}

// resourceTracker is how the code of one of the helpers begins.
const resourceTracker = "from multiprocessing.resource_tracker "

// becomePython replaces the program by the interpreter that started it. Python starts its resource tracker with those signals blocked that
// it will ignore, so that Ctrl-C does not end it before; Go's runtime unblocks them, so they are ignored from here on.
func becomePython(code string) {
	if strings.HasPrefix(code, resourceTracker) {
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
	}
	python := fmt.Sprintf("/proc/%d/exe", os.Getppid())
	path, err := os.Readlink(python)
	if err == nil {
		err = syscall.Exec(path, append([]string{path}, os.Args[1:]...), os.Environ())
	}
	fmt.Fprintf(os.Stderr, "become the Python of the parent process: %v\n", err)
	os.Exit(1)
}

// run reads what to do, and does it. When the pipe ends the parent has ended, and so does this process.
func (c Child) run(start *os.File) error {
	d := pickle.NewDecoder(start, inertNames, pickle.Limits{})
	first, err := d.Decode()
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	preparation, ok := first.(*Dict)
	if !ok {
		return protocolError("a process is prepared by %T", first)
	}
	second, err := d.Decode()
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		io.Copy(io.Discard, start)
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
	return c.call(ctx, second, Options{AuthKey: keyBytes})
}

// inertNames lets all names be in what the parent says: nothing in it runs.
func inertNames(g Global) (pickle.Constructor, bool) {
	construct := allowed()[g]
	return construct, true
}

// call runs the target of a process object.
func (c Child) call(ctx context.Context, process any, opts Options) error {
	o, ok := process.(*pickle.Object)
	if !ok {
		return protocolError("a process is %T", process)
	}
	state, _ := o.State.(*Dict)
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
	list, _ := args.(Tuple)
	named, _ := kwargs.(*Dict)
	name, _ := target.(Global)
	if name.String() == dataLoaderWorker {
		return c.loaderWorker(ctx, list)
	}
	f := c.Functions[name.String()]
	if f == nil {
		return fmt.Errorf("the program has no function %q; Child.Functions has those that it has", name)
	}
	return f(ctx, list, named)
}

// inherited makes what only the arguments of a process have: queues, locks, events, and records of all that is not known.
func (i *importer) inherited(o *pickle.Object) (v any, ok bool, err error) {
	switch o.Class.String() {
	case "multiprocessing.queues.Queue", "multiprocessing.queues.SimpleQueue", "torch.multiprocessing.queue.Queue", "torch.multiprocessing.queue.SimpleQueue":
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

// wrapped reads the state {'conn': Connection} of what torch's own Queue has instead of a Connection.
func (i *importer) wrapped(o *pickle.Object) (any, error) {
	state, err := i.Lift(o.State)
	if err != nil {
		return nil, err
	}
	d, _ := state.(*Dict)
	v, _ := d.Get("conn")
	c, ok := v.(*Conn)
	if !ok {
		return nil, protocolError("a ConnectionWrapper of %T", v)
	}
	return c, nil
}

// inheritedOrFetched takes a descriptor: one that this process was born with, or one that is promised.
func (i *importer) inheritedOrFetched(df *pickle.Object) (*os.File, error) {
	if fd, ok := i.inheritedFD(df); ok {
		return os.NewFile(uintptr(fd), "inherited"), nil
	}
	return i.fetch(df)
}

// inheritedFD is the number of a descriptor that this process was born with.
func (i *importer) inheritedFD(df *pickle.Object) (fd int, ok bool) {
	if df.Class != inheritedFD || !i.child {
		return 0, false
	}
	state, _ := df.State.(*Dict)
	number, _ := state.Get("fd")
	n, ok := number.(int64)
	return int(n), ok && n >= 3 && n <= 1<<20
}
