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
	"strings"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/goexit"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// Note [Being started by Python] After torch.multiprocessing.set_executable("program"), Python
// starts the program in place of its interpreter, with the interpreter's arguments, for every
// process of a spawn context: see Note [Starting Python]. This includes the helper processes of
// multiprocessing itself and of libraries built on it. If the program does not serve a process, it
// replaces itself by the Python interpreter: see Note [Handing over to Python].

// A Child configures how a program serves the processes that Python starts with it.
type Child struct {
	// Functions are the targets of Process(target=…) by their Python names "module.function". The
	// module of a function in the user's script is "__main__". The arguments may be any values that
	// [Conn.Recv] returns, and [Queue], [Semaphore], [Cond], [Event] and *[python.Record]. If the
	// function returns an error, it is printed and the process exits with status 1; a panic exits
	// with status 2.
	Functions map[string]func(ctx context.Context, args python.Tuple, kwargs *python.Dict) error
	// Datasets and Streams are the data sets that DataLoader workers serve, by the names that
	// Python uses for them.
	Datasets map[string]OpenDataset
	Streams  map[string]OpenStream
	// Linger is the longest time that a process waits after its function has returned, until other
	// processes have fetched the tensors it sent; 0 means one minute. After Linger the process
	// exits with status 1 and reports on stderr which tensors are lost. A DataLoader worker waits
	// only while the DataLoader still requests batches.
	Linger time.Duration
	// ValueStreams are streams of samples with any structure, by name.
	ValueStreams map[string]OpenValueStream
	// Collates make the batches of a DataLoader in place of its collate_fn, by the name of that
	// function in the form of Functions. The collate_fn itself is never called. PyTorch's
	// default_collate and default_convert need no entry. With any other collate_fn, and with a
	// worker_init_fn, the worker hands over to Python, which requests its samples from another
	// process of this program: see docs/torch.md.
	Collates map[string]Collate
	// Labeled contains the names of the Datasets and Streams with samples that consist of tensors
	// and the index of a class. Where Python gets single samples, such an index, which is an int64
	// tensor without dimensions, is an int, as in the data sets of torchvision.
	Labeled map[string]bool
}

// dataLoaderWorker is the target of DataLoader worker processes:
// https://github.com/pytorch/pytorch/blob/v2.9.0/torch/utils/data/_utils/worker.py.
const dataLoaderWorker = "torch.utils.data._utils.worker._worker_loop"

// Main serves the process that Python started this program for, and then exits; if the Child has no
// entry for it, Main replaces the program by the Python interpreter. In a program that was started
// in any other way, Main returns immediately. It must be the first call in the main function.
//
// The command "program --shoal-probe NAME ARGS" makes Main print, as JSON, the number of samples of
// the data set NAME and the names of its classes. A data set should implement Classes() []string if
// it has such names.
func (c Child) Main() {
	serve := c.serverFor(os.Args)
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

// serverFor returns the function that serves this process according to its command line. It returns
// nil if Python did not start the program and no internal flag is given.
func (c Child) serverFor(args []string) func() error {
	if code, ok := pythonCode(args); ok {
		return func() error { return c.serveCode(code) }
	}
	switch {
	case len(args) > 1 && args[1] == probeFlag:
		return func() error { return c.probe(context.Background(), os.Stdout, args[2:]) }
	case len(args) == 3 && args[1] == samplesFlag:
		return func() error { return c.runSampleServer(args[2]) }
	}
	return nil
}

// pythonCode returns the argument of python -c if the command line is one of an interpreter that
// imports a function and calls it. ok is false for any other command line.
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

// serveCode serves the process that Python would run with the given code, and returns the error
// of its function. If Go does not serve the process, serveCode replaces the program by the
// Python interpreter and returns only if that fails.
func (c Child) serveCode(code string) error {
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
	// most do not; decoding may take long
	if !s.mentionsAny(c.targetNames()...) || !s.mentionsAny(c.identifyingNames()...) {
		return s.handOverToPython()
	}
	preparation, process, err := s.decode()
	if err == nil && c.servesTarget(process) {
		switch args := loaderArgs(process); {
		case c.needsPython(args) == "":
			return c.run(s, preparation, process)
		case c.mentionsRegistered(args[argDataset]):
			return s.handOverLoader()
		default: // Python can load these samples itself, with the user's code
			printReasonOnce(args, c.needsPython(args))
		}
	}
	if err == nil {
		c.printUnknownLoop(process)
	}
	if err != nil && s.mentionsAny(datasetName) {
		fmt.Fprintln(os.Stderr, "Python loads the samples of a Go data set, because Go cannot decode the worker's "+
			"arguments:", err)
	}
	return s.handOverToPython()
}

// servesTarget reports whether Go runs the target of process, the decoded process object of the
// start message.
func (c Child) servesTarget(process any) bool {
	o, _ := process.(*pickle.Object)
	if o == nil {
		return false
	}
	state, _ := o.State.(*python.Dict)
	v, _ := state.Get("_target")
	target, _ := v.(python.Global)
	if workerLoop(process) == "" {
		return c.Functions[target.String()] != nil
	}
	return c.loadsSamples(loaderArgs(process))
}

// loaderArgs returns the arguments of a DataLoader worker as they are in the pickle of its process
// object. It returns nil for any other process.
func loaderArgs(process any) python.Tuple {
	if workerLoop(process) == "" {
		return nil
	}
	state, _ := process.(*pickle.Object).State.(*python.Dict)
	v, _ := state.Get("_args")
	args, _ := v.(python.Tuple)
	return args
}

// printUnknownLoop prints on stderr the name of a worker loop that this package does not know,
// if the process object has a Go data set among its arguments. Python has no samples for such a
// data set. For any other process object it does nothing.
func (c Child) printUnknownLoop(process any) {
	o, _ := process.(*pickle.Object)
	if o == nil || workerLoop(process) != "" {
		return
	}
	state, _ := o.State.(*python.Dict)
	target, _ := state.Get("_target")
	args, _ := state.Get("_args")
	if name := functionName(target); strings.HasSuffix(name, "._worker_loop") && mentionsGoDataset(args) {
		fmt.Fprintf(os.Stderr, "Python loads the samples of a Go data set, because Go does not know the worker "+
			"loop %s: "+
			"use the DataLoader of PyTorch or the StatefulDataLoader of torchdata\n", name)
	}
}

// run runs the target of a process object and returns its error. The end of the start pipe means
// that the parent has ended; a goroutine then exits the process with status 1.
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
	return c.callTarget(ctx, process, Options{AuthKey: keyBytes})
}

// inertNames allows every name in the parent's pickles: the bool is always true, and the
// constructor is nil for a name that is not in allowed. This is safe because the decoder
// represents unknown names as data and executes none.
func inertNames(g python.Global) (pickle.Constructor, bool) {
	construct := allowed()[g]
	return construct, true
}

// callTarget decodes the arguments of a process object, calls its target, and drains the
// messages that the target has sent. The target must be a worker loop of a DataLoader or one of
// c.Functions.
func (c Child) callTarget(ctx context.Context, process any, opts Options) error {
	o, ok := process.(*pickle.Object)
	if !ok {
		return protocolError("process object is %T, want a pickled object", process)
	}
	state, _ := o.State.(*python.Dict)
	i := &importer{ctx: ctx, opts: opts, child: true}
	i.beginMessage()
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
	if loop := workerLoop(process); loop != "" {
		return c.loaderWorker(ctx, list, loop == statefulWorkerLoop)
	}
	return errors.Join(c.Functions[name.String()](ctx, list, named), c.drainMessages(ctx))
}

// decodeInherited decodes objects that are valid only in the arguments of a process: queues,
// locks, events, conditions, and records of unknown classes. ok is false, and o is not decoded,
// if its class is one that any message may contain.
func (i *importer) decodeInherited(o *pickle.Object) (v any, ok bool, err error) {
	switch o.Class.String() {
	case "multiprocessing.queues.Queue", "multiprocessing.queues.SimpleQueue",
		"torch.multiprocessing.queue.Queue", "torch.multiprocessing.queue.SimpleQueue":
		v, err = i.decodeQueue(o)
	case "torch.multiprocessing.queue.ConnectionWrapper":
		v, err = i.decodeWrapper(o)
	case "multiprocessing.synchronize.Lock", "multiprocessing.synchronize.RLock",
		"multiprocessing.synchronize.Semaphore", "multiprocessing.synchronize.BoundedSemaphore":
		v, err = i.decodeSemaphore(o)
	case "multiprocessing.synchronize.Event":
		v, err = i.decodeEvent(o)
	case "multiprocessing.synchronize.Condition":
		v, err = i.decodeCondition(o)
	default:
		if _, known := allowed()[o.Class]; known {
			return nil, false, nil
		}
		v, err = i.Record(o)
	}
	return v, true, err
}

// decodeWrapper returns the *[Conn] in the ConnectionWrapper that torch.multiprocessing.Queue
// uses in place of a Connection, with the state {'conn': Connection}:
// https://github.com/pytorch/pytorch/blob/v2.9.0/torch/multiprocessing/queue.py.
func (i *importer) decodeWrapper(o *pickle.Object) (any, error) {
	state, err := i.Lift(o.State)
	if err != nil {
		return nil, err
	}
	d, _ := state.(*python.Dict)
	v, _ := d.Get("conn")
	c, ok := v.(*Conn)
	if !ok {
		return nil, protocolError("ConnectionWrapper holds %T, want a connection", v)
	}
	return c, nil
}

// openDescriptor returns the descriptor that df stands for: an inherited one, or one that it
// fetches from the resource sharer of its sender. The caller must close the file.
func (i *importer) openDescriptor(df *pickle.Object) (*os.File, error) {
	if fd, ok := i.inheritedFD(df); ok {
		return os.NewFile(uintptr(fd), "inherited"), nil
	}
	return i.fetch(df)
}

// inheritedFD returns the number of the descriptor that this process has inherited for df. ok is
// false if df is no inherited descriptor, if its number is invalid, or if the message does not
// come from the Python that started this process.
func (i *importer) inheritedFD(df *pickle.Object) (fd int, ok bool) {
	if df.Class != inheritedFD || !i.child {
		return 0, false
	}
	state, _ := df.State.(*python.Dict)
	number, _ := state.Get("fd")
	n, ok := number.(int64)
	return int(n), ok && n >= 3 && n <= 1<<20
}
