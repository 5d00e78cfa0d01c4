package kernel

// ConvShape is the geometry of a two-dimensional convolution: N images of C channels and H×W
// pixels, OutC filters of KH×KW, moved by StrideH and StrideW over images that are padded with PadH
// and PadW zeros on each side.
//
// With Groups, which divides C and OutC, each part of the filters sees only its part of the
// channels: a filter is (C/Groups, KH, KW). Neighbours in a filter see pixels that are DilationH
// and DilationW apart. Zero stands for 1 in these three.
type ConvShape struct{ N, C, H, W, OutC, KH, KW, StrideH, StrideW, PadH, PadW, Groups, DilationH, DilationW int }

// OutH is how many rows an output image has.
func (s ConvShape) OutH() int { return (s.H+2*s.PadH-(s.KH-1)*max(1, s.DilationH)-1)/s.StrideH + 1 }

// OutW is how many columns an output image has.
func (s ConvShape) OutW() int { return (s.W+2*s.PadW-(s.KW-1)*max(1, s.DilationW)-1)/s.StrideW + 1 }

// operations is the cost of the whole convolution.
func (s ConvShape) operations() int {
	return s.N * s.OutC * s.OutH() * s.OutW() * s.C / max(1, s.Groups) * s.KH * s.KW
}

// dilated reports whether pixels that a filter sees are not neighbours.
func (s ConvShape) dilated() bool { return s.DilationH > 1 && s.KH > 1 || s.DilationW > 1 && s.KW > 1 }

// check panics unless the geometry has a positive result.
func (s ConvShape) check() {
	switch {
	case s.N < 0 || s.C < 1 || s.OutC < 1 || s.KH < 1 || s.KW < 1:
		panic("kernel: a convolution needs channels, filters and a filter size of at least 1")
	case s.StrideH < 1 || s.StrideW < 1 || s.PadH < 0 || s.PadW < 0:
		panic("kernel: a convolution needs strides of at least 1 and no negative padding")
	case s.Groups < 0 || s.DilationH < 0 || s.DilationW < 0 || s.C%max(1, s.Groups) != 0 ||
		s.OutC%max(1, s.Groups) != 0:
		panic("kernel: the groups of a convolution divide its channels and its filters, and no dilation is negative")
	case s.H+2*s.PadH < (s.KH-1)*max(1, s.DilationH)+1 || s.W+2*s.PadW < (s.KW-1)*max(1, s.DilationW)+1:
		panic("kernel: the filter of a convolution is larger than its padded image")
	}
}

// A geometry is a convolution with the sizes that follow from its shape, which loops do not divide
// for again. Of one with groups it is that of each of them: C and OutC are those of a group, which
// lies in larger images.
type geometry struct {
	ConvShape
	outH, outW int
	image      int // size of an input image
	step       int // from one to the next
	outStep    int // from one output image to the next
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
	g := geometry{ConvShape: s, outH: s.OutH(), outW: s.OutW()}
	g.area = g.outH * g.outW
	g.step, g.outStep = s.C*s.H*s.W, s.OutC*g.area
	g.Groups = max(1, s.Groups)
	g.C, g.OutC = s.C/g.Groups, s.OutC/g.Groups
	g.image, g.patch = g.C*s.H*s.W, g.C*s.KH*s.KW
	g.taps, g.remainders = (s.KH-1)/s.StrideH+1, min(s.StrideH, s.KH)
	g.planeH = g.taps - 1 + g.outH
	g.plane = g.planeH * g.outW
	g.unfolded = g.C * s.KW * g.remainders * g.plane
	g.padded = s.W + 2*s.PadW
	g.spread = g.outH * g.padded * s.KH * g.C
	g.framed = g.plane + (g.taps-1)*g.outW
	return g
}

// parts calls do for each group with where it begins, in images, filters, biases and output images.
func (g *geometry) parts(do func(image, filters, bias, out int)) {
	for i := range g.Groups {
		do(i*g.image, i*g.OutC*g.patch, i*g.OutC, i*g.OutC*g.area)
	}
}

// from is x from element i on, or nil if it is nil or has none.
func from[F Float](x []F, i int) []F {
	if i >= len(x) {
		return nil
	}
	return x[i:]
}
