package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// workspace is the maximum number of bytes for unfolded images in a convolution on a device, unless
// one image needs more.
var workspace = 64 << 20

// An unfolding is a convolution on a device, without groups and dilation, computed as products of
// the filters with unfolded images, some images at a time.
type unfolding struct {
	kernel.ConvShape
	window        device.Window
	patch, places int // number of pixels under a filter, and of filter positions
	device        device.Computer[tensor.DType]
}

// eachGroup calls f for consecutive groups of n images, from image from on, so that the unfolded
// images of a group fit in workspace, unless one image needs more. size is the element size in
// bytes.
func (u unfolding) eachGroup(size int, f func(from, n int)) {
	n := max(workspace/(u.patch*max(u.places, u.OutC)*size), 1)
	for from := 0; from < u.N; from += n {
		f(from, min(n, u.N-from))
	}
}

func (u unfolding) unfold(images *tensor.Tensor) *tensor.Tensor {
	columns := images.NewEmpty(images.DType(), images.Dim(0), u.patch, u.places)
	must(u.device.Unfold(tensors.Operand(columns), tensors.Operand(images), u.window))
	return columns
}

// fold sets dx to the gradient of the images, computed from the filters and dy.
func (u unfolding) fold(filters, dy, dx *tensor.Tensor) {
	u.eachGroup(dy.DType().Size(), func(from, n int) {
		columns := tensor.MatMul(filters.T(), dy.Narrow(0, from, n))
		must(u.device.Fold(tensors.Operand(dx.Narrow(0, from, n)), tensors.Operand(columns), u.window))
		columns.Close()
	})
	dx.Touch()
}

// correlate adds the gradient of the filters, computed from the images and dy, to dw.
func (u unfolding) correlate(images, dy, dw *tensor.Tensor) {
	u.eachGroup(dy.DType().Size(), func(from, n int) {
		columns := u.unfold(images.Narrow(0, from, n))
		each := tensor.MatMul(dy.Narrow(0, from, n), columns.Transpose(1, 2)) // for each image
		sum := tensor.Sum(each, 0)
		dw.AddInPlace(sum.View(dw.Shape()...))
		for _, t := range []*tensor.Tensor{columns, each, sum} {
			t.Close()
		}
	})
}

func unfoldingOf(s kernel.ConvShape, ts ...*tensor.Tensor) unfolding {
	window := device.Window{Size: [2]int{s.KH, s.KW}, Stride: [2]int{s.StrideH, s.StrideW},
		Padding: [2]int{s.PadH, s.PadW}}
	return unfolding{s, window, s.C * s.KH * s.KW, s.OutH() * s.OutW(), tensors.Computer(ts...)}
}

// convolveOn implements Conv2d on a device, for checked arguments. It inserts zeros into dilated
// filters, and convolves groups one after the other.
func convolveOn(s kernel.ConvShape, x, w, b *Var) *Var {
	w = dilateDim(dilateDim(w, 2, s.DilationH), 3, s.DilationW)
	s.KH, s.KW, s.DilationH, s.DilationW = w.t.Dim(2), w.t.Dim(3), 1, 1
	if s.Groups == 1 {
		return conv2dOn(s, x, w, b)
	}
	groups, in, out := s.Groups, s.C/s.Groups, s.OutC/s.Groups
	s.C, s.OutC, s.Groups = in, out, 1
	parts := make([]*Var, groups)
	for i := range parts {
		var bias *Var
		if b != nil {
			bias = Narrow(b, 0, i*out, out)
		}
		parts[i] = conv2dOn(s, Narrow(x, 1, i*in, in), Narrow(w, 0, i*out, out), bias)
	}
	return Cat(1, parts...)
}

// dilateDim returns w with zeros inserted between the indices of a dimension, so that former
// neighbors are distance indices apart.
func dilateDim(w *Var, dim, distance int) *Var {
	n := w.t.Dim(dim)
	if distance == 1 || n == 1 {
		return w
	}
	shape := append([]int{}, w.Shape()...)
	shape[dim] *= distance
	zeros := slices.Insert(slices.Clone(w.Shape()), dim+1, distance-1)
	wide := Cat(dim+1, Unsqueeze(w, dim+1), Const(w.t.NewZeros(w.t.DType(), zeros...)))
	return Narrow(Reshape(wide, shape...), dim, 0, (n-1)*distance+1)
}

// conv2dOn implements Conv2d on a device, without groups and dilation: it multiplies the filters
// by the unfolded images.
func conv2dOn(s kernel.ConvShape, x, w, b *Var) *Var {
	u := unfoldingOf(s, x.t, w.t)
	images, filters := x.contiguousTensor(), w.contiguousTensor().View(s.OutC, u.patch)
	y := images.NewEmpty(images.DType(), s.N, s.OutC, u.places)
	u.eachGroup(images.DType().Size(), func(from, n int) {
		columns := u.unfold(images.Narrow(0, from, n))
		each := filters.Expand(n, s.OutC, u.patch)
		must(u.device.MatMul(tensors.Operand(y.Narrow(0, from, n)), tensors.Operand(each), tensors.Operand(columns), 0))
		columns.Close()
	})
	y.Touch()
	if b != nil {
		y.AddInPlace(b.t.Reshape(s.OutC, 1))
	}
	out := y.View(s.N, s.OutC, s.OutH(), s.OutW())
	y.Close() // out shares its memory
	v := wrapOwned("Conv2d", out, x, w, b)
	if v.needs {
		v.saveTensors(images, w.t)
		v.ensurePlan().conv = s
		v.backward = func(dy *tensor.Tensor) {
			dy = dy.Reshape(s.N, s.OutC, u.places)
			if w.needsGradient() {
				u.correlate(images, dy, w.gradientSum())
			}
			if b != nil && b.needsGradient() {
				b.addAndClose(tensor.Sum(dy, 0, 2))
			}
			x.writeGradient(func(dx *tensor.Tensor) { u.fold(filters, dy, dx) })
		}
	}
	return v.setRule(conv2dTwice)
}
