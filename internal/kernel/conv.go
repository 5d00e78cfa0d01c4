package kernel

// Conv2d overwrites y (N, OutC, OutH, OutW) with the cross-correlation of x (N, C, H, W) and
// the filters w (OutC, C/Groups, KH, KW), plus bias (OutC) if it is not nil. It panics if s is
// out of range or the output would be empty. Images are divided between [Threads] goroutines.
func Conv2d[F Float](s ConvShape, x, w, bias, y []F, scratch *Scratch) {
	g := newGeometry(s)
	if s.isDilated() {
		dilatedConv2d(&g, x, w, bias, y, scratch)
		return
	}
	g.eachGroup(func(image, filters, b, out int) {
		convGroup(&g, sliceFrom(x, image), sliceFrom(w, filters), sliceFrom(bias, b), sliceFrom(y, out), scratch)
	})
}

// convGroup computes the convolution of one channel group. All slices must begin with the
// elements of the group; bias may be nil.
func convGroup[F Float](g *geometry, x, w, bias, y []F, scratch *Scratch) {
	s := &g.ConvShape
	c := newForward(g, x, w, bias, y, scratch)
	if parts := workerCount(s.N, s.multiplications()/g.Groups); parts > 1 {
		c.split(parts, scratch)
	} else {
		c.convolveImages(0, s.N, borrowSlice[F](scratch, images, c.unfolded+c.area))
	}
}

// forward is a convolution in progress. For each image it is the product of the filters and the
// unfolded image. If there is a bias, it is the last column of the filters, and the unfolded image
// has a row of ones.
type forward[F Float] struct {
	*loops[F]
	geometry
	x, y    []F
	filters operand[F]
	off     []int // offsets of the rows in the unfolded image
}

func newForward[F Float](s *geometry, x, w, bias, y []F, scratch *Scratch) forward[F] {
	c := forward[F]{loops: loopsFor[F](), geometry: *s, x: x, y: y}
	patch := c.patch
	c.filters = operand[F]{data: w[:s.OutC*patch], row: patch, col: 1}
	rows := patch
	if bias != nil {
		rows++
		c.filters = operand[F]{data: borrowSlice[F](scratch, filters, s.OutC*rows), row: rows, col: 1}
		for i, b := range bias[:s.OutC] {
			row := c.filters.data[i*rows:][:rows]
			copy(row, w[i*patch:])
			row[patch] = b
		}
	}
	c.off = borrowSlice[int](scratch, offsets, rows)[:rows]
	c.unfoldedRows(c.off)
	if bias != nil {
		c.off[patch] = c.unfolded
	}
	return c
}

func (c forward[F]) split(parts int, scratch *Scratch) {
	room := c.unfolded + c.area
	space := borrowSlice[F](scratch, images, parts*room)
	runRanges(parts, c.N, func(worker, lo, hi int) { c.convolveImages(lo, hi, space[worker*room:][:room]) })
}

// convolveImages convolves images lo to hi-1. It overwrites space, which must have
// c.unfolded+c.area elements.
func (c *forward[F]) convolveImages(lo, hi int, space []F) {
	ones := space[c.unfolded:]
	for i := range ones {
		ones[i] = 1
	}
	for n := lo; n < hi; n++ {
		c.unfold(&c.geometry, c.x[n*c.step:], space)
		c.multiplyPacked(c.OutC, c.area, len(c.off), 1, &c.filters, space, c.off, false, c.y[n*c.outStep:], c.area)
	}
}
