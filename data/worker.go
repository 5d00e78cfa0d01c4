package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
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

// A worker runs fetchRequests one at a time. It is made by [newWorker]. Only one goroutine may
// use it at a time.
type worker struct {
	workerConfig
	id         int
	ds         Dataset
	stream     Stream
	collate    *Collate
	transform  Transform
	structured bool // samples are values instead of plain Samples
	rules      tree.Rules
	scratch    *tensor.Tensor // see allocateRaw
	opened     io.Closer      // the result of Open, if it has a Close method
	current    sampleContext
	parent     context.Context
	ctx        context.Context // parent with the sampleContext
	loop       loopContext
	readers    map[int]*reader // open parts of a Stream
	track      *trace.Track
	idle       time.Time // begin of the idle time, on the track
	shown      *arena.Track
	then       arena.Activity // activity after a load
}

// newWorker makes worker id and opens its Dataset or Stream. The caller must close the worker.
// It returns an error if the Collate is not registered, or if Open fails or returns something
// else.
func newWorker(ctx context.Context, s workerConfig, id int) (*worker, error) {
	w := &worker{workerConfig: s, id: id, readers: make(map[int]*reader), track: s.trackOf(id),
		shown: s.Timeline.beginTrack(1 + s.Track + id), then: arena.Idle}
	defer func(begin time.Time) { w.idle = w.recordSpan("open", begin) }(w.track.Now())
	w.current.info = Info{ID: id, Workers: s.Workers, Seed: s.Seed, Dataset: userValue(s.Source)}
	if s.Collate != "" {
		var ok bool
		if w.collate, ok = collates.Get(s.Collate); !ok {
			return nil, fmt.Errorf("data: Collate %q is not registered in the worker: call RegisterCollate in a "+
				"package that it imports",
				s.Collate)
		}
	}
	w.transform, _ = s.Transform.(Transform)
	if o, ok := s.Source.(Opener); ok {
		err := recoverPanic(func() (err error) {
			w.Source, err = o.Open(w.current.withContext(ctx))
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("data: open the data set in worker %d: %w", id, err)
		}
		w.opened, _ = w.Source.(io.Closer)
	}
	w.current.info.Dataset = userValue(w.Source)
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
	w.recordWait()
	w.shown.Turn(arena.Finished, 0, time.Now())
	var errs []error
	for _, r := range w.readers {
		errs = append(errs, r.close())
	}
	if w.opened != nil {
		errs = append(errs, recoverPanic(w.opened.Close))
	}
	return errors.Join(errs...)
}

// A loopContext is the context of a loop over the Loader in a worker process. Consecutive requests
// of a loop share it, because a Stream is read in the context of its first request.
type loopContext struct {
	pool     context.Context // context of the pool's calls
	deadline sys.Deadline
	ctx      context.Context // pool with the deadline
	cancel   context.CancelFunc
}

// loopContext returns ctx with the deadline of a loop, or ctx itself if by is 0. The context is
// the same for consecutive calls with equal arguments, and is canceled by a call with others.
func (w *worker) loopContext(ctx context.Context, by sys.Deadline) context.Context {
	l := &w.loop
	if l.pool == ctx && l.deadline == by {
		return l.ctx
	}
	if l.cancel != nil {
		l.cancel()
	}
	*l = loopContext{pool: ctx, deadline: by, ctx: ctx}
	if by != 0 {
		l.ctx, l.cancel = by.Context(ctx)
	}
	return l.ctx
}

// runRequest loads the samples or the batch that a request asks for. Errors, including cancellation
// of ctx, are returned in out.Bad, by sample.
func (w *worker) runRequest(ctx context.Context, o fetchRequest) (out fetchResult) {
	begin := time.Now()
	w.shown.Turn(arena.Working, o.Batch, begin)
	start := w.recordWait()
	if ctx != w.parent {
		w.parent, w.ctx = ctx, w.current.withContext(ctx)
	}
	w.current.info.Epoch = o.Epoch
	switch {
	case o.Part.Count > 0:
		out = w.read(o)
	case o.Into != nil:
		out.Bad = w.fill(o)
	default:
		out = w.makeBatch(o)
	}
	out.Worker, out.Took = w.id, time.Since(begin)
	if w.shown != nil {
		out.Began = w.Timeline.Clock(begin)
	}
	w.shown.Turn(w.then, o.Batch, begin.Add(out.Took))
	w.idle = w.recordSpan("load", start)
	return out
}

// fill writes samples to their rows, with Gather if possible. If Gather fails, it loads the samples
// one by one, and returns the ones that fail.
func (w *worker) fill(o fetchRequest) (bad []failed) {
	if g, ok := w.gatherer(); ok && recoverPanic(func() error { return w.gatherRows(g, o.Indices, o.Into) }) == nil {
		return nil
	}
	for k, i := range o.Indices {
		if err := w.writeRow(i, o.Into, k, o.Like); err != nil {
			bad = append(bad, failed{k, err})
			if !w.Skip {
				break
			}
		}
	}
	return bad
}

// gatherer returns the Dataset as a [Gatherer]. ok is false if it is none or has structured
// samples, so that the worker must load and copy samples.
func (w *worker) gatherer() (g Gatherer, ok bool) {
	g, ok = w.ds.(Gatherer)
	return g, ok && !w.structured
}

// writeRow loads sample i and writes it to a row of into. The error wraps [ErrShape] if the
// sample does not have the structure like or the layout of the row.
func (w *worker) writeRow(i int, into Batch, row int, like string) error {
	g, ok := w.gatherer()
	if !ok {
		s, err := w.get(i)
		if err == nil && s.spec != like {
			err = shapeError(tree.Differ(s.spec, like))
		}
		if err != nil {
			return err
		}
		return recoverPanic(func() error { return into.copyToRow(row, s.Sample) })
	}
	one := into.viewRows(row, 1)
	defer closeAll(one)
	return w.retry(func() error { return w.gatherRows(g, []int{i}, one) })
}

// copyToRow copies a sample to a row. It returns an error that wraps [ErrShape] if the sample does
// not fit.
func (b Batch) copyToRow(row int, s Sample) error {
	if err := b.checkSample(s); err != nil {
		return err
	}
	for k, t := range s {
		if err := copyRow(b[k], row, t); err != nil {
			return err
		}
	}
	return nil
}

// copyRow copies t to a row of dst. The caller must have checked that t has the dtype, device
// and shape of a row.
func copyRow(dst *tensor.Tensor, row int, t *tensor.Tensor) error {
	if dst.Device() == nil && dst.IsContiguous() && t.IsContiguous() { // without a view, which costs more
		n := t.Nbytes()
		copy(tensor.Bytes(dst)[row*n:(row+1)*n], tensor.Bytes(t))
		runtime.KeepAlive(t)
		dst.Touch()
		return nil
	}
	to := dst.Select(0, row)
	to.CopyFrom(t)
	return to.Close()
}

// checkSample returns an error that wraps [ErrShape] unless a sample has the dtypes, shapes and
// devices of the rows.
func (b Batch) checkSample(s Sample) error {
	if len(s) != len(b) {
		return fmt.Errorf("%w: got %d fields, want %d as in the first sample of the batch", ErrShape, len(s), len(b))
	}
	for k, t := range s {
		if t.DType() != b[k].DType() || t.Device() != b[k].Device() || !slices.Equal(t.Shape(), b[k].Shape()[1:]) {
			return fmt.Errorf("%w: field %d: got shape %v of %v on %v, want shape %v of %v on %v as in the first "+
				"sample of the batch",
				ErrShape, k, t.Shape(), t.DType(), tensor.Place{Device: t.Device()}, b[k].Shape()[1:],
				b[k].DType(), tensor.Place{Device: b[k].Device()})
		}
	}
	return nil
}

// get loads sample i of the data set and applies the Transform. It repeats both up to Retries times
// after an error. A panic is returned as an error that wraps shoal.ErrPanic.
func (w *worker) get(i int) (s sample, err error) {
	err = w.retry(func() error {
		w.current.setSample(i)
		begin := w.track.Now()
		var v any
		if w.structured {
			v, err = Value(w.ctx, w.ds, i)
		} else {
			s.Sample, err = w.ds.Get(w.ctx, i)
		}
		if w.recordSpan("fetch", begin); err == nil {
			s, err = w.prepareSample(s.Sample, v)
		}
		return err
	})
	return s, err
}

// prepareSample makes a sample of a plain Sample or, if w.structured is set, of the value v, and
// applies the Transform. The error wraps [ErrSample] if no batch can be made of it.
func (w *worker) prepareSample(plain Sample, v any) (s sample, err error) {
	s = sample{Sample: plain}
	if w.structured {
		flat, err := tree.Flatten(v, w.rules)
		if err != nil {
			return sample{}, notASample(err)
		}
		s = sample{Sample: flat.Tensors, spec: flat.Spec}
	}
	if w.collate != nil && w.collate.values {
		if s.value = v; v == nil {
			s.value = plain
		}
	}
	if err := s.checkValid(); err != nil {
		return sample{}, err
	}
	if w.transform != nil {
		err = w.transformFirst(&s)
	}
	return s, err
}

// retry calls f until it succeeds, at most 1+Retries times, and returns the last error. It does
// not repeat f after the end of w.ctx. A panic of f becomes an error that wraps shoal.ErrPanic.
func (w *worker) retry(f func() error) error {
	err := recoverPanic(f)
	for n := 0; err != nil && n < w.Retries && w.ctx.Err() == nil; n++ {
		err = recoverPanic(f)
	}
	return err
}

// recoverPanic calls f. If f panics, it returns an error that wraps shoal.ErrPanic, as for a panic
// that ends a process.
func recoverPanic(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%w: %v\n%s", shoal.ErrPanic, v, debug.Stack())
		}
	}()
	return f()
}

// makeBatch loads samples and makes a batch of the good ones. Samples that fail are listed in
// out.Bad; unless w.Skip is set, the first of them ends loading, and there is no batch.
func (w *worker) makeBatch(o fetchRequest) (out fetchResult) {
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
	w.joinSamples(&out, samples, at)
	return out
}

// joinSamples sets the batch of a result, unless there are no samples. at[k] is the position of
// samples[k] in the request. If no batch can be made, it adds the sample at fault to out.Bad.
func (w *worker) joinSamples(out *fetchResult, samples []sample, at []int) {
	if len(samples) == 0 {
		return
	}
	defer w.recordSpan("collate", w.track.Now())
	err := recoverPanic(func() (err error) {
		out.Batch, out.Spec, err = w.joinBatch(samples)
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

// joinBatch makes a batch of at least one sample with the Collate or the default, and returns it
// with its structure. The caller must close it. The error may be a [*tree.RowError] with the
// sample at fault.
func (w *worker) joinBatch(samples []sample) (b Batch, spec string, err error) {
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
	b, err = stack(plain, w.Shared)
	return b, "", err
}
