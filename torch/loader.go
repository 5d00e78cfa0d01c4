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

// A Worker describes a DataLoader worker to the function that opens its data set.
type Worker struct {
	ID      int            // from 0
	Workers int            // the number of workers
	Seed    int64          // of this worker, derived from PyTorch's base seed
	Args    *python.Dict   // shoal_args of the Python data set, or its public attributes
	Object  *python.Record // the Python data set with all its attributes; nil while probed
	Trial   bool           // a stream is opened for its first sample only, which checks its options

	// Row returns the batch and the row to which a stream may write its next sample, which saves a
	// copy. A tensor of the sample must then be a view of that row. The batch is nil if there is no
	// such row.
	Row func() (into data.Batch, row int)
}

// Keywords stores [Worker.Args] in the struct that dst points to, by the tags of its fields; see
// [As]. A field without an attribute keeps its value. The error wraps [ErrUnsupported], and names
// an attribute that has no field or another type than its field.
func (w Worker) Keywords(dst any) error {
	if err := assign(dst, w.Args); err != nil {
		return fmt.Errorf("decode the data set's attributes: %w", err)
	}
	return nil
}

// These are the positions of the arguments of PyTorch's _worker_loop that this package uses:
// https://github.com/pytorch/pytorch/blob/v2.9.0/torch/utils/data/_utils/worker.py.
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
	argPersistent
	argSharedSeed
	argState // of torchdata's loop: see Note [StatefulDataLoader]

	kindStream = 1 // a value of argKind: _DatasetKind.Iterable
)

var (
	resumeIteration  = named("torch.utils.data._utils.worker._ResumeIteration")
	endOfStream      = named("torch.utils.data._utils.worker._IterableDatasetStopIteration")
	exceptionWrapper = named("torch._utils.ExceptionWrapper")
)

// A loaderWorker serves the batches of one DataLoader worker. [Child.newLoaderWorker] makes it.
// One goroutine may use it at a time.
type loaderWorker struct {
	Worker
	info             data.Info
	indices, results Queue
	done             Event
	collate          bool    // the index is a list, and the samples are collated
	own              Collate // the Collate that replaces the collate_fn, or nil
	ownName          string
	collator         Collator                         // the data set as a Collator, used if own is nil
	columns          func(samples []any) (any, error) // collates a list of samples if batch_size=None, or nil
	script           scriptFiles                      // see Note [Descriptors of the script]
	sources, labeled int                              // the number of data sets, and of those with labels
	into             data.Batch                       // the batch of a stream that is being filled, or nil
	row              int                              // its next row
	tolerance        *Tolerant                        // the policy for samples that fail, or nil
	raw              bool                             // samples are for Python: see Note [Samples for Python]
	rows             bool                             // Python collates the samples of this request
	dropLast         bool
	fetch            func(ctx context.Context, index any) (any, error)
	open             func(ctx context.Context) error // sets fetch; called again for each epoch of a stream
	like             data.Sample                     // a sample with the shapes of the last Gatherer batch
	ended            bool                            // the stream has ended in this epoch
	stop             func() error                    // ends the stream or closes the data set
	position         *position                       // of a worker of a StatefulDataLoader, or nil
}

// errStreamEnds is returned by fetch at the end of a stream.
var errStreamEnds = errors.New("end of the stream")

func (c Child) loaderWorker(ctx context.Context, args python.Tuple, stateful bool) error {
	w, err := c.newLoaderWorker(args)
	if err != nil {
		return err
	}
	var failed error
	if stateful {
		failed = w.restorePosition(args)
	}
	exitOnSignals()
	w.trackParent()
	if err := w.serve(ctx, failed); err != nil {
		return err
	}
	if over, err := w.done.IsSet(ctx); over || err != nil {
		regions.dropReferences()
		return err // the DataLoader has shut down and will not fetch pending batches
	}
	return c.drainMessages(ctx)
}

// serve answers the DataLoader's requests until it sends None, and then closes the data set. If
// failed is not nil, serve does not open the data set, and the script gets that error. The
// returned error is one of the connection, of a malformed request, or of closing the data set.
func (w *loaderWorker) serve(ctx context.Context, failed error) error {
	if failed == nil {
		failed = w.recoverPanic(func() error { return w.open(ctx) })
	}
	for {
		message, err := w.indices.Get(ctx)
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case nil: // the final message
			return w.stop()
		case *python.Record:
			failed = w.answerControl(ctx, m, failed)
		case python.Tuple:
			if len(m) != 2 {
				return protocolError("request of a DataLoader has %d parts, want 2", len(m))
			}
			over, err := w.done.IsSet(ctx)
			if err != nil {
				return err
			}
			if over || w.ended {
				continue
			}
			if err := w.sendBatch(ctx, m[0], m[1], failed); err != nil {
				return err
			}
			failed = nil
		default:
			return protocolError("request of a DataLoader is %T, want a tuple, a resume message or None", message)
		}
	}
}

// exitOnSignals makes SIGTERM and SIGINT end the process with status 0, like a PyTorch worker.
// Pending work may be dropped at that point. It returns at once and must be called once.
func exitOnSignals() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-ended
		regions.dropReferences() // so that the names disappear when the script closes the batches
		os.Exit(0)
	}()
}

func (c Child) newLoaderWorker(args python.Tuple) (*loaderWorker, error) {
	if len(args) <= argWorkers {
		return nil, protocolError("DataLoader worker has %d arguments, too few", len(args))
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
			err = errors.Join(err, fmt.Errorf("argument %d of the DataLoader worker: %w", part.at, failed))
		}
	}
	w.ownName = functionName(args[argCollate])
	w.own = c.Collates[w.ownName]
	if what := c.needsPython(args); what != "" {
		err = errors.Join(err, unsupported("%s cannot run in a Go worker", what))
	}
	w.ID, w.Workers = int(id), int(workers)
	w.Row = func() (data.Batch, int) { return w.into, w.row }
	w.info = data.Info{ID: w.ID, Workers: w.Workers, Seed: uint64(w.Seed)}
	w.Seed += id
	if err == nil {
		tensor.ManualSeed(uint64(w.Seed)) // as PyTorch's worker does
	}
	return w, err
}

// answerControl answers a message that is no request for a batch: the start of an epoch, or of a
// worker of a StatefulDataLoader. failed is the pending error of the worker. It returns the
// error that the next request for a batch must report, or nil.
func (w *loaderWorker) answerControl(ctx context.Context, m *python.Record, failed error) error {
	switch {
	case m.Class == resumeIteration:
		return w.startEpoch(ctx, m)
	case m.Class == ackStartup && w.position != nil:
		return w.sendAck(ctx, m, failed)
	}
	return protocolError("message of a DataLoader has class %s, want a resume message", m.Class)
}

// startEpoch starts the next epoch of a persistent worker and acknowledges the request m. It
// returns the error that the next request for a batch must report, or nil.
func (w *loaderWorker) startEpoch(ctx context.Context, m *python.Record) error {
	w.ended = false
	w.info.Epoch++
	if w.position != nil {
		return w.sendAck(ctx, m, w.recoverPanic(func() error { return w.open(ctx) }))
	}
	back := newInstance(m.Class, m.State)
	if err := w.results.Put(ctx, python.Tuple{back, nil}); err != nil {
		return err
	}
	return w.recoverPanic(func() error { return w.open(ctx) })
}

// sendBatch fetches the batch for index and sends it under number, or the exception that
// prevented it. If failed is not nil, that is the exception, and nothing is fetched. The
// returned error is one of the connection or of a malformed request, and ends the worker.
func (w *loaderWorker) sendBatch(ctx context.Context, number, index any, failed error) error {
	var batch any
	var snapshot bool
	err := failed
	if w.position != nil {
		var malformed error
		if index, snapshot, malformed = splitRequest(index); malformed != nil {
			return malformed
		}
	}
	if err == nil {
		err = w.recoverPanic(func() (err error) { batch, err = w.fetch(ctx, index); return err })
	}
	switch {
	case err == errStreamEnds:
		w.ended = true
		batch = newInstance(endOfStream, python.NewDict("worker_id", w.ID))
	case err != nil:
		batch = w.wrapException(err)
	}
	defer CloseAll(batch)
	if w.position == nil {
		return w.results.Put(ctx, python.Tuple{number, batch})
	}
	var delta any
	if snapshot && err == nil || w.ended {
		delta = w.deltaState()
	}
	return w.results.Put(ctx, python.Tuple{number, python.Tuple{batch, w.ID, delta}})
}

// wrapException returns the ExceptionWrapper that makes PyTorch raise the error in the training
// process.
func (w *loaderWorker) wrapException(err error) *pickle.Object {
	return newInstance(exceptionWrapper, python.NewDict(
		"exc_type", named("builtins.RuntimeError"), "exc_msg", "error in Go: "+err.Error(),
		"where", fmt.Sprintf("in DataLoader worker process %d", w.ID)))
}

// recoverPanic calls f, which runs user code, and returns its error. It converts a panic into an
// error with its stack.
func (w *loaderWorker) recoverPanic(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
