package data_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/tensor"
)

// A Loader takes orders bit by bit, and so do those that resume: all of that is one order.
func TestSampler_OrderIsTheSameBitByBit(t *testing.T) {
	const n = 10_000
	ds := data.NewTensorDataset(tensor.Arange(tensor.Int64, 0, n, 1))
	for name, s := range map[string]data.Sampler{
		"sequential": data.Sequential(n), "random": data.Random(n, 1), "subset": data.SubsetRandom([]int{4, 8, 2}, 1),
		"shard": data.Shard(data.Random(n, 1), 2, 3), "padded": data.Distributed(data.Random(n, 1), 2, 7, false),
		"dropped": data.Distributed(data.Random(n, 1), 2, 7, true),
		"few":     data.Distributed(data.Random(2, 1), 3, 7, false),
	} {
		t.Run(name, func(t *testing.T) {
			l := data.NewLoader(ds, data.Options{BatchSize: 32, Sampler: s})
			defer l.Close()
			if got, want := loadAll(t, l), s.Order(0); !slices.Equal(got, want) {
				t.Errorf("by batches %d samples come, beginning %v, and by Order %d, beginning %v",
					len(got), head(got), len(want), head(want))
			}
		})
	}
}

func TestRandom_VisitsEachSampleOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 63, 64, 65, 5000} {
		if got := slices.Sorted(slices.Values(data.Random(n, 3).Order(1))); !slices.Equal(got,
			data.Sequential(n).Order(0)) {
			t.Errorf("of %d samples it visits %v", n, got)
		}
	}
}

func TestRandom_ShufflesAsItAlwaysDid(t *testing.T) {
	want := []int{7, 6, 2, 8, 5, 4, 0, 3, 9, 1}
	if got := data.Random(10, 1).Order(2); !slices.Equal(got, want) {
		t.Errorf("an order that States of earlier versions continue was %v and is %v", want, got)
	}
}

func head(order []int) []int { return order[:min(len(order), 5)] }
