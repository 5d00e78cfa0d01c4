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
		{"contiguous", func() { x.Add(y) }},
		{"broadcast", func() { x.Add(row) }},
		{"scalar", func() { x.AddScalar(1) }},
		{"transposed", func() { x.Add(y.T()) }},
		{"half", func() { x.Add(half) }},
		{"sum", func() { x.Sum() }},
		{"sum of columns", func() { tensor.Sum(x, 0) }},
		{"small", func() { row.Narrow(0, 0, 4).AddScalar(1) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.f()
			}
		})
	}
}
