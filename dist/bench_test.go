package dist_test

import (
	"testing"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
)

// BenchmarkAllReduce is of two goroutines; shoal bench dist is of two processes.
func BenchmarkAllReduce(b *testing.B) {
	for name, n := range map[string]int{"4B": 1, "1MiB": 256 << 10, "64MiB": 16 << 20} {
		b.Run(name, func(b *testing.B) {
			groups, ctx := handles(b, 2), b.Context()
			ts := []*tensor.Tensor{ones(n), ones(n)}
			b.SetBytes(int64(4 * n))
			b.ReportAllocs()
			b.ResetTimer()
			all(b, together(groups, func(g *dist.Group) error {
				for range b.N {
					if err := g.AllReduce(ctx, dist.Mean, ts[g.Rank()]); err != nil {
						return err
					}
				}
				return nil
			}))
		})
	}
}
