package tensor_test

import (
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

func BenchmarkElementwise(b *testing.B) {
	const side = 1024
	x, y := tensor.Ones(tensor.Float32, side, side), tensor.Ones(tensor.Float32, side, side)
	row, half := tensor.Ones(tensor.Float32, side), tensor.Ones(tensor.Float16, side, side)
	for _, c := range []struct {
		name string
		f    func()
	}{
		{"contiguous", func() { x.AddInPlace(y) }},
		{"broadcast", func() { x.AddInPlace(row) }},
		{"scalar", func() { x.AddScalarInPlace(1) }},
		{"transposed", func() { x.AddInPlace(y.T()) }},
		{"half", func() { x.AddInPlace(half) }},
		{"sum", func() { x.Sum() }},
		{"sum of columns", func() { tensor.Sum(x, 0) }},
		{"small", func() { row.Narrow(0, 0, 4).AddScalarInPlace(1) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.f()
			}
		})
	}
}
