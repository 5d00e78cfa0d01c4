package kernel

// An unfolded image stores the patches of an image as the columns of a matrix with overlapping
// rows.
//
// For each channel c, filter column kw and remainder r of a row modulo the stride, it has a plane
// of all pixels that are used: row q, column ow of the plane is pixel (q·StrideH + r - PadH,
// ow·StrideW + kw - PadW), or zero outside the image. The pixels that the output sees at (c, kh,
// kw) therefore form a contiguous range, which begins kh/StrideH rows down the plane of remainder
// kh mod StrideH. An unfolded image takes KW times the space of the image. A matrix of patches
// (im2col) would take KH·KW times the space.

// unfoldedRows overwrites off with the offset in an unfolded image of each row of the matrix of
// patches, in the order of the filters' elements.
func (g *geometry) unfoldedRows(off []int) {
	i := 0
	for c := range g.C {
		for kh := range g.KH {
			for kw := range g.KW {
				off[i] = ((c*g.KW+kw)*g.remainders+kh%g.StrideH)*g.plane + kh/g.StrideH*g.outW
				i++
			}
		}
	}
}

// unfold writes image x in unfolded form to u, which must have g.unfolded elements.
func (p *loops[F]) unfold(g *geometry, x, u []F) {
	if g.PadH > 0 || g.PadW > 0 || g.StrideH > 1 {
		clear(u[:g.unfolded])
	}
	g.eachPlane(func(pixel, place, rows, cols int) {
		if g.StrideW == 1 {
			p.copyRows(rows, cols, &x[pixel], g.StrideH*g.W, &u[place], g.outW)
			return
		}
		for r := range rows {
			from, to := x[pixel+r*g.StrideH*g.W:], u[place+r*g.outW:]
			for i := range to[:cols] {
				to[i] = from[i*g.StrideW]
			}
		}
	})
}

// fold adds the elements of an unfolded image to the pixels of x that they were copied from. It is
// the transpose of unfold.
func (p *loops[F]) fold(g *geometry, u, x []F) {
	g.eachPlane(func(pixel, place, rows, cols int) {
		if g.StrideW == 1 {
			p.addRows(rows, cols, &u[place], g.outW, &x[pixel], g.StrideH*g.W)
			return
		}
		for r := range rows {
			from, to := u[place+r*g.outW:], x[pixel+r*g.StrideH*g.W:]
			for i, v := range from[:cols] {
				to[i*g.StrideW] += v
			}
		}
	})
}

// eachPlane calls do for the part of the image that each plane of an unfolded image contains:
// rows×cols elements that begin at offset pixel of the image and at offset place of the
// unfolded image. In the image, rows are StrideH·W apart and columns StrideW.
func (g *geometry) eachPlane(do func(pixel, place, rows, cols int)) {
	for kw := range g.KW {
		left, right := insideRange(g.W, g.outW, g.StrideW, g.PadW, kw)
		for r := range g.remainders {
			top, bottom := insideRange(g.H, g.planeH, g.StrideH, g.PadH, r)
			if left == right || top == bottom {
				continue
			}
			pixel := (top*g.StrideH-g.PadH+r)*g.W + left*g.StrideW - g.PadW + kw
			for c := range g.C {
				plane := (c*g.KW+kw)*g.remainders + r
				do(c*g.H*g.W+pixel, plane*g.plane+top*g.outW+left, bottom-top, right-left)
			}
		}
	}
}

// insideRange returns the range, from lo to hi-1, of the n positions with pixels inside an
// image of the given size. k is the offset of the first pixel from the padded edge.
func insideRange(size, n, stride, pad, k int) (lo, hi int) {
	lo = min(n, max(0, (pad-k+stride-1)/stride))
	hi = max(lo, min(n, (size+pad-k+stride-1)/stride))
	return lo, hi
}
