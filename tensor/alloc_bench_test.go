package tensor_test

import (
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

// BenchmarkResult is what an operation's new result costs besides the loop itself, which "in place"
// is, by what becomes of the result.
func BenchmarkResult(b *testing.B) {
	for _, kib := range []int{1, 4, 8, 16, 32, 64, 256, 1 << 10, 16 << 10} {
		x, y := tensor.Ones(tensor.Float32, kib<<8), tensor.Ones(tensor.Float32, kib<<8)
		for _, c := range []struct {
			name string
			f    func()
		}{
			{"in place", func() { x.AddInPlace(y) }},
			{"closed", func() { tensor.Add(x, y).Close() }},
			{"dropped", func() { tensor.Add(x, y) }},
		} {
			b.Run(fmt.Sprintf("%s/%dKiB", c.name, kib), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(kib) << 10)
				for b.Loop() {
					c.f()
				}
			})
		}
	}
}
