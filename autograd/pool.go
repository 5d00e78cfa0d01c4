package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// AvgPool2d returns the mean of each window of images x, (N, C, H, W), as (N, C, H', W'). H' and W'
// are computed as for [Conv2d], rounded down, or up if o.Ceil is set. Padding counts as zeros
// unless o.InsideOnly is set. Pixels beyond the padding do not count.
func AvgPool2d(x *Var, o Window) *Var {
	requireDims("AvgPool2d", "an image batch (N, C, H, W)", x, 4)
	if o.Stride == [2]int{} {
		o.Stride = o.Size
	}
	checkWindow("AvgPool2d", o.Size, o, x.Shape())
	checkPadding("AvgPool2d", o)
	beyond := o.excessPadding(x)
	y := avgPool2d(padImage(x, beyond, PadZeros, 0), o)
	if beyond == (pads{}) && (!o.InsideOnly || o.Padding == [2]int{}) {
		return y
	}
	factors := o.windowFactors(x.t.Dim(2), x.t.Dim(3), y.t.Dim(2), y.t.Dim(3)).To(x.t.DType())
	return Mul(y, Const(moveTo(x.t.Device(), factors)))
}

// windowFactors returns the factors that convert means of whole windows to means of the pixels
// that count, as (outH, outW). h and w are the size of the images.
func (o Window) windowFactors(h, w, outH, outW int) *tensor.Tensor {
	t := tensor.New(tensor.Float64, outH, outW)
	for i := range outH {
		for j := range outW {
			counted := o.countedPixels(0, h, i) * o.countedPixels(1, w, j)
			tensor.SetAt(t, float64(o.Size[0]*o.Size[1])/float64(counted), i, j)
		}
	}
	return t
}

// countedPixels returns the number of rows of window i that count, or of columns if side is 1. n
// is the number of rows or columns of the image. Padding counts unless InsideOnly is set.
func (o Window) countedPixels(side, n, i int) int {
	from, padding := i*o.Stride[side]-o.Padding[side], o.Padding[side]
	if o.InsideOnly {
		padding = 0
	}
	return min(from+o.Size[side], n+padding) - max(from, -padding)
}

func avgPool2d(x *Var, o Window) *Var {
	var out [2]int
	for i := range out {
		out[i] = (x.t.Dim(2+i)+2*o.Padding[i]-o.Size[i])/o.Stride[i] + 1
	}
	return averaged{o, x.t, out}.averageWindows(x)
}

// An averaged is an average pooling, by a Window, of images with the shape of x. out contains the
// height and the width of the results.
type averaged struct {
	Window
	x   *tensor.Tensor
	out [2]int
}

// averageWindows returns the mean of each window. Its derivative is distributeWindows, and vice
// versa.
func (a averaged) averageWindows(x *Var) *Var {
	if x.isOnDevice() {
		return recordUnary("AvgPool2d", x, a.windowMeans(x.t), nil, a.windowSpread).
			setRule(func(_, dy *Var) derivatives { return derivativesOf(a.distributeWindows(dy)) })
	}
	y := newResult("AvgPool2d", x.t.DType(), []int{x.t.Dim(0), x.t.Dim(1), a.out[0], a.out[1]}, x)
	kernelByDType(y.op, x, pool[float32], pool[float64])(a, x.contiguousTensor(), y.t)
	keepAlive(x)
	y.ensurePlan().pool = a
	return y.setRule(func(y, dy *Var) derivatives { return derivativesOf(y.ensurePlan().pool.distributeWindows(dy)) })
}

// distributeWindows distributes each element of y evenly over its window.
func (a averaged) distributeWindows(y *Var) *Var {
	if y.isOnDevice() {
		return recordUnary("AvgPool2d", y, a.windowSpread(y.t).Clone(), nil, a.windowMeans).
			setRule(func(_, dx *Var) derivatives { return derivativesOf(a.averageWindows(dx)) })
	}
	x := newResult("AvgPool2d", y.t.DType(), a.x.Shape(), y)
	kernelByDType(x.op, y, unpool[float32], unpool[float64])(a, y.contiguousTensor(), x.t)
	keepAlive(y)
	x.ensurePlan().pool = a
	return x.setRule(func(x, dx *Var) derivatives { return derivativesOf(x.ensurePlan().pool.averageWindows(dx)) })
}

// pool sets y to the means of the windows of x.
func pool[F kernel.Float](a averaged, x, y *tensor.Tensor) {
	from, to, share := data[F](x), data[F](y), F(a.windowWeight())
	a.visit(func(at, lo, hi, first, last, width int) {
		var sum F
		for r := lo; r < hi; r++ {
			for _, v := range from[r*width+first : r*width+last] {
				sum += v
			}
		}
		to[at] = sum * share
	})
	y.Touch()
}

// unpool overwrites x: it distributes each element of y evenly over its window in x. Overlapping
// windows are added.
func unpool[F kernel.Float](a averaged, y, x *tensor.Tensor) {
	from, to, share := data[F](y), data[F](x.Zero()), F(a.windowWeight())
	a.visit(func(at, lo, hi, first, last, width int) {
		for r := lo; r < hi; r++ {
			row := to[r*width+first : r*width+last]
			for i := range row {
				row[i] += from[at] * share
			}
		}
	})
}

// visit calls f for each window with the position of its mean, the range of rows in all images, the
// range of columns, and the number of columns of an image.
func (a averaged) visit(f func(at, lo, hi, first, last, width int)) {
	h, w, at := a.x.Dim(2), a.x.Dim(3), 0
	for plane := range a.x.Dim(0) * a.x.Dim(1) {
		for i := range a.out[0] {
			top := i*a.Stride[0] - a.Padding[0]
			for j := range a.out[1] {
				left := j*a.Stride[1] - a.Padding[1]
				f(at, plane*h+max(top, 0), plane*h+max(min(top+a.Size[0], h), 0), max(left, 0),
					max(min(left+a.Size[1], w), max(left, 0)), w)
				at++
			}
		}
	}
}

func (a averaged) windowWeight() float64 { return 1 / float64(a.Size[0]*a.Size[1]) }

func (a averaged) windowMeans(x *tensor.Tensor) *tensor.Tensor {
	padded, image := a.pad(a.x)
	image.CopyFrom(x)
	y := x.NewZeros(x.DType(), x.Dim(0), x.Dim(1), a.out[0], a.out[1])
	a.eachTap(padded, a.out, func(tap *tensor.Tensor) { y.AddInPlace(tap) })
	return y.MulScalarInPlace(a.windowWeight())
}

func (a averaged) windowSpread(dy *tensor.Tensor) *tensor.Tensor {
	padded, image := a.pad(a.x)
	a.eachTap(padded, a.out, func(tap *tensor.Tensor) { tap.AxpyInPlace(a.windowWeight(), dy) })
	return image
}

// pad returns zeros with the shape of x and the padding around it, and a view of the place of x
// in them. It does not copy the elements of x.
func (o Window) pad(x *tensor.Tensor) (padded, image *tensor.Tensor) {
	h, w := x.Dim(2), x.Dim(3)
	padded = x.NewZeros(x.DType(), x.Dim(0), x.Dim(1), h+2*o.Padding[0], w+2*o.Padding[1])
	return padded, padded.Narrow(2, o.Padding[0], h).Narrow(3, o.Padding[1], w)
}

// eachTap calls f for each position in the window, with a view of the elements at this position in
// all windows.
func (o Window) eachTap(padded *tensor.Tensor, out [2]int, f func(tap *tensor.Tensor)) {
	for i := range o.Size[0] {
		rows := padded.Slice(2, i, i+(out[0]-1)*o.Stride[0]+1, o.Stride[0])
		for j := range o.Size[1] {
			f(rows.Slice(3, j, j+(out[1]-1)*o.Stride[1]+1, o.Stride[1]))
		}
	}
}
