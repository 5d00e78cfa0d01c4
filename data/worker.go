package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/tensor"
)

// A station is what a worker needs to know, once.
type station struct {
	Loader    uint64 // number of the Loader in its process
	Source    any    // a Dataset or a Stream
	First     int    // ID of the first worker
	Workers   int
	Seed      uint64
	Retries   int
	Skip      bool   // go on after a sample that failed
	Single    bool   // batches of one sample, without a dimension for the batch
	Collate   string // name, empty for the default
	Transform any    // nil, or a Transform
	Shared    bool   // batches that the worker makes
	Debug     bool
}

// An order is what a worker is to do at once: some samples, for rows of a batch or to make a batch of.
type order struct {
	Epoch   int
	Indices []int
	Into    Batch // as many rows; nil for a batch of the worker's making
	Part    Part  // of a Stream: instead of Indices, the N samples after the first From
	From, N int
}

// An outcome is what came of an order.
type outcome struct {
	Batch  Batch // unless Into was given
	Bad    []failed
	Read   int  // samples of a Stream
	End    bool // the part is over
	Print  uint64
	Worker int
	Kind   Kind
	Took   time.Duration
}

// A failed is a sample that could not be loaded.
type failed struct {
	At  int // in the order
	Err error
}

// A worker does orders, one after the other.
type worker struct {
	station
	id        int
	ds        Dataset
	stream    Stream
	collate   *Collate
	transform Transform
	scratch   *tensor.Tensor // see raw
	opened    io.Closer      // what Open returned, if it is to be closed
	work      work
	parent    context.Context
	ctx       context.Context // parent with work
	readers   map[int]*reader // of a Stream, by part
}

// newWorker opens what a worker reads.
func newWorker(ctx context.Context, s station, id int) (*worker, error) {
	w := &worker{station: s, id: id, readers: make(map[int]*reader)}
	w.work.info = Info{ID: id, Workers: s.Workers, Seed: s.Seed}
	if s.Collate != "" {
		var ok bool
		if w.collate, ok = collates.Get(s.Collate); !ok {
			return nil, fmt.Errorf("data: Collate %q is not registered in the worker", s.Collate)
		}
	}
	w.transform, _ = s.Transform.(Transform)
	if o, ok := s.Source.(Opener); ok {
		opened, err := o.Open(w.work.in(ctx))
		if err != nil {
			return nil, fmt.Errorf("data: open the data set in worker %d: %w", id, err)
		}
		w.Source = opened
		w.opened, _ = opened.(io.Closer)
	}
	w.ds, _ = w.Source.(Dataset)
	w.stream, _ = w.Source.(Stream)
	if w.ds == nil && w.stream == nil {
		return nil, fmt.Errorf("data: Open returned a %T, which is neither a Dataset nor a Stream", w.Source)
	}
	return w, nil
}

// close ends what the worker has opened.
func (w *worker) close() error {
	for _, r := range w.readers {
		r.stop()
	}
	if w.opened == nil {
		return nil
	}
	return w.opened.Close()
}

// do does an order.
func (w *worker) do(ctx context.Context, o order) (out outcome) {
	begin := time.Now()
	if ctx != w.parent {
		w.parent, w.ctx = ctx, w.work.in(ctx)
	}
	w.work.info.Epoch = o.Epoch
	switch {
	case o.Part.Count > 0:
		out = w.read(o)
	case o.Into != nil:
		out.Bad = w.fill(o)
	default:
		out = w.make(o)
	}
	out.Worker, out.Took = w.id, time.Since(begin)
	return out
}

// fill writes samples to their rows.
func (w *worker) fill(o order) (bad []failed) {
	if g, ok := w.ds.(Gatherer); ok && w.try(func() error { return w.gather(g, o.Indices, o.Into) }) == nil {
		return nil
	}
	for k, i := range o.Indices {
		if err := w.row(i, o.Into, k); err != nil {
			bad = append(bad, failed{k, err})
			if !w.Skip {
				break
			}
		}
	}
	return bad
}

// row writes one sample to a row.
func (w *worker) row(i int, into Batch, row int) error {
	g, ok := w.ds.(Gatherer)
	if !ok {
		s, err := w.get(i)
		if err != nil {
			return err
		}
		return w.try(func() error { return into.put(row, s) })
	}
	one := into.rows(row, 1)
	defer closeAll(one)
	return w.again(func() error { return w.gather(g, []int{i}, one) })
}

// get loads a sample and transforms it.
func (w *worker) get(i int) (s Sample, err error) {
	err = w.again(func() error {
		w.work.begin(i)
		if s, err = w.ds.Get(w.ctx, i); err == nil {
			if err = s.sound(); err == nil {
				s, err = w.transformed(s)
			}
		}
		return err
	})
	return s, err
}

// again calls f until it succeeds, but no more often than Retries allow.
func (w *worker) again(f func() error) error {
	err := w.try(f)
	for n := 0; err != nil && n < w.Retries && w.ctx.Err() == nil; n++ {
		err = w.try(f)
	}
	return err
}

// try makes of a panic the error that it is where it ends a process.
func (w *worker) try(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v\n%s", shoal.ErrPanic, v, debug.Stack())
		}
	}()
	return f()
}

// make loads samples and makes a batch of those that are good.
func (w *worker) make(o order) (out outcome) {
	var samples []Sample
	var at []int // where each stands in the order
	for k, i := range o.Indices {
		s, err := w.get(i)
		if err != nil {
			out.Bad = append(out.Bad, failed{k, err})
			if !w.Skip {
				return out
			}
			continue
		}
		samples, at = append(samples, s), append(at, k)
	}
	w.join(&out, samples, at)
	return out
}

// join makes the batch of an outcome.
func (w *worker) join(out *outcome, samples []Sample, at []int) {
	if len(samples) == 0 {
		return
	}
	err := w.try(func() (err error) {
		switch {
		case w.collate != nil:
			if out.Batch, err = w.collate.f(w.ctx, samples); err == nil {
				err = w.collate.check(out.Batch)
			}
		case w.Single:
			out.Batch, err = convert(samples[0], w.Shared)
		default:
			out.Batch, err = Stack(samples, w.Shared)
		}
		return err
	})
	if err == nil {
		return
	}
	out.Batch = nil
	k := 0
	if row := (*rowError)(nil); errors.As(err, &row) {
		k, err = row.row, row.err
	}
	out.Bad = append(out.Bad, failed{at[k], err})
}
