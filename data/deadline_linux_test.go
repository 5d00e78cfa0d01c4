package data_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
	"github.com/shoal-mp/shoal/wire"
)

// Timed is a set of samples with the deadline of their context, on the monotonic clock, or 0. From
// sample Waits on, Get waits for the end of its context and counts that in Ended.
type Timed struct {
	N     int
	Waits int
	Began *tensor.Tensor // int64, in shared memory
	Ended *tensor.Tensor
}

func init() {
	wire.RegisterType[*Timed]("test.timed")
	wire.RegisterType[*timedRows]("test.timedRows")
	wire.RegisterType[*timedStream]("test.timedStream")
}

func newTimed(t *testing.T, n, waits int) *Timed {
	s := &Timed{N: n, Waits: waits}
	for _, p := range []**tensor.Tensor{&s.Began, &s.Ended} {
		*p = testutil.Must(tensor.NewShared(tensor.Int64, 1))
		t.Cleanup(func() { (*p).Close() })
	}
	return s
}

func (s *Timed) Len() int { return s.N }

func (s *Timed) Get(ctx context.Context, i int) (data.Sample, error) {
	if i < s.Waits {
		return data.Sample{tensor.FromSlice([]int64{int64(sys.DeadlineOf(ctx)), int64(os.Getpid())}, 2)}, nil
	}
	tensor.Data[int64](s.Began)[0] = 1
	<-ctx.Done()
	tensor.Data[int64](s.Ended)[0] = 1
	return nil, context.Cause(ctx)
}

// timedRows is Timed with a Gather.
type timedRows struct{ Timed }

func (s *timedRows) Gather(ctx context.Context, indices []int, into data.Batch) error {
	for k := range indices {
		row := tensor.Data[int64](into[0])[2*k:]
		row[0], row[1] = int64(sys.DeadlineOf(ctx)), int64(os.Getpid())
	}
	return nil
}

// timedStream reads the samples of Timed, and counts the reads of its parts.
type timedStream struct {
	Timed
	Opens *tensor.Tensor
}

func (s *timedStream) Samples(ctx context.Context, p data.Part) iter.Seq2[data.Sample, error] {
	return func(yield func(data.Sample, error) bool) {
		tensor.Data[int64](s.Opens)[p.Index]++
		for i := p.Index; i < s.N; i += p.Count {
			if !yield(s.Get(ctx, i)) {
				return
			}
		}
	}
}

// The deadline of an epoch's context is the deadline of Get, Gather and Samples, in goroutines and
// in processes.
func TestDeadline_IsThatOfTheEpoch(t *testing.T) {
	opens := testutil.Must(tensor.NewShared(tensor.Int64, 2))
	defer opens.Close()
	for name, source := range map[string]any{
		"get": newTimed(t, 24, 24), "gather": &timedRows{*newTimed(t, 24, 24)},
		"stream": &timedStream{*newTimed(t, 24, 24), opens},
	} {
		for _, kind := range []data.Kind{data.Goroutines, data.Processes} {
			o := data.Options{BatchSize: 4, Workers: 2, Kind: kind, Persistent: true}
			l := newTimedLoader(source, o)
			tensor.Data[int64](opens)[0] = 0
			for _, left := range []time.Duration{time.Hour, 0, 2 * time.Hour} {
				checkDeadlines(t, name, l, left, kind == data.Processes)
			}
			// a part is opened once in each epoch, not for each request
			if n := tensor.Data[int64](opens)[0]; name == "stream" && n != 3 {
				t.Errorf("kind %d: a part was opened %d times in 3 epochs", kind, n)
			}
			l.Close()
		}
	}
}

func newTimedLoader(source any, o data.Options) *data.Loader {
	if s, ok := source.(data.Stream); ok {
		o.Parts = 2
		return data.NewStreamLoader(s, o)
	}
	return data.NewLoader(source.(data.Dataset), o)
}

// checkDeadlines reads an epoch whose context ends after the given time, or never.
func checkDeadlines(t *testing.T, name string, l *data.Loader, left time.Duration, apart bool) {
	t.Helper()
	ctx := t.Context()
	if left > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	samples := 0
	for b, err := range l.Batches(ctx) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		samples += b[0].Dim(0)
		for k := range b[0].Dim(0) {
			row := tensor.Data[int64](b[0])[2*k:]
			got, pid := time.Duration(row[0]), int(row[1])
			if apart == (pid == os.Getpid()) {
				t.Errorf("%s: sample from process %d, consumer %d", name, pid, os.Getpid())
			}
			if left == 0 && got != 0 {
				t.Errorf("%s: deadline %v without one", name, got)
			}
			want := time.Duration(sys.DeadlineOf(ctx))
			if left > 0 && max(got-want, want-got) > time.Second {
				t.Errorf("%s: deadline %v, want %v", name, got, want)
			}
		}
		b.Close()
	}
	if samples != 24 {
		t.Errorf("%s: %d samples, want 24", name, samples)
	}
}

// A Get in a worker process that waits for its context ends with the deadline, and the epoch's
// error is that of the consumer's context. The loader goes on with the next epoch.
func TestDeadline_EndsGetInProcesses(t *testing.T) {
	s := newTimed(t, 8, 0)
	l := data.NewLoader(s, data.Options{BatchSize: 4, Workers: 2, Kind: data.Processes, Persistent: true})
	defer l.Close()
	want := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, want)
	defer cancel()
	for _, err := range l.Batches(ctx) {
		if err != want {
			t.Errorf("got %v, want the cause of the context", err)
		}
	}
	awaitCount(t, s.Ended)
}

// The worker's context is canceled when the consumer's context is, and when the consumer breaks
// out. A later epoch has the right samples: memory that a canceled worker may still write to is not
// used again.
func TestDeadline_CancellationReachesProcesses(t *testing.T) {
	s := newTimed(t, 64, 60)
	l := data.NewLoader(s, data.Options{BatchSize: 4, Workers: 2, Kind: data.Processes, Persistent: true})
	defer l.Close()
	for _, breaks := range []bool{false, true} {
		tensor.Data[int64](s.Began)[0], tensor.Data[int64](s.Ended)[0] = 0, 0
		ctx, cancel := context.WithCancelCause(t.Context())
		want, batches := errors.New("enough"), 0
		for b, err := range l.Epoch(ctx, 0) {
			if err != nil && (breaks || err != want) {
				t.Fatalf("got %v, want %v", err, want)
			}
			if err != nil {
				break
			}
			b.Close()
			if batches++; batches == 12 {
				awaitCount(t, s.Began)
				if breaks {
					break
				}
				cancel(want)
			}
		}
		awaitCount(t, s.Ended)
		cancel(nil)
	}
}

// awaitCount waits until a worker has written to a tensor in shared memory.
func awaitCount(t *testing.T, c *tensor.Tensor) {
	t.Helper()
	testutil.Eventually(t, func() bool { return tensor.Data[int64](c)[0] != 0 }, "no worker has written")
}
