package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// A Conv2d layer is a cross-correlation of images with learned filters. Each pair has the height
// first, then the width.
type Conv2d struct {
	Weight   *autograd.Param  // (out, in, KH, KW), where in is the number of channels of one group
	Bias     *autograd.Param  // (out), or nil
	Stride   [2]int           // pixels from window to window; zero: 1
	Padding  [2]int           // pixels on each side: rows above and below, columns left and right
	Dilation [2]int           // distance of the pixels under a filter; zero: 1
	Groups   int              // groups of channels with filters of their own; zero: 1
	Mode     autograd.PadMode // pixels of the padding; zero: zeros
	Same     bool             // pad so that an image keeps its size, instead of Padding: padding="same"
}

// NewConv2d returns a Float32 layer from in to out channels with square filters of size pixels,
// stride 1 and no padding. It is initialised as PyTorch's, with numbers from g, or from the default
// generator if g is nil. Set Stride, Padding and Groups afterwards. With Groups, in is the number
// of channels of one group, since a filter sees no others: a depthwise convolution of 32 channels
// is
//
//	c := nn.NewConv2d(1, 32, 3, g)
//	c.Groups = 32
func NewConv2d(in, out, size int, g *tensor.Generator) *Conv2d {
	checkSizes("NewConv2d", in, out, size)
	fanIn := in * size * size
	return &Conv2d{Weight: uniform("weight", fanIn, g, out, in, size, size), Bias: uniform("bias", fanIn, g, out)}
}

// Forward takes x (N, Groups·in, H, W) and returns (N, out, H', W').
func (c *Conv2d) Forward(x *autograd.Var) *autograd.Var {
	return c.convolved(x, c.Weight.Var())
}

func (c *Conv2d) convolved(x, w *autograd.Var) *autograd.Var {
	o := autograd.Window{Stride: c.Stride, Padding: c.Padding, Dilation: c.Dilation, Groups: c.Groups}
	pads := [2][2]int{{c.Padding[0], c.Padding[0]}, {c.Padding[1], c.Padding[1]}}
	if c.Same {
		pads = c.same(w)
	}
	if c.Mode != autograd.PadZeros || pads[0][0] != pads[0][1] || pads[1][0] != pads[1][1] {
		x, pads = autograd.Pad2d(x, pads, c.Mode), [2][2]int{}
	}
	o.Padding = [2]int{pads[0][0], pads[1][0]}
	return autograd.Conv2d(x, w, optional(c.Bias), o)
}

// same is as much as a filter covers beside a pixel, the larger half after it.
func (c *Conv2d) same(w *autograd.Var) (p [2][2]int) {
	for i := range p {
		if c.Stride[i] > 1 {
			misuse(tensor.ErrArgument, "a convolution with stride %v keeps no size: Same needs stride 1", c.Stride)
		}
		total := max(1, c.Dilation[i]) * (w.Shape()[2+i] - 1)
		p[i] = [2]int{total / 2, total - total/2}
	}
	return p
}

// A Conv1d layer is a cross-correlation of sequences with learned filters.
type Conv1d struct {
	Weight   *autograd.Param  // (out, in, K), where in is the number of channels of one group
	Bias     *autograd.Param  // (out), or nil
	Stride   int              // elements from window to window; zero: 1
	Padding  int              // elements before and after a sequence
	Dilation int              // distance of the elements under a filter; zero: 1
	Groups   int              // groups of channels with filters of their own; zero: 1
	Mode     autograd.PadMode // elements of the padding; zero: zeros
	Same     bool             // pad so that a sequence keeps its length, instead of Padding
}

// NewConv1d returns a Float32 layer from in to out channels with filters of size elements, stride 1
// and no padding. It is initialised as PyTorch's, with numbers from g, or from the default
// generator if g is nil. To use Groups, set it afterwards, and give the channels of one group as
// in: see [NewConv2d].
func NewConv1d(in, out, size int, g *tensor.Generator) *Conv1d {
	checkSizes("NewConv1d", in, out, size)
	fanIn := in * size
	return &Conv1d{Weight: uniform("weight", fanIn, g, out, in, size), Bias: uniform("bias", fanIn, g, out)}
}

// Forward takes x (N, Groups·in, L) and returns (N, out, L').
func (c *Conv1d) Forward(x *autograd.Var) *autograd.Var {
	if len(x.Shape()) != 3 {
		misuse(tensor.ErrShape, "Conv1d of shape %v: it takes sequences (N, in, L)", x.Shape())
	}
	flat := &Conv2d{Bias: c.Bias, Stride: [2]int{1, max(1, c.Stride)}, Padding: [2]int{0, c.Padding},
		Dilation: [2]int{1, max(1, c.Dilation)},
		Groups:   c.Groups, Mode: c.Mode, Same: c.Same}
	return autograd.Squeeze(flat.convolved(autograd.Unsqueeze(x, 2), autograd.Unsqueeze(c.Weight.Var(), 2)), 2)
}
