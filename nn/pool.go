package nn

import "github.com/shoal-mp/shoal/autograd"

// MaxPool2d is a layer that returns the maximum of each window. Sizes are in pixels, height first,
// then width.
type MaxPool2d struct {
	Size    [2]int
	Stride  [2]int // 0 means Size
	Padding [2]int
	Ceil    bool // round output sizes up: PyTorch's ceil_mode
}

// NewMaxPool2d returns a layer with square windows of size pixels that do not overlap. It panics
// with an error that wraps [tensor.ErrArgument] if size is less than 1.
func NewMaxPool2d(size int) *MaxPool2d {
	checkSizes("NewMaxPool2d", size)
	return &MaxPool2d{Size: [2]int{size, size}}
}

// Forward returns the maxima, (N, C, H', W'), of x. x must be (N, C, H, W); otherwise Forward
// panics with an error that wraps [tensor.ErrShape].
func (m *MaxPool2d) Forward(x *autograd.Var) *autograd.Var {
	return autograd.MaxPool2d(x, autograd.Window{Size: m.Size, Stride: m.Stride, Padding: m.Padding, Ceil: m.Ceil})
}

// AvgPool2d is a layer that returns the mean of each window. Padding counts as zeros unless
// InsideOnly is set. Sizes are in pixels, height first, then width.
type AvgPool2d struct {
	Size    [2]int
	Stride  [2]int // 0 means Size
	Padding [2]int
	Ceil    bool // round output sizes up: PyTorch's ceil_mode

	InsideOnly bool // exclude padding from the mean: PyTorch's count_include_pad=False
}

// NewAvgPool2d returns a layer with square windows of size pixels that do not overlap. It panics
// with an error that wraps [tensor.ErrArgument] if size is less than 1.
func NewAvgPool2d(size int) *AvgPool2d {
	checkSizes("NewAvgPool2d", size)
	return &AvgPool2d{Size: [2]int{size, size}}
}

// Forward returns the means, (N, C, H', W'), of x. x must be (N, C, H, W) and, with the padding,
// not smaller than the window; otherwise Forward panics with an error that wraps [tensor.ErrShape].
func (a *AvgPool2d) Forward(x *autograd.Var) *autograd.Var {
	return autograd.AvgPool2d(x, autograd.Window{Size: a.Size, Stride: a.Stride, Padding: a.Padding,
		Ceil: a.Ceil, InsideOnly: a.InsideOnly})
}
