package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
)

// A script is the side of a DataLoader that speaks with one worker, which is in this process as
// well.
type script struct {
	t                *testing.T
	ctx              context.Context // until the worker has ended
	indices, results Queue
	ended            chan error
}

// startWorker starts a worker of child for the data set "set", with the base seed 7.
func startWorker(t *testing.T, child Child, kind, id, workers int64) *script {
	t.Helper()
	return startLoop(t, child, kind, id, workers)
}

// startLoop is startWorker with the further arguments of another worker loop than PyTorch's.
func startLoop(t *testing.T, child Child, kind, id, workers int64, more ...any) *script {
	t.Helper()
	s := &script{t: t, ended: make(chan error, 1)}
	done, err := NewEvent()
	for _, q := range []*Queue{&s.indices, &s.results} {
		if err == nil {
			*q, err = NewSimpleQueue(Options{Strategy: FileDescriptor})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { done.Close(); s.indices.Close(); s.results.Close() })
	s.indices.(*pipeQueue).reader.child, s.results.(*pipeQueue).reader.child = true, true // any name is a record
	set := &python.Record{Class: named("__main__.Set"), State: python.NewDict(datasetName, "set")}
	args := append(python.Tuple{kind, set, s.indices, s.results, done, true, named(defaultCollate),
		false, int64(7), nil, id, workers}, more...)
	w, err := child.newLoaderWorker(args)
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if len(more) > 0 {
		failed = w.restorePosition(args)
	}
	ctx, cancel := context.WithCancelCause(testContext(t))
	s.ctx = ctx
	go func() {
		err := w.serve(ctx, failed)
		cancel(fmt.Errorf("the worker has ended: %w", err))
		s.ended <- err
	}()
	return s
}

// say sends a message and returns the answer to it.
func (s *script) say(message any) any {
	s.t.Helper()
	if err := s.indices.Put(s.ctx, message); err != nil {
		s.t.Fatal(err)
	}
	v, err := s.results.Get(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	return v.(python.Tuple)[1]
}

// batch asks for samples and returns the fields of their batch as numbers.
func (s *script) batch(samples ...int) (fields [][]float64) {
	s.t.Helper()
	return s.fields(s.say(python.Tuple{0, samples}))
}

// fields returns the fields of a batch as numbers, and closes the batch.
func (s *script) fields(v any) (fields [][]float64) {
	s.t.Helper()
	defer CloseAll(v)
	list, ok := v.([]any)
	if !ok {
		s.t.Fatalf("no batch but %v", s.failure(v))
	}
	for _, x := range list {
		fields = append(fields, elements(x.(*tensor.Tensor)))
	}
	return fields
}

// failure is the text of an exception.
func (s *script) failure(v any) string {
	s.t.Helper()
	r, ok := v.(*python.Record)
	if !ok || r.Class != exceptionWrapper {
		s.t.Fatalf("no exception but %v", v)
	}
	text, _ := r.Attr("exc_msg")
	return fmt.Sprint(text)
}

func (s *script) bye() {
	s.t.Helper()
	if err := s.indices.Put(testContext(s.t), nil); err != nil { // the other end closes with the worker
		s.t.Fatal(err)
	}
	if err := <-s.ended; err != nil {
		s.t.Fatal(err)
	}
}

// A drawn data set has random numbers in each sample.
type drawn struct {
	gathers bool
	opened  int
	closed  *int
}

func (d *drawn) Len() int { return 100 }

func (d *drawn) Open(ctx context.Context) (any, error) {
	if info, ok := data.WorkerInfo(ctx); !ok || info.Workers == 0 {
		return nil, errors.New("it is not opened in a worker")
	}
	own := &drawn{opened: d.opened + 1, closed: d.closed}
	if d.gathers {
		return gathering{own}, nil
	}
	return own, nil
}

func (d *drawn) Close() error { *d.closed++; return nil }

func (d *drawn) Get(ctx context.Context, i int) (data.Sample, error) {
	info, ok := data.WorkerInfo(ctx)
	if !ok || d.opened != 1 {
		return nil, fmt.Errorf("in a worker: %v; opened %d times", ok, d.opened)
	}
	if i == 99 {
		return nil, io.EOF
	}
	width := 1 + i/50 // samples from 50 on are of another layout
	return data.Sample{tensor.Full(tensor.Int64, float64(data.SampleSeed(ctx, i)>>40), width),
		tensor.Scalar(tensor.Int64, float64(info.Epoch))}, nil
}

// A gathering is a drawn that writes batches.
type gathering struct{ *drawn }

func (g gathering) Gather(ctx context.Context, indices []int, into data.Batch) error {
	for k, i := range indices {
		s, err := g.Get(ctx, i)
		if err != nil {
			return err
		}
		row := into[0].Select(0, k)
		if !slices.Equal(row.Shape(), s[0].Shape()) {
			return data.ErrShape
		}
		row.CopyFrom(s[0])
		into[1].Select(0, k).CopyFrom(s[1])
	}
	return nil
}

// The random numbers in a sample depend on PyTorch's base seed, the epoch and the sample, and on
// nothing else.
func TestChild_WorkersDrawBySample(t *testing.T) {
	var want [2][][]float64
	for _, gathers := range []bool{false, true} {
		for _, workers := range []int64{1, 3} {
			closed := 0
			s := startWorker(t, Child{Datasets: map[string]OpenDataset{"set": func(context.Context, Worker) (
				data.Dataset, error) {
				return &drawn{gathers: gathers, closed: &closed}, nil
			}}}, 0, workers-1, workers)
			for epoch := range want {
				if epoch > 0 {
					if v := s.say(newInstance(resumeIteration, python.NewDict())); v != nil {
						t.Fatalf("resumed with %v", v)
					}
				}
				got := slices.Concat(s.batch(3, 4), s.batch(70, 71), s.batch(5))
				if want[epoch] == nil {
					want[epoch] = got
				}
				if !reflect.DeepEqual(got, want[epoch]) {
					t.Errorf("epoch %d with %d workers, gathering %v: %v, not %v", epoch, workers, gathers,
						got, want[epoch])
				}
				if len(got[2]) != 4 || got[1][0] != float64(epoch) {
					t.Errorf("epoch %d: %v", epoch, got)
				}
			}
			if text := s.failure(s.say(python.Tuple{0, []int{1, 99}})); !strings.Contains(text, "EOF") {
				t.Errorf("the error of a sample is %q", text)
			}
			s.batch(6) // the worker goes on
			if s.bye(); closed != 1 {
				t.Errorf("closed %d times", closed)
			}
		}
	}
	if reflect.DeepEqual(want[0][0], want[1][0]) || want[0][0][0] == want[0][0][1] {
		t.Errorf("seeds do not differ: %v", want)
	}
}

// A stream's generator is that of its worker and epoch. An error in it is raised, and it ends once.
func TestChild_StreamsDrawByWorker(t *testing.T) {
	draw := func(id int64) (firsts []float64) {
		s := startWorker(t,
			Child{Streams: map[string]OpenStream{"set": func(ctx context.Context, w Worker) iter.Seq2[data.Sample, error] {
				return func(yield func(data.Sample, error) bool) {
					if yield(data.Sample{tensor.Scalar(tensor.Int64, float64(data.Rand(ctx).Uint64()>>40))}, nil) {
						yield(nil, io.EOF) // for example of a file that it reads
					}
				}
			}}}, kindStream, id, 2)
		for epoch := range 2 {
			if epoch > 0 {
				s.say(newInstance(resumeIteration, python.NewDict()))
			}
			firsts = append(firsts, s.batch(0)[0][0])
			if text := s.failure(s.say(python.Tuple{0, []int{0}})); !strings.Contains(text, "EOF") {
				t.Errorf("the error of a stream is %q", text)
			}
			if r, ok := s.say(python.Tuple{0, []int{0}}).(*python.Record); !ok || r.Class != endOfStream {
				t.Errorf("the end is %v", r)
			}
		}
		s.bye()
		return firsts
	}
	a, again, b := draw(0), draw(0), draw(1)
	if !slices.Equal(a, again) || a[0] == a[1] || a[0] == b[0] {
		t.Errorf("drawn: %v, again %v, by the other %v", a, again, b)
	}
}
