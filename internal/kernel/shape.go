package kernel

// ConvShape is the geometry of a two-dimensional convolution: N images of C channels and H×W pixels, OutC filters of
// KH×KW, moved by StrideH and StrideW over images that are padded with PadH and PadW zeros on each side.
type ConvShape struct{ N, C, H, W, OutC, KH, KW, StrideH, StrideW, PadH, PadW int }

// OutH is how many rows an output image has.
func (s ConvShape) OutH() int { return (s.H+2*s.PadH-s.KH)/s.StrideH + 1 }

// OutW is how many columns an output image has.
func (s ConvShape) OutW() int { return (s.W+2*s.PadW-s.KW)/s.StrideW + 1 }

// operations is the cost of the whole convolution.
func (s ConvShape) operations() int { return s.N * s.OutC * s.OutH() * s.OutW() * s.C * s.KH * s.KW }

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

// A geometry is a convolution with the sizes that follow from its shape, which loops do not divide for again.
type geometry struct {
	ConvShape
	outH, outW int
	image      int // size of an input image
	area       int // size of a channel of the output
	patch      int // size of a filter: what one output pixel sees

	// Of an unfolded image, see unfold.
	taps       int // how many rows of the filters meet in a plane, at most
	remainders int // how many planes there are for a column of the filters
	planeH     int // rows of a plane
	plane      int // size of one
	unfolded   int // size of all

	padded int // columns of an image with its padding
	spread int // size of an image spread out, see spreadOut
	framed int // size of a channel of the output with zeros above and below, see imageGradient
}

func newGeometry(s ConvShape) geometry {
	s.check()
	g := geometry{ConvShape: s, outH: s.OutH(), outW: s.OutW(), image: s.C * s.H * s.W, patch: s.C * s.KH * s.KW}
	g.area = g.outH * g.outW
	g.taps, g.remainders = (s.KH-1)/s.StrideH+1, min(s.StrideH, s.KH)
	g.planeH = g.taps - 1 + g.outH
	g.plane = g.planeH * g.outW
	g.unfolded = s.C * s.KW * g.remainders * g.plane
	g.padded = s.W + 2*s.PadW
	g.spread = g.outH * g.padded * s.KH * s.C
	g.framed = g.plane + (g.taps-1)*g.outW
	return g
}
