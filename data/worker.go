package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/tree"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/trace"
)

// A workerConfig is sent to each worker at start.
type workerConfig struct {
	Loader    uint64 // ID of the Loader in its process
	Source    any    // a Dataset or a Stream
	First     int    // ID of the first worker
	Workers   int
	Seed      uint64
	Retries   int
	Skip      bool   // continue after a failed sample
	Single    bool   // batches of one sample, without a batch dimension
	Collate   string // name; empty for the default
	Transform any    // nil, or a Transform
	Shared    bool   // workers make batches in shared memory
	Debug     bool
	Ragged    map[string]tree.Rule
	Trace     *trace.Trace
	Timeline  *timeline
	Track     int // first worker's track on the timeline
}

// A worker runs fetchRequests sequentially.
type worker struct {
	workerConfig
	id         int
	ds         Dataset
	stream     Stream
	collate    *Collate
	transform  Transform
	structured bool // samples are values instead of plain Samples
	rules      tree.Rules
	scratch    *tensor.Tensor // see raw
	opened     io.Closer      // the result of Open, if it has a Close method
	current    sampleContext
	parent     context.Context
	ctx        context.Context // parent with the sampleContext
	readers    map[int]*reader // open parts of a Stream
	track      *trace.Track
	idle       time.Time // begin of the idle time, on the track
	shown      *arena.Track
	then       arena.Activity // activity after a load
}

// newWorker makes a worker and opens its Dataset or Stream.
func newWorker(ctx context.Context, s workerConfig, id int) (*worker, error) {
	w := &worker{workerConfig: s, id: id, readers: make(map[int]*reader), track: s.trackOf(id),
		shown: s.Timeline.show(1 + s.Track + id), then: arena.Idle}
	defer func(begin time.Time) { w.idle = w.span("open", begin) }(w.track.Now())
	w.current.info = Info{ID: id, Workers: s.Workers, Seed: s.Seed, Dataset: given(s.Source)}
	if s.Collate != "" {
		var ok bool
		if w.collate, ok = collates.Get(s.Collate); !ok {
			return nil, fmt.Errorf("data: Collate %q is not registered in the worker: call RegisterCollate in a package that it imports",
				s.Collate)
		}
	}
	w.transform, _ = s.Transform.(Transform)
	if o, ok := s.Source.(Opener); ok {
		err := recovered(func() (err error) {
			w.Source, err = o.Open(w.current.in(ctx))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("data: open the data set in worker %d: %w", id, err)
		}
		w.opened, _ = w.Source.(io.Closer)
	}
	w.current.info.Dataset = given(w.Source)
	w.structured = hasValues(w.Source) || len(s.Ragged) > 0
	w.rules = tree.NewRules(s.Ragged)
	w.ds, _ = w.Source.(Dataset)
	w.stream, _ = w.Source.(Stream)
	if w.ds == nil && w.stream == nil {
		return nil, fmt.Errorf("data: Open returned %T, want a Dataset or a Stream", w.Source)
	}
	return w, nil
}

// close closes the open parts, and the result of Open.
func (w *worker) close() error {
	w.waited()
	w.shown.Turn(arena.Finished, 0, time.Now())
	var errs []error
	for _, r := range w.readers {
		errs = append(errs, r.close())
	}
	if w.opened != nil {
		errs = append(errs, recovered(w.opened.Close))
	}
	return errors.Join(errs...)
}

// do runs a request.
func (w *worker) do(ctx context.Context, o fetchRequest) (out fetchResult) {
	begin := time.Now()
	w.shown.Turn(arena.Working, o.Batch, begin)
	start := w.waited()
	if ctx != w.parent {
		w.parent, w.ctx = ctx, w.current.in(ctx)
	}
	w.current.info.Epoch = o.Epoch
	switch {
	case o.Part.Count > 0:
		out = w.read(o)
	case o.Into != nil:
		out.Bad = w.fill(o)
	default:
		out = w.make(o)
	}
	out.Worker, out.Took = w.id, time.Since(begin)
	if w.shown != nil {
		out.Began = w.Timeline.Clock(begin)
	}
	w.shown.Turn(w.then, o.Batch, begin.Add(out.Took))
	w.idle = w.span("load", start)
	return out
}

// fill writes samples to their rows, with Gather if possible. If Gather fails, it loads the samples
// one by one, and returns the ones that fail.
func (w *worker) fill(o fetchRequest) (bad []failed) {
	if g, ok := w.gatherer(); ok && recovered(func() error { return w.gather(g, o.Indices, o.Into) }) == nil {
		return nil
	}
	for k, i := range o.Indices {
		if err := w.row(i, o.Into, k, o.Like); err != nil {
			bad = append(bad, failed{k, err})
			if !w.Skip {
				break
			}
		}
	}
	return bad
}

// gatherer returns the Dataset if it writes rows itself.
func (w *worker) gatherer() (g Gatherer, ok bool) {
	g, ok = w.ds.(Gatherer)
	return g, ok && !w.structured
}

// row writes one sample to a row.
func (w *worker) row(i int, into Batch, row int, like string) error {
	g, ok := w.gatherer()
	if !ok {
		s, err := w.get(i)
		if err == nil && s.spec != like {
			err = shapeError(tree.Differ(s.spec, like))
		}
		if err != nil {
			return err
		}
		return recovered(func() error { return into.put(row, s.Sample) })
	}
	one := into.rows(row, 1)
	defer closeAll(one)
	return w.again(func() error { return w.gather(g, []int{i}, one) })
}

// get loads a sample and applies the Transform.
func (w *worker) get(i int) (s sample, err error) {
	err = w.again(func() error {
		w.current.begin(i)
		begin := w.track.Now()
		var v any
		if w.structured {
			v, err = Value(w.ctx, w.ds, i)
		} else {
			s.Sample, err = w.ds.Get(w.ctx, i)
		}
		if w.span("fetch", begin); err == nil {
			s, err = w.prepared(s.Sample, v)
		}
		return err
	})
	return s, err
}

// again calls f until it succeeds, at most 1+Retries times.
func (w *worker) again(f func() error) error {
	err := recovered(f)
	for n := 0; err != nil && n < w.Retries && w.ctx.Err() == nil; n++ {
		err = recovered(f)
	}
	return err
}

// recovered calls f. If f panics, it returns an error that wraps shoal.ErrPanic, as for a panic
// that ends a process.
func recovered(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v\n%s", shoal.ErrPanic, v, debug.Stack())
		}
	}()
	return f()
}

// make loads samples and makes a batch of the good ones.
func (w *worker) make(o fetchRequest) (out fetchResult) {
	var samples []sample
	var at []int // positions in the request
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

// join makes the batch of a result. If that fails, it adds the sample at fault to out.Bad.
func (w *worker) join(out *fetchResult, samples []sample, at []int) {
	if len(samples) == 0 {
		return
	}
	defer w.span("collate", w.track.Now())
	err := recovered(func() (err error) {
		out.Batch, out.Spec, err = w.joined(samples)
		return err
	})
	if err == nil {
		out.Like = samples[0].spec
		return
	}
	out.Batch = nil
	k := 0
	if row := (*tree.RowError)(nil); errors.As(err, &row) {
		k, err = row.Row, row.Err
	}
	out.Bad = append(out.Bad, failed{at[k], err})
}

// joined makes a batch with the Collate or the default.
func (w *worker) joined(samples []sample) (b Batch, spec string, err error) {
	switch {
	case w.collate != nil:
		return w.collate.make(w.ctx, samples)
	case w.Single:
		b, err = convert(samples[0].Sample, w.Shared)
		return b, samples[0].spec, err
	case w.structured:
		return stackValues(samples, w.rules, w.Shared)
	}
	plain := make([]Sample, len(samples))
	for k, s := range samples {
		plain[k] = s.Sample
	}
	b, err = Stack(plain, w.Shared)
	return b, "", err
}
