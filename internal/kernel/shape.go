package kernel

// ConvShape is the geometry of a two-dimensional convolution: N images of C channels and H×W pixels, OutC filters of
// KH×KW, moved by StrideH and StrideW over images that are padded with PadH and PadW zeros on each side.
type ConvShape struct{ N, C, H, W, OutC, KH, KW, StrideH, StrideW, PadH, PadW int }

// OutH is how many rows an output image has.
func (s ConvShape) OutH() int { return (s.H+2*s.PadH-s.KH)/s.StrideH + 1 }

// OutW is how many columns an output image has.
func (s ConvShape) OutW() int { return (s.W+2*s.PadW-s.KW)/s.StrideW + 1 }

// image is the size of one input image.
func (s ConvShape) image() int { return s.C * s.H * s.W }

// area is the size of one output channel.
func (s ConvShape) area() int { return s.OutH() * s.OutW() }

// patch is the size of one filter: what one output pixel sees.
func (s ConvShape) patch() int { return s.C * s.KH * s.KW }

// operations is the cost of the whole convolution.
func (s ConvShape) operations() int { return s.N * s.OutC * s.area() * s.patch() }

// check panics unless the geometry has a positive result.
func (s ConvShape) check() {
	switch {
	case s.N < 0 || s.C < 1 || s.OutC < 1 || s.KH < 1 || s.KW < 1:
		panic("kernel: a convolution needs channels, filters and a filter size of at least 1")
	case s.StrideH < 1 || s.StrideW < 1 || s.PadH < 0 || s.PadW < 0:
		panic("kernel: a convolution needs strides of at least 1 and no negative padding")
	case s.H+2*s.PadH < s.KH || s.W+2*s.PadW < s.KW:
		panic("kernel: the filter of a convolution is larger than its padded image")
	}
}
