package data

import (
	"context"
	"iter"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

// counted is a Stream of the numbers from 0 on that ends with its context.
type counted struct{}

func (counted) Samples(ctx context.Context, p Part) iter.Seq2[Sample, error] {
	return func(yield func(Sample, error) bool) {
		for i := 0; ctx.Err() == nil; i++ {
			if !yield(Sample{tensor.Scalar(tensor.Int64, float64(i))}, nil) {
				return
			}
		}
		yield(nil, context.Cause(ctx))
	}
}

// TestStream_PartGoesOnInAnotherLoop: a worker that stays may have read exactly as much of a part
// as the loop before was given, whose context has ended.
func TestStream_PartGoesOnInAnotherLoop(t *testing.T) {
	w, err := newWorker(t.Context(), workerConfig{Source: counted{}, Workers: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	for from := 0; from < 6; from += 2 {
		loop, end := context.WithCancel(t.Context())
		out := w.runRequest(loop, fetchRequest{Part: Part{0, 1}, From: from, N: 2})
		end()
		if len(out.Bad) > 0 || out.Read != 2 || tensor.At[int64](out.Batch[0], 1) != int64(from+1) {
			t.Fatalf("from %d on: %+v", from, out)
		}
		closeAll(out.Batch)
	}
}
