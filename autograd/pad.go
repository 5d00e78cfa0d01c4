package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// A PadMode says which pixels stand around a padded image.
type PadMode uint8

// The modes of PyTorch.
const (
	PadZeros     PadMode = iota
	PadReflect           // the image mirrored at its outermost pixels, which are not repeated
	PadReplicate         // the outermost pixels, repeated
	PadCircular          // the opposite side of the image
)

// pads are how many pixels stand before and after an image, along its height and its width.
type pads [2][2]int

// Pad2d returns images x, (N, C, H, W), with pixels added around them. p[0] is how many rows come
// above and below an image, and p[1] how many columns left and right of it.
func Pad2d(x *Var, p [2][2]int, mode PadMode) *Var {
	want("Pad2d", "an image batch (N, C, H, W)", x, 4)
	for i, side := range p {
		checkPads(side, x.t.Dim(2+i), mode)
	}
	return padded(x, p, mode, 0)
}

func checkPads(side [2]int, n int, mode PadMode) {
	largest := max(side[0], side[1])
	switch {
	case min(side[0], side[1]) < 0:
		misuse("Pad2d with %v: pads are at least 0", side)
	case mode > PadCircular:
		misuse("Pad2d with mode %d", mode)
	case mode == PadReflect && largest >= n && largest > 0:
		misuse("Pad2d with %v pixels of a side of %d as in a mirror: they are fewer than it has", side, n)
	case mode == PadCircular && largest > n:
		misuse("Pad2d with %v pixels of the other side of %d: they are no more than it has", side, n)
	case mode == PadReplicate && largest > 0 && n == 0:
		misuse("Pad2d of a side of 0 with its outermost pixel")
	}
}

// padded is Pad2d by what was checked. Where there are no pixels of the image, as PadZeros has it,
// is value.
func padded(x *Var, p pads, mode PadMode, value float64) *Var {
	if p == (pads{}) {
		return x
	}
	return dispatch("Pad2d", x, padImages[float32], padImages[float64], paddedOn)(x, p, mode, value)
}

// sources are the rows or columns of n that the padded ones are, -1 for those that are none.
func (p pads) sources(dim, n int, mode PadMode) []int64 {
	at := make([]int64, p[dim][0]+n+p[dim][1])
	for i := range at {
		j := i - p[dim][0]
		if j < 0 || j >= n {
			j = mode.source(j, n)
		}
		at[i] = int64(j)
	}
	return at
}

func (m PadMode) source(j, n int) int {
	switch m {
	case PadReflect:
		if j < 0 {
			return -j
		}
		return 2*(n-1) - j
	case PadReplicate:
		return min(max(j, 0), n-1)
	case PadCircular:
		return (j + n) % n
	}
	return -1
}

func padImages[F kernel.Float](x *Var, p pads, mode PadMode, value float64) *Var {
	h, w := x.t.Dim(2), x.t.Dim(3)
	rows, cols := p.sources(0, h, mode), p.sources(1, w, mode)
	y := result("Pad2d", x.t.DType(), []int{x.t.Dim(0), x.t.Dim(1), len(rows), len(cols)}, x)
	from, to := data[F](x.dense()), data[F](y.t)
	visitPadded(len(to), h, w, rows, cols, func(at, source int) {
		if source < 0 {
			to[at] = F(value)
		} else {
			to[at] = from[source]
		}
	})
	hold(x)
	if y.needs {
		y.backward = func(dy *tensor.Tensor) {
			x.write(func(dx *tensor.Tensor) {
				from, to := data[F](dy), data[F](dx.Zero())
				visitPadded(len(from), h, w, rows, cols, func(at, source int) {
					if source >= 0 {
						to[source] += from[at]
					}
				})
			})
		}
	}
	return y.twice(func(y, dy *Var) derivatives {
		var ats, sources []int64
		visitPadded(y.t.Numel(), h, w, rows, cols, func(at, source int) {
			if source >= 0 {
				ats, sources = append(ats, int64(at)), append(sources, int64(source))
			}
		})
		seen := IndexSelect(Reshape(dy, -1), 0, tensor.FromSlice(ats, len(ats)))
		return of(Reshape(put(y.op, x.t.Numel(), tensor.FromSlice(sources, len(sources)), seen), x.Shape()...))
	})
}

// visitPadded calls f with each of size elements of padded images of h by w, and with the one that
// it is, -1 for none.
func visitPadded(size, h, w int, rows, cols []int64, f func(at, source int)) {
	for at, plane := 0, 0; at < size; plane += h * w {
		for _, r := range rows {
			for _, c := range cols {
				source := -1
				if r >= 0 && c >= 0 {
					source = plane + int(r)*w + int(c)
				}
				f(at, source)
				at++
			}
		}
	}
}

func paddedOn(x *Var, p pads, mode PadMode, value float64) *Var {
	dev := x.t.Device()
	if mode != PadZeros {
		rows, cols := p.sources(0, x.t.Dim(2), mode), p.sources(1, x.t.Dim(3), mode)
		x = IndexSelect(x, 2, movedTo(dev, tensor.FromSlice(rows, len(rows))))
		return IndexSelect(x, 3, movedTo(dev, tensor.FromSlice(cols, len(cols))))
	}
	for i, side := range p {
		block := func(n int) *Var {
			shape := append([]int{}, x.Shape()...)
			shape[2+i] = n
			return Const(x.t.NewEmpty(x.t.DType(), shape...).Fill(value))
		}
		x = Cat(2+i, block(side[0]), x, block(side[1]))
	}
	return x
}
