package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// A PadMode determines the pixels around a padded image.
type PadMode uint8

// The modes of PyTorch.
const (
	PadZeros     PadMode = iota
	PadReflect           // mirror image, without repeating the outermost pixels
	PadReplicate         // the outermost pixels, repeated
	PadCircular          // the opposite side of the image
)

// pads contains the number of pixels added before and after an image, along its height and its
// width.
type pads [2][2]int

// Pad2d returns images x, (N, C, H, W), with pixels added around them. p[0] contains the number of
// rows added above and below an image, and p[1] the number of columns left and right of it. They
// must not be negative. PadReflect needs fewer pixels than the image has, and PadCircular no more.
func Pad2d(x *Var, p [2][2]int, mode PadMode) *Var {
	requireDims("Pad2d", "an image batch (N, C, H, W)", x, 4)
	for i, side := range p {
		checkPads(side, x.t.Dim(2+i), mode)
	}
	return padImage(x, p, mode, 0)
}

func checkPads(side [2]int, n int, mode PadMode) {
	largest := max(side[0], side[1])
	switch {
	case min(side[0], side[1]) < 0:
		misuse(tensor.ErrArgument, "Pad2d: got padding %v, want at least 0", side)
	case mode > PadCircular:
		misuse(tensor.ErrArgument, "Pad2d: unknown mode %d", mode)
	case mode == PadReflect && largest >= n && largest > 0:
		misuse(tensor.ErrArgument, "Pad2d: got reflect padding %v for size %d, want less than the size", side, n)
	case mode == PadCircular && largest > n:
		misuse(tensor.ErrArgument, "Pad2d: got circular padding %v for size %d, want at most the size", side, n)
	case mode == PadReplicate && largest > 0 && n == 0:
		misuse(tensor.ErrArgument, "Pad2d: replicate padding of size 0")
	}
}

// padImage implements Pad2d for checked arguments. With PadZeros, the new pixels are set to value.
func padImage(x *Var, p pads, mode PadMode, value float64) *Var {
	if p == (pads{}) {
		return x
	}
	return dispatch("Pad2d", x, padImages[float32], padImages[float64], padOn)(x, p, mode, value)
}

// A padding contains the number of pixels that are added to images, and the mode that determines
// them.
type padding struct {
	pads pads
	mode PadMode
}

// paddedSize returns the number of rows after padding n rows if dim is 0, or of columns if dim is
// 1.
func (p pads) paddedSize(dim, n int) int { return p[dim][0] + n + p[dim][1] }

// sourceIndices returns, for each row of a padded image, the row of the image that it is copied
// from, or -1 for none. n is the number of rows of the image. If dim is 1, it does the same for
// columns.
func (p padding) sourceIndices(dim, n int) []int64 {
	at := make([]int64, p.pads.paddedSize(dim, n))
	for i := range at {
		at[i] = int64(p.mode.sourceIndex(i-p.pads[dim][0], n))
	}
	return at
}

// sourceIndex returns the source of row or column j, which is negative before the image, in a side
// of n pixels. It returns -1 if there is none.
func (m PadMode) sourceIndex(j, n int) int {
	if j >= 0 && j < n {
		return j
	}
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
	shape := [4]int{x.t.Dim(0), x.t.Dim(1), p.paddedSize(0, x.t.Dim(2)), p.paddedSize(1, x.t.Dim(3))}
	y := newResult("Pad2d", x.t.DType(), shape[:], x)
	from, to := data[F](x.contiguousTensor()), data[F](y.t)
	way := padding{p, mode}
	way.visit(x.t, func(at, source, n int) {
		if source >= 0 {
			copy(to[at:][:n], from[source:])
			return
		}
		for i := range n {
			to[at+i] = F(value)
		}
	})
	keepAlive(x)
	y.ensurePlan().padding = way
	return y.setDerivatives(kernelByDType(y.op, y, padBackward[float32], padBackward[float64]), padTwice)
}

func padBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	x := y.inputs[0]
	x.writeGradient(func(dx *tensor.Tensor) {
		from, to := data[F](dy), data[F](dx.Zero())
		y.ensurePlan().padding.visit(x.t, func(at, source, n int) {
			if source >= 0 {
				to := to[source:][:n]
				kernel.Add(to, from[at:][:n], to)
			}
		})
	})
}

func padTwice(y, dy *Var) derivatives {
	var ats, sources []int64
	x := y.inputs[0]
	y.ensurePlan().padding.visit(x.t, func(at, source, n int) {
		for i := range n {
			if source >= 0 {
				ats, sources = append(ats, int64(at+i)), append(sources, int64(source+i))
			}
		}
	})
	seen := IndexSelect(Reshape(dy, -1), 0, tensor.FromSlice(ats, len(ats)))
	return derivativesOf(Reshape(scatterRows(y.op, x.t.Numel(), tensor.FromSlice(sources, len(sources)), seen),
		x.Shape()...))
}

// visit calls f for each run of n elements of padded images of x, in order, with its position and
// the position of its source in x. The source is -1 if there is none.
func (p padding) visit(x *tensor.Tensor, f func(at, source, n int)) {
	h, w := x.Dim(2), x.Dim(3)
	left, right := p.pads[1][0], p.pads[1][1]
	at := 0
	for plane := range x.Dim(0) * x.Dim(1) {
		for r := range p.pads.paddedSize(0, h) {
			row := p.mode.sourceIndex(r-p.pads[0][0], h)
			first := (plane*h + row) * w
			if row < 0 {
				f(at, -1, left+w+right)
				at += left + w + right
				continue
			}
			for c := -left; c < w+right; c++ {
				source, n := p.mode.sourceIndex(c, w), 1
				if c == 0 && w > 0 {
					n = w
				}
				if source >= 0 {
					source += first
				}
				f(at, source, n)
				at, c = at+n, c+n-1
			}
		}
	}
}

func padOn(x *Var, p pads, mode PadMode, value float64) *Var {
	dev := x.t.Device()
	if mode != PadZeros {
		way := padding{p, mode}
		rows, cols := way.sourceIndices(0, x.t.Dim(2)), way.sourceIndices(1, x.t.Dim(3))
		x = IndexSelect(x, 2, moveTo(dev, tensor.FromSlice(rows, len(rows))))
		return IndexSelect(x, 3, moveTo(dev, tensor.FromSlice(cols, len(cols))))
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
