package kernel

// An unfolded image is where the patches of an image are the columns of a matrix whose rows lie in
// it, overlapping. For each channel c, column kw of the filters and remainder r of a row by the
// stride it has the plane of all pixels that meet: row q, column ow of it is pixel (q·StrideH + r -
// PadH, ow·StrideW + kw - PadW), or zero outside of the image. So what the output pixels see at (c,
// kh, kw) begins kh/StrideH rows down the plane of remainder kh mod StrideH and lies there in one
// piece. It takes KW times the space of the image, where a matrix of patches takes KH·KW times.

// unfoldedRows writes to off where the rows of the matrix begin, in the order of the filters'
// elements.
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

// unfold writes image x unfolded to u.
func (p *loops[F]) unfold(g *geometry, x, u []F) {
	if g.PadH > 0 || g.PadW > 0 || g.StrideH > 1 {
		clear(u[:g.unfolded])
	}
	g.pieces(func(pixel, place, rows, cols int) {
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

// fold adds what an unfolded image has to the pixels of x that it came from: the transpose of
// unfold.
func (p *loops[F]) fold(g *geometry, u, x []F) {
	g.pieces(func(pixel, place, rows, cols int) {
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

// pieces calls do for what each plane of an unfolded image has of the image: so many rows and
// columns, from that pixel on and to that place.
func (g *geometry) pieces(do func(pixel, place, rows, cols int)) {
	for kw := range g.KW {
		left, right := inside(g.W, g.outW, g.StrideW, g.PadW, kw)
		for r := range g.remainders {
			top, bottom := inside(g.H, g.planeH, g.StrideH, g.PadH, r)
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

// inside is the range of n places whose pixel, k and so many strides from the padded edge, is
// inside an image of the given size.
func inside(size, n, stride, pad, k int) (lo, hi int) {
	lo = min(n, max(0, (pad-k+stride-1)/stride))
	hi = max(lo, min(n, (size+pad-k+stride-1)/stride))
	return lo, hi
}
