package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// Conv2d is a layer that computes the cross-correlation of images with learned filters. Pairs are
// height first, then width.
type Conv2d struct {
	Weight   *autograd.Param  // (out, in, KH, KW), where in is the number of channels per group
	Bias     *autograd.Param  // (out), or nil
	Stride   [2]int           // pixels from window to window; 0 means 1
	Padding  [2]int           // pixels on each side: rows above and below, columns left and right
	Dilation [2]int           // spacing of the filter's pixels; 0 means 1
	Groups   int              // number of channel groups with separate filters; 0 means 1
	Mode     autograd.PadMode // how padding is filled; the zero value pads with zeros
	Same     bool             // keep the size of the image and ignore Padding: padding="same"
}

// NewConv2d returns a Float32 layer from in to out channels with square filters of size pixels,
// stride 1 and no padding. Parameters are initialised as in PyTorch, with random numbers from g, or
// from the default generator if g is nil. It panics with an error that wraps [tensor.ErrArgument]
// if a size is less than 1.
//
// The caller may set Stride, Padding and Groups afterwards. With Groups, in must be the number of
// channels of one group, because a filter sees no others. A depthwise convolution of 32 channels is
//
//	c := nn.NewConv2d(1, 32, 3, g)
//	c.Groups = 32
func NewConv2d(in, out, size int, g *tensor.Generator) *Conv2d {
	checkSizes("NewConv2d", in, out, size)
	fanIn := in * size * size
	return &Conv2d{Weight: uniformParam("weight", fanIn, g, out, in, size, size),
		Bias: uniformParam("bias", fanIn, g, out)}
}

// Forward returns the convolution, (N, out, H', W'), of x, (N, Groups·in, H, W). With Same the
// stride must be 1; otherwise Forward panics with an error that wraps [tensor.ErrArgument].
func (c *Conv2d) Forward(x *autograd.Var) *autograd.Var {
	return c.convolve(x, c.Weight.Var())
}

func (c *Conv2d) convolve(x, w *autograd.Var) *autograd.Var {
	o := autograd.Window{Stride: c.Stride, Padding: c.Padding, Dilation: c.Dilation, Groups: c.Groups}
	pads := [2][2]int{{c.Padding[0], c.Padding[0]}, {c.Padding[1], c.Padding[1]}}
	if c.Same {
		pads = c.samePadding(w)
	}
	if c.Mode != autograd.PadZeros || pads[0][0] != pads[0][1] || pads[1][0] != pads[1][1] {
		x, pads = autograd.Pad2d(x, pads, c.Mode), [2][2]int{}
	}
	o.Padding = [2]int{pads[0][0], pads[1][0]}
	return autograd.Conv2d(x, w, varOrNil(c.Bias), o)
}

// samePadding returns the padding that keeps the size of the input. If the total is odd, the extra
// pixel goes after the input, as in PyTorch.
func (c *Conv2d) samePadding(w *autograd.Var) (p [2][2]int) {
	for i := range p {
		if c.Stride[i] > 1 {
			misuse(tensor.ErrArgument, "convolution with Same: got stride %v, want 1", c.Stride)
		}
		total := max(1, c.Dilation[i]) * (w.Shape()[2+i] - 1)
		p[i] = [2]int{total / 2, total - total/2}
	}
	return p
}

// Conv1d is a layer that computes the cross-correlation of sequences with learned filters.
type Conv1d struct {
	Weight   *autograd.Param  // (out, in, K), where in is the number of channels per group
	Bias     *autograd.Param  // (out), or nil
	Stride   int              // elements from window to window; 0 means 1
	Padding  int              // elements before and after a sequence
	Dilation int              // spacing of the filter's elements; 0 means 1
	Groups   int              // number of channel groups with separate filters; 0 means 1
	Mode     autograd.PadMode // how padding is filled; the zero value pads with zeros
	Same     bool             // keep the length of the sequence and ignore Padding
}

// NewConv1d returns a Float32 layer from in to out channels with filters of size elements, stride 1
// and no padding. Parameters are initialised as in PyTorch, with random numbers from g, or from the
// default generator if g is nil. It panics with an error that wraps [tensor.ErrArgument] if a size
// is less than 1. To use Groups, set it afterwards; in must then be the number of channels of one
// group, as for [NewConv2d].
func NewConv1d(in, out, size int, g *tensor.Generator) *Conv1d {
	checkSizes("NewConv1d", in, out, size)
	fanIn := in * size
	return &Conv1d{Weight: uniformParam("weight", fanIn, g, out, in, size), Bias: uniformParam("bias", fanIn, g, out)}
}

// Forward returns the convolution, (N, out, L'), of x. x must be (N, Groups·in, L), where in is the
// number of channels per group; otherwise Forward panics with an error that wraps
// [tensor.ErrShape].
func (c *Conv1d) Forward(x *autograd.Var) *autograd.Var {
	if len(x.Shape()) != 3 {
		misuse(tensor.ErrShape, "Conv1d: got shape %v, want (N, in, L)", x.Shape())
	}
	flat := &Conv2d{Bias: c.Bias, Stride: [2]int{1, max(1, c.Stride)}, Padding: [2]int{0, c.Padding},
		Dilation: [2]int{1, max(1, c.Dilation)},
		Groups:   c.Groups, Mode: c.Mode, Same: c.Same}
	return autograd.Squeeze(flat.convolve(autograd.Unsqueeze(x, 2), autograd.Unsqueeze(c.Weight.Var(), 2)), 2)
}
