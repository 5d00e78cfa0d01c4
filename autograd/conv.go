package autograd

import (
	"math"
	"sync"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// A Window describes how the window of a convolution or a pooling moves over an image. In each pair
// the height precedes the width.
type Window struct {
	Size    [2]int // pooling only: size in pixels; a convolution takes it from its weight
	Stride  [2]int // distance between windows; zero means 1 for a convolution, Size for pooling
	Padding [2]int // pixels added on each side: rows above and below, columns left and right

	Dilation [2]int // convolution only: distance between the pixels under a filter; zero means 1
	Groups   int    // convolution only: groups of channels with separate filters; zero means 1

	// Ceil rounds the output size of pooling up, so that the last windows may exceed the padding.
	Ceil       bool
	InsideOnly bool // AvgPool2d only: ignore padding in the mean, like count_include_pad=False
}

// scratches contains temporary memory for convolutions.
var scratches = sync.Pool{New: func() any { return new(kernel.Scratch) }}

// Conv2d returns the cross-correlation of images x, (N, C, H, W), with filters w, (out, C/groups,
// KH, KW), plus b, which must be (out) or nil. The result is (N, out, H', W') with H' = (H +
// 2·padding - dilation·(KH-1) - 1)/stride + 1, rounded down.
func Conv2d(x, w, b *Var, o Window) *Var {
	s := convShape(x, w, o)
	checkBias("Conv2d", b, s.OutC)
	return dispatch("Conv2d", x, conv2d[float32], conv2d[float64], convolveOn)(s, x, w, b)
}

func convShape(x, w *Var, o Window) kernel.ConvShape {
	requireDims("Conv2d", "an image batch (N, C, H, W)", x, 4)
	requireDims("Conv2d", "a weight (out, C/groups, KH, KW)", w, 4)
	if o.Stride == [2]int{} {
		o.Stride = [2]int{1, 1}
	}
	if o.Dilation == [2]int{} {
		o.Dilation = [2]int{1, 1}
	}
	groups := max(o.Groups, 1)
	n, f := x.Shape(), w.Shape()
	switch {
	case o.Groups < 0 || n[1]%groups != 0 || f[0]%groups != 0:
		misuse(tensor.ErrShape, "Conv2d: %d input channels and %d output channels are not divisible by %d groups",
			n[1], f[0], o.Groups)
	case n[1] != f[1]*groups:
		misuse(tensor.ErrShape, "Conv2d: input %v and weight %v with %d groups have different numbers of channels",
			n, f, groups)
	case o.Dilation[0] < 1 || o.Dilation[1] < 1:
		misuse(tensor.ErrArgument, "Conv2d: got dilation %v, want at least 1", o.Dilation)
	case f[2] < 1 || f[3] < 1:
		misuse(tensor.ErrShape, "Conv2d: got weight %v, want a filter size of at least 1", f)
	}
	checkWindow("Conv2d", [2]int{(f[2]-1)*o.Dilation[0] + 1, (f[3]-1)*o.Dilation[1] + 1}, o, n)
	return kernel.ConvShape{N: n[0], C: n[1], H: n[2], W: n[3], OutC: f[0], KH: f[2], KW: f[3],
		StrideH: o.Stride[0], StrideW: o.Stride[1], PadH: o.Padding[0], PadW: o.Padding[1],
		Groups: groups, DilationH: o.Dilation[0], DilationW: o.Dilation[1]}
}

func checkWindow(op string, size [2]int, o Window, image []int) {
	for i := range 2 {
		room := image[2+i] + 2*o.Padding[i]
		if o.Ceil {
			room += o.Stride[i] - 1
		}
		if size[i] < 1 || o.Stride[i] < 1 || o.Padding[i] < 0 || size[i] > room {
			misuse(tensor.ErrShape, "%s: window %[3]v with stride %[4]v and padding %[5]v does not fit images %[2]v",
				op,
				image, size, o.Stride, o.Padding)
		}
	}
}

func conv2d[F kernel.Float](s kernel.ConvShape, x, w, b *Var) *Var {
	xt, wt := x.contiguousTensor(), w.contiguousTensor()
	y := newResult("Conv2d", x.t.DType(), []int{s.N, s.OutC, s.OutH(), s.OutW()}, x, w, b)
	scratch := scratches.Get().(*kernel.Scratch)
	defer scratches.Put(scratch)
	var bias []F
	if b != nil {
		bias = data[F](b.contiguousTensor())
	}
	kernel.Conv2d(s, data[F](xt), data[F](wt), bias, data[F](y.t), scratch)
	keepAlive(x, w, b)
	if y.needs {
		y.saveTensors(xt, wt)
		y.ensurePlan().conv = s
		y.derive = kernelByDType(y.op, y, conv2dBackward[float32], conv2dBackward[float64])
		y.again = conv2dTwice
	}
	return y
}

func conv2dBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	s, xt, wt := y.ensurePlan().conv, y.saved[0].t, y.saved[1].t
	x, w, b := y.inputs[0], y.inputs[1], y.inputAt(2)
	scratch := scratches.Get().(*kernel.Scratch)
	defer scratches.Put(scratch)
	var dw, db []F
	if w.needsGradient() {
		dw = data[F](w.gradientSum())
	}
	if b != nil && b.needsGradient() {
		db = data[F](b.gradientSum())
	}
	if !x.needsGradient() {
		kernel.Conv2dBackward(s, data[F](xt), data[F](wt), data[F](dy), nil, dw, db, scratch)
		return
	}
	x.writeGradient(func(dx *tensor.Tensor) {
		kernel.Conv2dBackward(s, data[F](xt), data[F](wt), data[F](dy), data[F](dx), dw, db, scratch)
	})
}

// MaxPool2d returns the maximum of each window of images x, (N, C, H, W), as (N, C, H', W'). H' and
// W' are computed as for [Conv2d], rounded down, or up if o.Ceil is set. If several elements are
// equal, the first one gets the gradient.
func MaxPool2d(x *Var, o Window) *Var {
	requireDims("MaxPool2d", "an image batch (N, C, H, W)", x, 4)
	if o.Stride == [2]int{} {
		o.Stride = o.Size
	}
	checkWindow("MaxPool2d", o.Size, o, x.Shape())
	checkPadding("MaxPool2d", o)
	x = padImage(x, o.excessPadding(x), PadZeros, math.Inf(-1))
	return dispatch("MaxPool2d", x, maxPool2d[float32], maxPool2d[float64], maxPool2dOn)(x, o)
}

func checkPadding(op string, o Window) {
	for i := range 2 {
		if 2*o.Padding[i] > o.Size[i] {
			misuse(tensor.ErrArgument, "%s: got padding %v, want at most half of the window %v",
				op, o.Padding, o.Size)
		}
	}
}

// excessPadding returns by how many pixels the last windows exceed the images and their padding.
// Only windows that start in the image or in the padding before it count.
func (o Window) excessPadding(x *Var) (p pads) {
	for i := range p {
		n := x.t.Dim(2+i) + 2*o.Padding[i]
		// last is the start of the last window.
		last := (n - o.Size[i] + o.Stride[i] - 1) / o.Stride[i] * o.Stride[i]
		if o.Ceil && last < n-o.Padding[i] {
			p[i][1] = max(0, last+o.Size[i]-n)
		}
	}
	return p
}

func maxPool2d[F kernel.Float](x *Var, o Window) *Var {
	n, c, h, w := x.t.Dim(0), x.t.Dim(1), x.t.Dim(2), x.t.Dim(3)
	outH := (h+2*o.Padding[0]-o.Size[0])/o.Stride[0] + 1
	outW := (w+2*o.Padding[1]-o.Size[1])/o.Stride[1] + 1
	y := newResult("MaxPool2d", x.t.DType(), []int{n, c, outH, outW}, x)
	at := y.scope.newEmpty(nil, tensor.Int32, y.Shape())
	kernel.MaxPool2d(n, c, h, w, o.Size[0], o.Size[1], o.Stride[0], o.Stride[1], o.Padding[0], o.Padding[1],
		data[F](x.contiguousTensor()), data[F](y.t), tensor.Data[int32](at))
	keepAlive(x)
	if y.needs {
		y.saveTensors(at)
		y.ensurePlan().window = o
		y.derive = kernelByDType(y.op, y, maxPool2dBackward[float32], maxPool2dBackward[float64])
		y.again = maxPool2dTwice
	}
	return y
}

func maxPool2dBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	x, o := y.inputs[0], y.ensurePlan().window
	x.writeGradient(func(dx *tensor.Tensor) {
		kernel.MaxPool2dBackward(dx.Dim(0), dx.Dim(1), dx.Dim(2), dx.Dim(3),
			o.Size[0], o.Size[1], o.Stride[0], o.Stride[1], o.Padding[0], o.Padding[1],
			data[F](dy), tensor.Data[int32](y.saved[0].t), data[F](dx))
	})
}

// maxPool2dTwice is the rule of MaxPool2d: it passes each gradient to the position of the
// maximum.
func maxPool2dTwice(y, dy *Var) derivatives {
	x, at := y.inputs[0], y.saved[0].t
	planes, places := x.t.Dim(0)*x.t.Dim(1), y.t.Dim(2)*y.t.Dim(3)
	zeros := dy.wrapConst(x.t.NewZeros(x.t.DType(), planes, x.t.Dim(2)*x.t.Dim(3)))
	dx := ScatterAdd(zeros, 1, at.To(tensor.Int64).Reshape(planes, places), Reshape(dy, planes, places))
	return derivativesOf(Reshape(dx, x.Shape()...))
}
