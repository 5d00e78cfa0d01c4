package data_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// TestRegression_S2_2_BatchesStayWhatTheyWere keeps all batches, and some only as slices.
func TestRegression_S2_2_BatchesStayWhatTheyWere(t *testing.T) {
	const n, size = 400, 8
	for _, reuse := range []bool{false, true} {
		oneOfEach(func(name string, workers int, kind data.Kind) {
			set := data.NewTensorDataset(tensor.Arange(tensor.Int64, 0, n, 1))
			if kind == data.Processes {
				if err := set.Share(); err != nil {
					t.Fatal(err)
				}
			}
			defer set.Close()
			l := data.NewLoader(set, data.Options{BatchSize: size, Workers: workers, Kind: kind, Reuse: reuse})
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
			if reuse {
				return // it may be anything
			}
			for k, b := range kept {
				want := make([]int64, size)
				for row := range want {
					want[row] = int64(k*size + row)
				}
				if got := tensor.Data[int64](b[0]); !slices.Equal(got, want) ||
					kind != data.Processes && !slices.Equal(slicesOf[k], want) {
					t.Fatalf("%s: batch %d is %v", name, k, got)
				}
			}
		})
	}
}

// TestBatch_ClosedIsUsedAgain closes each batch, or keeps a view of it and closes that.
func TestBatch_ClosedIsUsedAgain(t *testing.T) {
	const n, size = 8000, 8
	set := data.NewTensorDataset(tensor.Arange(tensor.Int64, 0, n, 1))
	defer set.Close()
	l := data.NewLoader(set, data.Options{BatchSize: size, Workers: 1})
	defer l.Close()
	places := make(map[*int64]bool)
	var views []*tensor.Tensor
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		places[&tensor.Data[int64](b[0])[0]] = true
		if len(views) < 50 {
			views = append(views, b[0].Narrow(0, 2, 1))
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for k, v := range views {
		if got := v.Item(); got != float64(k*size+2) {
			t.Errorf("row 2 of batch %d is %v", k, got)
		}
		v.Close()
	}
	if len(places) < len(views) || len(places) > len(views)+20 {
		t.Errorf("%d batches in %d places, of which %d were kept", n/size, len(places), len(views))
	}
}

// BenchmarkBatches loads small samples whose batches are closed, dropped, or overwritten.
func BenchmarkBatches(b *testing.B) {
	set := data.NewTensorDataset(tensor.Rand(tensor.Float32, tensor.NewGenerator(1), 20_000, 3, 32, 32))
	for range 5 { // by turns
		for _, how := range []string{"reuse", "close", "drop"} {
			b.Run(how, func(b *testing.B) {
				l := data.NewLoader(set, data.Options{BatchSize: 128, Shuffle: true, Seed: 1, Workers: 2,
					Reuse: how == "reuse"})
				defer l.Close()
				samples := 0
				for b.Loop() {
					for batch, err := range l.Batches(b.Context()) {
						if err != nil {
							b.Fatal(err)
						}
						samples += batch[0].Dim(0)
						if how == "close" {
							batch.Close()
						}
					}
				}
				b.ReportMetric(float64(samples)/b.Elapsed().Seconds(), "samples/s")
			})
		}
	}
}
