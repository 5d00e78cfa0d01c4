package shoal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/goexit"
	"github.com/shoal-mp/shoal/internal/registry"
	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/shm"
)

// self is this process as a worker, or nil if the process was not started by this package. It must
// be initialized before any code of an importing package runs, because initializers may call
// IsWorker.
var self = initWorker()

// A worker is the state of this process as a worker. There is at most one, [self].
type worker struct {
	workerEnv
	control   *os.File
	domain    [2]*os.File    // control and data
	lifelines []*os.File     // of the ancestors; inherited by every descendant
	guarded   sync.WaitGroup // done when ancestors are monitored and SIGINT is caught
	title     *os.File       // process name of a worker without a job; nil if not writable
	seat      int
	job       job
}

// Exit statuses of a worker with a function that failed. The parent uses the reply; the statuses
// are for ps and the shell.
const (
	exitFailed   = 1
	exitPanicked = 2
	exitOrphaned = 3
)

// serveJob receives the job of this process, does it, reports the outcome to the parent, and
// exits. It never returns.
func (w *worker) serveJob() {
	codec.Trust(false)
	registry.Seal()
	if w.warm {
		if err := w.joinEarly(); err != nil {
			w.exit(outcome{Kind: kindUnprepared, Err: err})
		}
	}
	kind, body, err := readFrame(w.control)
	if err != nil {
		os.Exit(exitOrphaned) // the parent has died or given up
	}
	var j job
	if kind == frameJob {
		j, err = decodeControl(jobPlan, body)
	} else {
		err = fmt.Errorf("control frame has kind %d, want a job", kind)
	}
	if err != nil {
		w.exit(outcome{Kind: kindArgument, Err: err})
	}
	w.job = j
	ctx, cancel := context.WithCancelCause(context.Background())
	go w.awaitCancel(cancel)
	ctx, _ = j.Deadline.Context(ctx) // until the process ends
	w.runJob(ctx)
}

// joinInherited joins the inherited domain, sets w.seat, and waits until ancestors are
// monitored.
func (w *worker) joinInherited() (err error) {
	if w.seat, err = joinDomain(w.domain[0], w.domain[1]); err == nil {
		w.guarded.Wait() // do not run user code unmonitored
	}
	return err
}

// joinEarly joins the domain before the job is known, and performs the other steps that are the
// same for all jobs, and then reports to the parent that this process waits for a job.
func (w *worker) joinEarly() error {
	if err := w.joinInherited(); err != nil {
		return err
	}
	w.title, _ = sys.OpenProcessName()
	compilePlans()
	return w.reportReady()
}

// compilePlans compiles the codecs for the arguments of all functions, for reading a job and for
// its outcome, and starts the threads that a job needs. It runs while no other process waits for
// this one.
func compilePlans() {
	for f := range functions.All {
		f.compilePlans()
	}
	j := job{Func: "none", Arg: parcel{Body: []byte{0}}, Parent: currentIdentity()}
	if body, err := encodeControl(jobPlan, j); err == nil {
		decodeControl(jobPlan, body)
	}
	encodeOutcome(outcome{Kind: kindReturned})
	startThreads(2)
}

// startThreads makes the runtime create n threads in addition to the current one, which it keeps:
// one to wait for the control socket, and one for the first goroutine of a job.
func startThreads(n int) {
	var locked sync.WaitGroup
	enough := make(chan struct{})
	for range n {
		locked.Add(1)
		go func() {
			// A locked thread runs no other goroutine, so the next one needs a new thread.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			locked.Done()
			<-enough
		}()
	}
	locked.Wait()
	close(enough)
}

// reportReady tells the parent that this process is ready for the next message. It returns
// [ErrOrphaned] if the parent has ended.
func (w *worker) reportReady() error {
	body, err := encodeControl(readyPlan, ready{w.seat})
	if err != nil {
		return err
	}
	if _, err := w.control.Write(appendFrame(nil, frameReady, body)); err != nil {
		return ErrOrphaned
	}
	return nil
}

// awaitCancel reads control frames until the socket fails. It calls cancel with the parent's reason
// for each cancellation, and with [ErrOrphaned] when the socket fails, usually because the parent
// has ended. It blocks, so it should run in its own goroutine.
func (w *worker) awaitCancel(cancel context.CancelCauseFunc) {
	for {
		kind, body, err := readFrame(w.control)
		if err != nil {
			cancel(ErrOrphaned)
			return
		}
		if kind == frameCancel {
			c, err := decodeControl(cancellationPlan, body)
			cancel(&cancelled{errors.Join(c.Cause, err)})
		}
	}
}

// cancelled is the cause of a worker's context: it wraps the cause that its parent sent, and
// context.Canceled.
type cancelled struct{ error }

func (c *cancelled) Unwrap() []error { return []error{c.error, context.Canceled} }

// goexited is the outcome of a function that has neither returned nor panicked.
var goexited = outcome{Kind: kindPanicked, Text: goexit.Err.Error()}

// runJob does the job w.job on the main goroutine with ctx as its function's context, reports
// the outcome, and exits. It never returns. The deferred function runs even if the job calls
// runtime.Goexit.
func (w *worker) runJob(ctx context.Context) {
	o := goexited
	defer func() {
		if v := recover(); v != nil {
			o = panicOutcome(v, debug.Stack())
		}
		w.exit(o)
	}()
	o = w.performJob(ctx)
}

func (w *worker) performJob(ctx context.Context) outcome {
	// The seed must be set before the argument is decoded, which may draw random numbers.
	seed.Process.Set(w.job.Seed)
	f, ok := functions.Get(w.job.Func)
	if !ok {
		return outcome{Kind: kindNotRegistered}
	}
	if err := w.prepareProcess(); err != nil {
		return outcome{Kind: kindUnprepared, Err: err}
	}
	run, err := f.prepareTask(w.job.Arg)
	if err != nil {
		return outcome{Kind: kindArgument, Err: err}
	}
	if err := w.reportReady(); err != nil {
		return outcome{Kind: kindReturned, Err: err}
	}
	return outcome{Kind: kindReturned, Err: run(ctx, w.job.Rank)}
}

// prepareProcess sets up this process for the job: it joins the domain, unless it has already,
// and sets niceness and processors.
func (w *worker) prepareProcess() error {
	if w.warm {
		w.applyOptions()
	} else if err := w.joinInherited(); err != nil {
		return err
	}
	if n := w.job.Nice; n != 0 {
		if err := sys.SetNice(n); err != nil {
			return err
		}
	}
	if cpus := w.job.CPUs; len(cpus) > 0 {
		if err := sys.SetAffinity(cpus...); err != nil {
			return err
		}
		addProcessors()
	}
	return nil
}

// applyOptions sets the properties that other workers get at their start: the process name, as far
// as possible, and the number of threads.
func (w *worker) applyOptions() {
	os.Args[0] = processTitle(w.job.Func, w.job.Rank)
	// This fails with os.ErrInvalid if w.title is nil.
	w.title.WriteString(strings.TrimPrefix(os.Args[0], titlePrefix))
	w.title.Close()
	if n := max(w.job.Threads, 1); n != w.threads {
		w.threads = n
		runtime.GOMAXPROCS(n)
		for _, kv := range budgetEnv(n) {
			key, value, _ := strings.Cut(kv, "=")
			os.Setenv(key, value)
		}
	}
}

// panicOutcome returns the outcome for v, a recovered value, and the stack from debug.Stack.
func panicOutcome(v any, stack []byte) outcome {
	o := outcome{Kind: kindPanicked, Stack: panicStack(stack)}
	if err, ok := v.(error); ok {
		o.Err = err
	}
	o.Text = "panic: " + textOf(v)
	return o
}

// textOf returns the printed text of v. If its Error or String method panics, it returns a text
// that says so.
func textOf(v any) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprintf("%T: its Error or String method panicked", v)
		}
	}()
	switch v := v.(type) {
	case error:
		return v.Error()
	case string:
		return v
	}
	return fmt.Sprint(v)
}

// exit ends the processes that this one has started, leaves the domain, reports the outcome o to
// the parent, and exits with the status for it. It never returns.
func (w *worker) exit(o outcome) {
	shutDownProcess()
	w.control.Write(appendFrame(nil, frameDone, encodeOutcome(o)))
	switch {
	case !o.isFailed():
		os.Exit(0)
	case o.Kind == kindPanicked:
		os.Exit(exitPanicked)
	}
	os.Exit(exitFailed)
}

// maxText is the maximum length of the text of an error that cannot be encoded.
const maxText = 64 << 10

// encodeOutcome returns the body of a frame with the outcome. It never fails: if the error is
// too long, cannot be encoded, or has methods that panic, the message contains its truncated
// text instead.
func encodeOutcome(o outcome) []byte {
	if body, err := tryEncode(o); err == nil {
		return body
	}
	if o.Err != nil {
		o.Err = errors.New(truncateText(textOf(o.Err)))
	}
	o.Text, o.Stack = truncateText(o.Text), truncateText(o.Stack)
	body, err := tryEncode(o)
	if err != nil {
		body, _ = tryEncode(outcome{Kind: kindPanicked, Text: "encode outcome: " + err.Error()})
	}
	return body
}

func tryEncode(o outcome) (body []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return encodeControl(outcomePlan, o)
}

// truncateText returns s, or if it is longer than [maxText] bytes, its beginning and the number
// of omitted bytes.
func truncateText(s string) string {
	if len(s) <= maxText {
		return s
	}
	return fmt.Sprintf("%s… (%d more bytes)", s[:maxText], len(s)-maxText)
}

// Register the sentinels, so that they keep their identity in other processes.
func init() {
	codec.RegisterError("shoal.ErrMemoryInUse", ErrMemoryInUse)
	codec.RegisterError("shoal.ErrPanic", ErrPanic)
	codec.RegisterError("shoal.ErrExited", ErrExited)
	codec.RegisterError("shoal.ErrOOM", ErrOOM)
	codec.RegisterError("shoal.ErrNoMain", ErrNoMain)
	codec.RegisterError("shoal.ErrNotRegistered", ErrNotRegistered)
	codec.RegisterError("shoal.ErrArgument", ErrArgument)
	codec.RegisterError("shoal.ErrOrphaned", ErrOrphaned)
	codec.RegisterError("shoal.ErrInterrupted", ErrInterrupted)
	codec.RegisterError("shoal.ErrAbandoned", ErrAbandoned)
	codec.RegisterError("shoal.ErrStartMethod", ErrStartMethod)
	codec.RegisterError("shoal.ErrClosed", ErrClosed)
	codec.RegisterError("shm.ErrVersion", shm.ErrVersion)
}
