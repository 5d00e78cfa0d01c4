package nn

import "github.com/shoal-mp/shoal/autograd"

// A MaxPool2d layer returns the largest element of each window. Sizes are pixels: height, then
// width.
type MaxPool2d struct {
	Size    [2]int
	Stride  [2]int // zero: Size
	Padding [2]int
	Ceil    bool // round sizes up: PyTorch's ceil_mode
}

// NewMaxPool2d returns a layer with square windows of size pixels, side by side.
func NewMaxPool2d(size int) *MaxPool2d {
	checkSizes("NewMaxPool2d", size)
	return &MaxPool2d{Size: [2]int{size, size}}
}

// Forward takes x (N, C, H, W) and returns (N, C, H', W').
func (m *MaxPool2d) Forward(x *autograd.Var) *autograd.Var {
	return autograd.MaxPool2d(x, autograd.Window{Size: m.Size, Stride: m.Stride, Padding: m.Padding, Ceil: m.Ceil})
}

// An AvgPool2d layer returns the mean of each window. Padding counts as zeros, unless InsideOnly is
// set. Sizes are pixels: height, then width.
type AvgPool2d struct {
	Size    [2]int
	Stride  [2]int // zero: Size
	Padding [2]int
	Ceil    bool // round sizes up: PyTorch's ceil_mode

	InsideOnly bool // leave padding out of the mean: PyTorch's count_include_pad=False
}

// NewAvgPool2d returns a layer with square windows of size pixels, side by side.
func NewAvgPool2d(size int) *AvgPool2d {
	checkSizes("NewAvgPool2d", size)
	return &AvgPool2d{Size: [2]int{size, size}}
}

// Forward takes x (N, C, H, W) and returns (N, C, H', W').
func (a *AvgPool2d) Forward(x *autograd.Var) *autograd.Var {
	return autograd.AvgPool2d(x, autograd.Window{Size: a.Size, Stride: a.Stride, Padding: a.Padding,
		Ceil: a.Ceil, InsideOnly: a.InsideOnly})
}
