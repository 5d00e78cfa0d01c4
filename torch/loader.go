package torch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// A Worker tells the function that opens a data set about its worker of a DataLoader.
type Worker struct {
	ID      int            // from 0
	Workers int            // how many workers there are
	Seed    int64          // of this worker, from PyTorch's base seed
	Args    *python.Dict   // shoal_args of the data set in Python, or its attributes except the name and private ones
	Object  *python.Record // the data set in Python, with all of its attributes; nil when it is probed
}

// Keywords stores Args in the struct at dst, by the tags of its fields, as As does. The error wraps
// ErrUnsupported and names an attribute without a field, or one of another type. A field whose
// attribute is missing keeps its value.
func (w Worker) Keywords(dst any) error {
	if err := assign(dst, w.Args); err != nil {
		return fmt.Errorf("the attributes of the data set in Python: %w", err)
	}
	return nil
}

// These are the places of the arguments of PyTorch's _worker_loop that this package reads.
const (
	argKind = iota
	argDataset
	argIndices
	argResults
	argDone
	argAutoCollate
	argCollate
	argDropLast
	argBaseSeed
	argInit
	argWorker
	argWorkers

	kindStream = 1 // of argKind
)

var (
	resumeIteration  = named("torch.utils.data._utils.worker._ResumeIteration")
	endOfStream      = named("torch.utils.data._utils.worker._IterableDatasetStopIteration")
	exceptionWrapper = named("torch._utils.ExceptionWrapper")
)

// A loaderWorker serves the batches of one worker.
type loaderWorker struct {
	Worker
	info             data.Info
	indices, results Queue
	done             Event
	collate          bool    // indices are lists, and the samples become batches
	own              Collate // in place of default_collate
	ownName          string
	collator         Collator                         // in place of default_collate, if own is nil
	columns          func(samples []any) (any, error) // for a list of samples that becomes no batch; nil: collate
	script           scriptFiles                      // see Note [Descriptors of the script]
	tolerance        *Tolerant                        // of samples that fail; nil if there is none
	raw              bool                             // the samples are for Python: see Note [Samples for Python]
	dropLast         bool
	fetch            func(ctx context.Context, index any) (any, error)
	open             func(ctx context.Context) error // makes fetch, again for each epoch of a stream
	like             data.Sample                     // a sample of the Gatherer's batches so far
	ended            bool                            // the stream has ended in this epoch
	stop             func() error                    // ends the stream, or closes the data set
}

// errStreamEnds is what fetch returns at the end of a stream.
var errStreamEnds = errors.New("the stream ends")

func (c Child) loaderWorker(ctx context.Context, args python.Tuple) error {
	w, err := c.newLoaderWorker(args)
	if err != nil {
		return err
	}
	endQuietly()
	w.follow()
	if err := w.serve(ctx); err != nil {
		return err
	}
	if over, err := w.done.IsSet(ctx); over || err != nil {
		regions.abandon()
		return err // nobody waits for the batches that are under way
	}
	return c.finish(ctx)
}

// serve answers requests until the DataLoader wants no more.
func (w *loaderWorker) serve(ctx context.Context) error {
	failed := w.guarded(func() error { return w.open(ctx) })
	for {
		message, err := w.indices.Get(ctx)
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case nil: // the last message
			return w.stop()
		case *python.Record:
			failed = w.resume(ctx, m)
		case python.Tuple:
			if len(m) != 2 {
				return protocolError("a DataLoader asks for %d parts", len(m))
			}
			over, err := w.done.IsSet(ctx)
			if err != nil {
				return err
			}
			if over || w.ended {
				continue
			}
			if err := w.answer(ctx, m[0], m[1], failed); err != nil {
				return err
			}
			failed = nil
		default:
			return protocolError("a DataLoader asks for %T", message)
		}
	}
}

// endQuietly lets a worker end as PyTorch's workers do when its parent, or the user, terminates it:
// with status 0. The worker holds nothing that another process would miss.
func endQuietly() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-ended
		regions.abandon() // or the names would stay when the script is done with the batches
		os.Exit(0)
	}()
}

func (c Child) newLoaderWorker(args python.Tuple) (*loaderWorker, error) {
	if len(args) <= argWorkers {
		return nil, protocolError("a DataLoader's worker has %d arguments", len(args))
	}
	w := &loaderWorker{stop: func() error { return nil }}
	w.open = func(ctx context.Context) error { return c.openDataset(ctx, w, args) }
	var id, workers int64
	var err error
	for _, part := range []struct {
		at  int
		dst any
	}{
		{argIndices, &w.indices}, {argResults, &w.results}, {argDone, &w.done}, {argAutoCollate, &w.collate},
		{argDropLast, &w.dropLast},
		{argBaseSeed, &w.Seed}, {argWorker, &id}, {argWorkers, &workers},
	} {
		if failed := assign(part.dst, args[part.at]); failed != nil {
			err = errors.Join(err, fmt.Errorf("argument %d of a DataLoader's worker: %w", part.at, failed))
		}
	}
	w.ownName = functionName(args[argCollate])
	w.own = c.Collates[w.ownName]
	if what := c.needsPython(args); what != "" {
		err = errors.Join(err, unsupported("%s in a worker of Go's", what))
	}
	w.ID, w.Workers = int(id), int(workers)
	w.info = data.Info{ID: w.ID, Workers: w.Workers, Seed: uint64(w.Seed)}
	w.Seed += id
	if err == nil {
		tensor.ManualSeed(uint64(w.Seed)) // PyTorch's worker does the same
	}
	return w, err
}

// resume begins another epoch of a worker that stays.
func (w *loaderWorker) resume(ctx context.Context, m *python.Record) error {
	if m.Class != resumeIteration {
		return protocolError("a DataLoader says %s", m.Class)
	}
	w.ended = false
	w.info.Epoch++
	back := withState(m.Class, m.State)
	if err := w.results.Put(ctx, python.Tuple{back, nil}); err != nil {
		return err
	}
	return w.guarded(func() error { return w.open(ctx) })
}

// answer sends the requested batch, or the reason why there is none.
func (w *loaderWorker) answer(ctx context.Context, number, index any, failed error) error {
	var batch any
	err := failed
	if err == nil {
		err = w.guarded(func() (err error) { batch, err = w.fetch(ctx, index); return err })
	}
	switch {
	case err == errStreamEnds:
		w.ended = true
		batch = withState(endOfStream, python.NewDict("worker_id", w.ID))
	case err != nil:
		batch = w.exception(err)
	}
	defer CloseAll(batch)
	return w.results.Put(ctx, python.Tuple{number, batch})
}

// exception makes the exception that PyTorch raises again in the training process.
func (w *loaderWorker) exception(err error) *pickle.Object {
	return withState(exceptionWrapper, python.NewDict(
		"exc_type", named("builtins.RuntimeError"), "exc_msg", "error in Go: "+err.Error(),
		"where", fmt.Sprintf("in DataLoader worker process %d", w.ID)))
}

// guarded makes a panic of the user's data set an error with its stack.
func (w *loaderWorker) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
