package data_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// TestFreshBatchesStayWhatTheyWere keeps all batches, and some only as slices.
func TestFreshBatchesStayWhatTheyWere(t *testing.T) {
	const n, size = 400, 8
	for _, fresh := range []bool{true, false} {
		oneOfEach(func(name string, workers int, kind data.Kind) {
			set := data.NewTensorDataset(tensor.Arange(tensor.Int64, 0, n, 1))
			if kind == data.Processes {
				if err := set.Share(); err != nil {
					t.Fatal(err)
				}
			}
			defer set.Close()
			l := data.NewLoader(set, data.Options{BatchSize: size, Workers: workers, Kind: kind, Fresh: fresh})
			defer l.Close()
			var kept []data.Batch
			var slicesOf [][]int64
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if kept = append(kept, b); kind != data.Processes {
					slicesOf = append(slicesOf, tensor.Data[int64](b[0]))
				}
			}
			if !fresh {
				return // it may be anything
			}
			for k, b := range kept {
				want := make([]int64, size)
				for row := range want {
					want[row] = int64(k*size + row)
				}
				if got := tensor.Data[int64](b[0]); !slices.Equal(got, want) || kind != data.Processes && !slices.Equal(slicesOf[k], want) {
					t.Fatalf("%s: batch %d is %v", name, k, got)
				}
			}
		})
	}
}

// BenchmarkBatches loads small samples, into memory that is used again at once, and when nobody has it.
func BenchmarkBatches(b *testing.B) {
	set := data.NewTensorDataset(tensor.Rand(tensor.Float32, tensor.NewGenerator(1), 20_000, 3, 32, 32))
	for range 3 { // by turns
		for _, fresh := range []bool{false, true} {
			b.Run(fmt.Sprint("fresh=", fresh), func(b *testing.B) {
				l := data.NewLoader(set, data.Options{BatchSize: 128, Shuffle: true, Seed: 1, Workers: 2, Fresh: fresh})
				defer l.Close()
				samples := 0
				for b.Loop() {
					for batch, err := range l.Batches(b.Context()) {
						if err != nil {
							b.Fatal(err)
						}
						samples += batch[0].Dim(0)
					}
				}
				b.ReportMetric(float64(samples)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}
