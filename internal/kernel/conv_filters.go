package kernel

// filterGradient adds the gradient of the filters of one channel group to dw, on parts
// goroutines. It is for each image the product of dy and a matrix with one patch per row. The
// image is first spread out so that each patch is contiguous; patches may overlap. For each row
// of the output the spread image holds the pixels of its KH input rows and all channels, column
// by column.
func filterGradient[F Float](s *geometry, x, dy, dw []F, parts int, scratch *Scratch) {
	n, size := imageGroups(s.N), s.OutC*s.patch
	g := filterSum[F]{loops: loopsFor[F](), geometry: *s, x: x, dy: dy,
		sums: borrowSlice[F](scratch, gradients, max(n, 1)*size)}
	off := borrowSlice[int](scratch, offsets, s.area+s.KH*s.C)
	g.patches, g.rows = off[:s.area], off[s.area:]
	s.spreadPatches(g.patches)
	s.spreadRows(g.rows)
	space := borrowSlice[F](scratch, images, parts*s.spread)
	if parts > 1 {
		g.split(parts, space)
	} else {
		g.sumGroups(0, n, space)
	}
	for i := 1; i < n; i++ {
		Axpy(1, g.sums[i*size:][:size], g.sums[:size])
	}
	if n > 0 {
		addReordered(s, g.sums[:size], dw)
	}
}

type filterSum[F Float] struct {
	*loops[F]
	geometry
	x, dy         []F
	sums          []F   // for each group, with filter elements in the order kw, kh, c
	patches, rows []int // offsets in the spread image and in the image
}

func (g filterSum[F]) split(parts int, space []F) {
	runRanges(parts, imageGroups(g.N), func(worker, lo, hi int) { g.sumGroups(lo, hi, space[worker*g.spread:]) })
}

// sumGroups overwrites the sums of image groups lo to hi-1. It overwrites space, which must
// have g.spread elements.
func (g *filterSum[F]) sumGroups(lo, hi int, space []F) {
	n, size := imageGroups(g.N), g.OutC*g.patch
	for i := lo; i < hi; i++ {
		sum := g.sums[i*size:][:size]
		first := i * g.N / n
		for image := first; image < (i+1)*g.N/n; image++ {
			g.spreadOut(g.x[image*g.step:], space)
			a := operand[F]{data: g.dy[image*g.outStep:], row: g.area, col: 1}
			g.multiplyPacked(g.OutC, g.patch, g.area, 1, &a, space, g.patches, image > first, sum, g.patch)
		}
	}
}

// spreadPatches overwrites off with the offset in the spread image of each output pixel's
// patch.
func (g *geometry) spreadPatches(off []int) {
	for i := range off {
		off[i] = (i/g.outW*g.padded + i%g.outW*g.StrideW) * g.KH * g.C
	}
}

// spreadRows writes to off the offsets, in an image without padding, of the rows of pixels that
// belong to the first row of the output.
func (g *geometry) spreadRows(off []int) {
	for i := range off {
		off[i] = i%g.C*g.H*g.W + i/g.C*g.W
	}
}

// spreadOut writes image x in spread form to e, which must have g.spread elements.
func (g *filterSum[F]) spreadOut(x, e []F) {
	if g.PadH > 0 || g.PadW > 0 {
		clear(e[:g.spread])
	}
	rows := g.KH * g.C
	for oh := range g.outH {
		top := oh*g.StrideH - g.PadH
		lo, hi := max(0, -top), min(g.KH, g.H-top) // rows inside the image
		if lo >= hi {
			continue
		}
		from, to := x[max(0, top)*g.W:], e[(oh*g.padded+g.PadW)*rows+lo*g.C:]
		for i := 0; i < (hi-lo)*g.C; i += g.columns {
			g.transpose(min(g.columns, (hi-lo)*g.C-i), g.W, &from[0], &g.rows[i], &to[i], rows)
		}
	}
}

// addReordered adds sum, with filter elements in the order kw, kh, c, to dw, which has the order c,
// kh, kw.
func addReordered[F Float](s *geometry, sum, dw []F) {
	i := 0
	for range s.OutC {
		for kw := range s.KW {
			for kh := range s.KH {
				for c := range s.C {
					dw[(c*s.KH+kh)*s.KW+kw] += sum[i]
					i++
				}
			}
		}
		dw = dw[s.patch:]
	}
}
