package tensor_test

import (
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"pgregory.net/rapid"
)

// drawPicks is n indices of size, every step-th element of a tensor.
func drawPicks(t *rapid.T, n, size int) *tensor.Tensor {
	step := rapid.IntRange(1, 3).Draw(t, "step")
	picks := make([]int64, n*step)
	for i := range picks {
		picks[i] = int64(rapid.IntRange(0, size-1).Draw(t, "pick"))
	}
	return tensor.FromSlice(picks, len(picks)).Slice(0, 0, n*step, step)
}

// What lies in pieces is copied by pieces.
func TestIndexSelect_OfPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dt := rapid.SampledFrom([]tensor.DType{tensor.Uint8, tensor.Float16, tensor.Float32,
			tensor.Complex128}).Draw(t, "dtype")
		h := rapid.IntRange(1, 6).Draw(t, "h")
		all := tensor.Arange(tensor.Float32, 0, float64(3*h*300), 1).To(dt).View(3, h, 300)
		x := all.Narrow(0, rapid.IntRange(0, 2).Draw(t, "from"), 1)
		dim := rapid.IntRange(0, 1).Draw(t, "dim")
		size := x.Dim(dim)
		picks := drawPicks(t, rapid.IntRange(0, 5).Draw(t, "picks"), size)
		got := tensor.IndexSelect(x, dim, picks)
		each(got.Shape(), func(at ...int) {
			from := append([]int{}, at...)
			from[dim] = int(tensor.At[int64](picks, at[dim]))
			if a, b := element(got, at...), element(x, from...); a != b {
				t.Fatalf("at %v along %d: %v, want %v", at, dim, a, b)
			}
		})
	})
}

// Rows of indices that are places already, and of one row for all.
func TestGather_AlongTheLastDimension(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, n, size := rapid.IntRange(1, 3).Draw(t, "rows"), rapid.IntRange(1, 1100).Draw(t, "n"),
			rapid.IntRange(1, 70).Draw(t, "size")
		x := tensor.RandN(tensor.Float32, nil, rows, size)
		idx := tensor.RandInt(nil, 0, size, rows, n)
		if rapid.Bool().Draw(t, "one row") {
			idx = idx.Narrow(0, 0, 1).Expand(rows, n)
		}
		got := tensor.Gather(x, 1, idx)
		for r := range rows {
			for i := range n {
				k := int(tensor.At[int64](idx, r, i))
				if a, b := tensor.At[float32](got, r, i), tensor.At[float32](x, r, k); a != b {
					t.Fatalf("at (%d, %d) by %d: %v, want %v", r, i, k, a, b)
				}
			}
		}
	})
}

func TestGather_PanicsOutOfRange(t *testing.T) {
	x := tensor.New(tensor.Float32, 2, 100)
	for _, k := range []int64{100, -101, 1 << 40, -1 << 63, 1<<63 - 1} {
		idx := tensor.New(tensor.Int64, 2, 600)
		tensor.SetAt(idx, k, 1, 599)
		panics(t, func() { tensor.Gather(x, 1, idx) })
		panics(t, func() { tensor.IndexSelect(x, 1, idx.Select(0, 1)) })
		rows := tensor.New(tensor.Int64, 3)
		tensor.SetAt(rows, k, 2)
		panics(t, func() { tensor.IndexSelect(x, 0, rows) })
	}
}
