package data_test

import (
	"context"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// A plainSet is a data set as a new program writes it: slices, and a Get that makes two tensors.
type plainSet struct {
	images []float32
	labels []int64
}

const plainPixels = 28 * 28

func (s *plainSet) Len() int { return len(s.labels) }

func (s *plainSet) Get(_ context.Context, i int) (data.Sample, error) {
	return data.Sample{
		tensor.FromSlice(s.images[i*plainPixels:(i+1)*plainPixels], 28, 28),
		tensor.FromSlice(s.labels[i : i+1]),
	}, nil
}

// BenchmarkLoaderGet is an epoch of 12,800 samples of a plain Get without workers, in batches
// of 64.
func BenchmarkLoaderGet(b *testing.B) {
	const samples = 12_800
	set := &plainSet{make([]float32, samples*plainPixels), make([]int64, samples)}
	l := data.NewLoader(set, data.Options{BatchSize: 64, Shuffle: true})
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for batch, err := range l.Batches(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n += batch[0].Dim(0)
			batch.Close()
		}
		if n != samples {
			b.Fatalf("got %d samples, want %d", n, samples)
		}
	}
	b.ReportMetric(float64(b.N)*samples/b.Elapsed().Seconds(), "samples/s")
}
