package kernel

// ConvShape is the geometry of a two-dimensional convolution: N images of C channels and H×W
// pixels, OutC filters of KH×KW with strides StrideH and StrideW, and a padding of PadH and PadW
// zeros on each side.
//
// Groups must divide C and OutC. Each group of filters then sees only its group of channels: a
// filter is (C/Groups, KH, KW). Adjacent elements of a filter see pixels that are DilationH and
// DilationW apart. Zero stands for 1 in Groups, DilationH and DilationW.
type ConvShape struct{ N, C, H, W, OutC, KH, KW, StrideH, StrideW, PadH, PadW, Groups, DilationH, DilationW int }

// OutH returns the height of an output image.
func (s ConvShape) OutH() int { return (s.H+2*s.PadH-(s.KH-1)*max(1, s.DilationH)-1)/s.StrideH + 1 }

// OutW returns the width of an output image.
func (s ConvShape) OutW() int { return (s.W+2*s.PadW-(s.KW-1)*max(1, s.DilationW)-1)/s.StrideW + 1 }

// multiplications returns the number of multiplications of the whole convolution.
func (s ConvShape) multiplications() int {
	return s.N * s.OutC * s.OutH() * s.OutW() * s.C / max(1, s.Groups) * s.KH * s.KW
}

// isDilated reports whether the pixels that a filter sees are not adjacent.
func (s ConvShape) isDilated() bool {
	return s.DilationH > 1 && s.KH > 1 || s.DilationW > 1 && s.KW > 1
}

// check panics if a field is out of range or the output would be empty.
func (s ConvShape) check() {
	switch {
	case s.N < 0 || s.C < 1 || s.OutC < 1 || s.KH < 1 || s.KW < 1:
		panic("kernel: convolution: want channels, filters and a filter size of at least 1")
	case s.StrideH < 1 || s.StrideW < 1 || s.PadH < 0 || s.PadW < 0:
		panic("kernel: convolution: want strides of at least 1 and padding of 0 or more")
	case s.Groups < 0 || s.DilationH < 0 || s.DilationW < 0 || s.C%max(1, s.Groups) != 0 ||
		s.OutC%max(1, s.Groups) != 0:
		panic("kernel: convolution: want groups that divide the channels and the filters, and dilations of 0 or more")
	case s.H+2*s.PadH < (s.KH-1)*max(1, s.DilationH)+1 || s.W+2*s.PadW < (s.KW-1)*max(1, s.DilationW)+1:
		panic("kernel: convolution: filter is larger than the padded image")
	}
}

// geometry is a ConvShape with derived sizes, computed once. If there are groups, C and OutC count
// the channels of one group, which is embedded in larger images.
type geometry struct {
	ConvShape
	outH, outW int
	image      int // size of an input image
	step       int // distance of input images
	outStep    int // distance of output images
	area       int // size of an output channel
	patch      int // size of a filter: pixels per output pixel

	// Sizes of an unfolded image, see unfold.
	taps       int // maximum number of filter rows that use a plane
	remainders int // planes per filter column
	planeH     int // rows of a plane
	plane      int // size of a plane
	unfolded   int // size of the whole unfolded image

	padded int // columns of a padded image
	spread int // size of a spread image, see spreadOut
	framed int // size of an output channel with zeros above and below, see imageGradient
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

// eachGroup calls do for each group with the offsets, in elements, of its parts of the first
// image, the filters, the biases and the first output image.
func (g *geometry) eachGroup(do func(image, filters, bias, out int)) {
	for i := range g.Groups {
		do(i*g.image, i*g.OutC*g.patch, i*g.OutC, i*g.OutC*g.area)
	}
}

// sliceFrom returns x[i:], or nil if x has at most i elements.
func sliceFrom[F Float](x []F, i int) []F {
	if i >= len(x) {
		return nil
	}
	return x[i:]
}
