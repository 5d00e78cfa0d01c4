package data_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// gated is a set in which one sample waits until others say so.
type gated struct {
	n, slow int
	began   chan struct{} // closed when the slow one is being loaded
	gate    chan struct{}
	loaded  atomic.Int32
}

func (g *gated) Len() int { return g.n }
func (g *gated) Get(ctx context.Context, i int) (data.Sample, error) {
	if i == g.slow {
		close(g.began)
		select {
		case <-g.gate:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	g.loaded.Add(1)
	return data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil
}

func TestLoader_ASlowSampleStallsOnlyItself(t *testing.T) {
	// The slow one is in the batch in front, so that ordered delivery waits; everything else in the
	// prefetcher is loaded meanwhile.
	o := data.Options{BatchSize: 10, Workers: 2, Prefetch: 6}
	synctest.Test(t, func(t *testing.T) {
		g := &gated{n: 400, slow: 3, began: make(chan struct{}), gate: make(chan struct{})}
		l := data.NewLoader(g, o)
		defer l.Close()
		go func() {
			<-g.began
			synctest.Wait() // until all goroutines wait for the slow one
			if n := g.loaded.Load(); n < 10*6-10 {
				t.Errorf("%d samples are loaded beside the slow one, want at least 50", n)
			}
			close(g.gate)
		}()
		if got := loadAll(t, l); !slices.Equal(got, data.Sequential(400).Order(0)) {
			t.Errorf("%v", got)
		}
	})

	// As ready, batches overtake it.
	g := &gated{n: 400, slow: 3, began: make(chan struct{}), gate: make(chan struct{})}
	o.AsReady = true
	n := 0
	for b, err := range data.NewLoader(g, o).Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 39 {
			close(g.gate)
		}
		if has := slices.Contains(tensor.Data[int64](b[0]), 3); has != (n == 40) {
			t.Errorf("the slow sample is in batch %d", n)
		}
	}
}

func TestOptions_PrefetchIsBounded(t *testing.T) {
	for name, o := range map[string]data.Options{
		"count": {Prefetch: 3},
		"bytes": {Prefetch: 1000, PrefetchBytes: 3 * 10 * 64},
	} {
		g := &gated{n: 1000, slow: -1}
		o.BatchSize, o.Workers = 10, 2
		delivered := 0
		for _, err := range data.NewLoader(&row64{g}, o).Batches(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			delivered++
			if n := int(g.loaded.Load()); n > 10*(delivered+3)+1 {
				t.Fatalf("%s: %d samples were loaded when %d batches of 10 were delivered", name, n, delivered)
			}
		}
	}
}

// row64 has samples of 64 bytes.
type row64 struct{ *gated }

func (r *row64) Get(ctx context.Context, i int) (data.Sample, error) {
	s, err := r.gated.Get(ctx, i)
	return data.Sample{tensor.Full(tensor.Int64, float64(i), 8)}, errors.Join(err, s[0].Close())
}

func TestOptions_TimeoutEndsAWaitForABatch(t *testing.T) {
	g := &gated{n: 10, slow: 5, began: make(chan struct{}), gate: make(chan struct{})}
	_, err := read(t, data.NewLoader(g, data.Options{BatchSize: 5, Workers: 2, Timeout: 50 * time.Millisecond}), 0)
	if !errors.Is(err, data.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want ErrTimeout", err)
	}
}
