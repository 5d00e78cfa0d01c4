package shoal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/shoal-mp/shoal/wire"
)

// self is this process as a worker, nil in a process that was not started by this package. It is set before anything of a package
// that imports this one runs: its initialisers may ask IsWorker.
var self = adopt()

// A worker is this process, seen from inside.
type worker struct {
	mark
	control   *os.File
	domain    [2]*os.File    // control and data
	lifelines []*os.File     // of the ancestors, passed on to every descendant
	guarded   sync.WaitGroup // until ancestors are watched and SIGINT is caught
}

// Exit statuses of a worker whose function did not return nil. The starter goes by the reply; these are for ps and the shell.
const (
	exitFailed   = 1
	exitPanicked = 2
	exitOrphaned = 3
)

// serve does the job that this process was started for, and never returns.
func (w *worker) serve() {
	functions.seal()
	kind, body, err := readFrame(w.control)
	if err != nil {
		os.Exit(exitOrphaned) // the starter has died, or given up
	}
	var j job
	if kind == frameJob {
		j, err = decode(jobPlan, body)
	} else {
		err = fmt.Errorf("control frame of kind %d instead of a job", kind)
	}
	if err != nil {
		w.end(outcome{Kind: kindArgument, Err: err})
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go w.listen(cancel)
	w.run(ctx, j)
}

// listen waits for the end of the parent, which is also what a lifeline that hung up looks like, and for a cancellation.
func (w *worker) listen(cancel context.CancelCauseFunc) {
	for {
		kind, body, err := readFrame(w.control)
		if err != nil {
			cancel(ErrOrphaned)
			return
		}
		if kind == frameCancel {
			c, err := decode(cancellationPlan, body)
			cancel(&cancelled{errors.Join(c.Cause, err)})
		}
	}
}

// cancelled is the cause that a worker sees: what its starter said, and always a context.Canceled.
type cancelled struct{ error }

func (c *cancelled) Unwrap() []error { return []error{c.error, context.Canceled} }

// run does the job, on the main goroutine, and exits. The deferred call is reached however the function ends,
// by runtime.Goexit, too.
func (w *worker) run(ctx context.Context, j job) {
	o := outcome{Kind: kindPanicked, Text: "runtime.Goexit ended the function"}
	defer func() {
		if v := recover(); v != nil {
			o = panicked(v, debug.Stack())
		}
		w.end(o)
	}()
	o = w.perform(ctx, j)
}

func (w *worker) perform(ctx context.Context, j job) outcome {
	f, ok := functions.get(j.Func)
	if !ok {
		return outcome{Kind: kindNotRegistered}
	}
	slot, err := joinDomain(w.domain[0], w.domain[1])
	if err != nil {
		return outcome{Kind: kindArgument, Err: err}
	}
	w.guarded.Wait() // nothing that was asked for runs unwatched
	run, err := f.prepare(j.Arg)
	if err != nil {
		return outcome{Kind: kindArgument, Err: err}
	}
	holding, err := encode(readyPlan, ready{slot})
	if err != nil {
		return outcome{Kind: kindArgument, Err: err}
	}
	if _, err := w.control.Write(appendFrame(nil, frameReady, holding)); err != nil {
		return outcome{Kind: kindReturned, Err: ErrOrphaned}
	}
	return outcome{Kind: kindReturned, Err: run(ctx, j.Rank)}
}

// panicked describes what was recovered.
func panicked(v any, stack []byte) outcome {
	o := outcome{Kind: kindPanicked, Stack: panicStack(stack)}
	if err, ok := v.(error); ok {
		o.Err = err
	}
	o.Text = "panic: " + textOf(v)
	return o
}

// textOf prints a value whose methods may panic.
func textOf(v any) (s string) {
	defer func() {
		if p := recover(); p != nil {
			s = fmt.Sprintf("a %T whose text panics", v)
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

// end tells the outcome, leaves and exits.
func (w *worker) end(o outcome) {
	groups.close()
	leaveDomain()
	w.control.Write(appendFrame(nil, frameDone, encodeOutcome(o)))
	switch {
	case !o.failed():
		os.Exit(0)
	case o.Kind == kindPanicked:
		os.Exit(exitPanicked)
	}
	os.Exit(exitFailed)
}

// maxText is how much is sent of the text of an error that does not cross as it is.
const maxText = 64 << 10

// encodeOutcome always finds something to send: an error may be too long, or panic when asked for its text.
func encodeOutcome(o outcome) []byte {
	if body, err := tryEncode(o); err == nil {
		return body
	}
	if o.Err != nil {
		o.Err = errors.New(cut(textOf(o.Err)))
	}
	o.Text, o.Stack = cut(o.Text), cut(o.Stack)
	body, err := tryEncode(o)
	if err != nil {
		body, _ = tryEncode(outcome{Kind: kindPanicked, Text: "outcome cannot be encoded: " + err.Error()})
	}
	return body
}

func tryEncode(o outcome) (body []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return encode(outcomePlan, o)
}

// cut shortens a text.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return fmt.Sprintf("%s… (%d more bytes)", s[:maxText], len(s)-maxText)
}

// Sentinels of this package keep their identity through any number of processes.
func init() {
	for name, err := range map[string]error{
		"shoal.ErrPanic":         ErrPanic,
		"shoal.ErrExited":        ErrExited,
		"shoal.ErrOOM":           ErrOOM,
		"shoal.ErrNoMain":        ErrNoMain,
		"shoal.ErrNotRegistered": ErrNotRegistered,
		"shoal.ErrArgument":      ErrArgument,
		"shoal.ErrOrphaned":      ErrOrphaned,
		"shoal.ErrClosed":        ErrClosed,
	} {
		wire.RegisterError(name, err)
	}
}
