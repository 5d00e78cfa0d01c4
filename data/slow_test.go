package data_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// uneven is a set of which one sample in a hundred takes a hundred times as long as the others.
type uneven int

const usual = time.Millisecond

func (d uneven) takes(i int) time.Duration {
	if i%100 == 41 {
		return 100 * usual
	}
	return usual
}

func (d uneven) Len() int { return int(d) }

func (d uneven) Get(_ context.Context, i int) (data.Sample, error) {
	time.Sleep(d.takes(i))
	return data.Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil
}

// TestLoader_SlowSamplesCostTheirTimeAndNoMore loads in a time of its own, which goes on when
// everybody waits: so how long an epoch takes depends on which side waits for the other, and not on
// the machine.
func TestLoader_SlowSamplesCostTheirTimeAndNoMore(t *testing.T) {
	const n = 10_000
	work := time.Duration(0)
	for i := range n {
		work += uneven(n).takes(i)
	}
	for _, workers := range []int{0, 1, 2, 4, 8} {
		for _, asReady := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				l := data.NewLoader(uneven(n), data.Options{BatchSize: 32, Shuffle: true, Workers: workers,
					AsReady: asReady})
				begin := time.Now()
				got := len(loadAll(t, l))
				took, least := time.Since(begin), work/time.Duration(max(1, workers))
				if got != n || took < least || took > least*115/100 {
					t.Errorf("%d workers, as ready %v: %d samples in %v, want %v and at most 15 %% more",
						workers, asReady, got, took, least)
				}
			})
		}
	}
}
