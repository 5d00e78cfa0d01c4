package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/pickle"
)

// A Worker is what a data set is told about the worker of a DataLoader that opens it.
type Worker struct {
	ID      int   // from 0
	Workers int   // how many there are
	Seed    int64 // of this worker, from PyTorch's base seed
	Args    *Dict // the attributes of the data set in Python, but for the name
}

// An OpenDataset opens a data set with samples by number. In Python it is any Dataset object that has an attribute
// shoal_dataset with the registered name; its __len__ says how many samples there are, and its __getitem__ is never called.
type OpenDataset func(ctx context.Context, w Worker) (data.Dataset, error)

// An OpenStream begins the samples of an IterableDataset that has an attribute shoal_dataset, those of this worker. It
// is called once for each epoch.
type OpenStream func(ctx context.Context, w Worker) iter.Seq2[data.Sample, error]

// datasetName is the attribute by which Python names a data set of Go's.
const datasetName = "shoal_dataset"

// The places of the arguments of PyTorch's _worker_loop that matter here.
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
	indices, results *Queue
	done             *Event
	collate          bool // indices are lists, and samples become batches
	dropLast         bool
	fetch            func(ctx context.Context, index any) (any, error)
	open             func(ctx context.Context) error // makes fetch; again for each epoch of a stream
	ended            bool                            // the stream, in this epoch
	stop             func()                          // ends the stream
}

func (c Child) loaderWorker(ctx context.Context, args Tuple) error {
	w, err := newLoaderWorker(args)
	if err != nil {
		return err
	}
	endQuietly()
	w.open = func(ctx context.Context) error { return c.openDataset(ctx, w, args) }
	failed := w.guarded(func() error { return w.open(ctx) })
	for {
		message, err := w.indices.Get(ctx)
		if err != nil {
			return err
		}
		switch m := message.(type) {
		case nil: // the last message
			w.close()
			return nil
		case *Record:
			failed = w.resume(ctx, m)
		case Tuple:
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

// endQuietly lets a worker that its parent terminates, or the user with it, end as PyTorch's do: with status 0. It
// holds nothing that others would miss.
func endQuietly() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, os.Interrupt)
	go func() {
		<-ended
		os.Exit(0)
	}()
}

func newLoaderWorker(args Tuple) (*loaderWorker, error) {
	if len(args) <= argWorkers {
		return nil, protocolError("a DataLoader's worker has %d arguments", len(args))
	}
	w := &loaderWorker{stop: func() {}}
	var id, workers int64
	var err error
	for _, part := range []struct {
		at  int
		dst any
	}{
		{argIndices, &w.indices}, {argResults, &w.results}, {argDone, &w.done}, {argAutoCollate, &w.collate}, {argDropLast, &w.dropLast},
		{argBaseSeed, &w.Seed}, {argWorker, &id}, {argWorkers, &workers},
	} {
		if failed := assign(part.dst, args[part.at]); failed != nil {
			err = errors.Join(err, fmt.Errorf("argument %d of a DataLoader's worker: %w", part.at, failed))
		}
	}
	w.ID, w.Workers = int(id), int(workers)
	w.Seed += id
	return w, err
}

// openDataset opens what the attribute of Python's data set names.
func (c Child) openDataset(ctx context.Context, w *loaderWorker, args Tuple) error {
	holder := args[argDataset]
	if list, ok := holder.([]any); ok && len(list) == 1 { // from torch 2.14 on
		holder = list[0]
	}
	record, ok := holder.(*Record)
	if !ok {
		return unsupported("a data set that is %T", holder)
	}
	name, _ := record.Attr(datasetName)
	text, ok := name.(string)
	if !ok {
		return unsupported("the data set %s has no attribute %s with the name of one of Go's", record.Class, datasetName)
	}
	w.Args = new(Dict)
	for k, v := range record.State.(*Dict).All() {
		if k != datasetName {
			w.Args.Set(k, v)
		}
	}
	if args[argKind] == int64(kindStream) {
		return w.openStream(ctx, text, c.Streams[text])
	}
	open := c.Datasets[text]
	if open == nil {
		return fmt.Errorf("this program has no data set %q", text)
	}
	if w.fetch != nil { // persistent workers keep it
		return nil
	}
	ds, err := open(ctx, w.Worker)
	if err != nil {
		return err
	}
	w.fetch = func(ctx context.Context, index any) (any, error) { return w.fetchNumbered(ctx, ds, index) }
	return nil
}

func (w *loaderWorker) openStream(ctx context.Context, name string, open OpenStream) error {
	if open == nil {
		return fmt.Errorf("this program has no stream %q", name)
	}
	w.stop()
	next, stop := iter.Pull2(open(ctx, w.Worker))
	w.stop = stop
	w.fetch = func(_ context.Context, index any) (any, error) { return w.fetchNext(next, index) }
	return nil
}

func (w *loaderWorker) close() { w.stop() }

// resume begins another epoch of a worker that stays.
func (w *loaderWorker) resume(ctx context.Context, m *Record) error {
	if m.Class != resumeIteration {
		return protocolError("a DataLoader says %s", m.Class)
	}
	w.ended = false
	back := withState(m.Class, m.State)
	if err := w.results.Put(ctx, Tuple{back, nil}); err != nil {
		return err
	}
	return w.guarded(func() error { return w.open(ctx) })
}

// answer sends the batch that was asked for, or why there is none.
func (w *loaderWorker) answer(ctx context.Context, number, index any, failed error) error {
	var batch any
	err := failed
	if err == nil {
		err = w.guarded(func() (err error) { batch, err = w.fetch(ctx, index); return err })
	}
	switch {
	case err == io.EOF:
		w.ended = true
		batch = withState(endOfStream, NewDict("worker_id", w.ID))
	case err != nil:
		batch = w.exception(err)
	}
	defer CloseAll(batch)
	return w.results.Put(ctx, Tuple{number, batch})
}

// exception is what PyTorch raises again in the training process.
func (w *loaderWorker) exception(err error) *pickle.Object {
	return withState(exceptionWrapper, NewDict(
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
