package kernel

// imageGradient overwrites dx with the gradient of the images of one channel group, on parts
// goroutines. The gradient of the unfolded image is the product of the reordered filters and
// dy; it is then folded. A row of a plane receives contributions from all rows of the filters
// that use it. With zeros above and below dy this is again one product: its filters have (kh,
// output channel) as columns, and the matching rows of dy are shifted up.
func imageGradient[F Float](s *geometry, w, dy, dx []F, parts int, scratch *Scratch) {
	g := backImage[F]{loops: loopsFor[F](), geometry: *s, dy: dy, dx: dx}
	g.turned = borrowSlice[F](scratch, filters, s.OutC*s.patch)
	turnFilters(s, w, g.turned)
	g.off = borrowSlice[int](scratch, offsets, s.taps*s.OutC)[:s.taps*s.OutC]
	for i := range g.off {
		t, o := i/s.OutC, i%s.OutC
		g.off[i] = o*s.framed + (s.taps-1-t)*s.outW
	}
	space := borrowSlice[F](scratch, images, parts*g.bufferSize())
	if parts > 1 {
		g.split(parts, space)
	} else {
		g.imageGradients(0, s.N, space)
	}
}

type backImage[F Float] struct {
	*loops[F]
	geometry
	dy, dx []F
	turned []F   // filters as (kh, o) by (c, kw), grouped by the remainder of kh
	off    []int // offsets of the rows of the framed dy
}

// tapsOf returns the number of filter rows kh with remainder r: kh mod StrideH = r.
func (g *geometry) tapsOf(r int) int { return (g.KH-1-r)/g.StrideH + 1 }

// turnFilters writes w[o, :, kh, :] to t for each remainder r, each tap with kh = r + tap·StrideH,
// and each output channel o.
func turnFilters[F Float](s *geometry, w, t []F) {
	i := 0
	for r := range s.remainders {
		for kh := r; kh < s.KH; kh += s.StrideH {
			for o := range s.OutC {
				for c := range s.C {
					i += copy(t[i:], w[((o*s.C+c)*s.KH+kh)*s.KW:][:s.KW])
				}
			}
		}
	}
}

// bufferSize returns the number of elements of an unfolded image and a framed dy, the space of
// one worker.
func (g *backImage[F]) bufferSize() int { return g.unfolded + g.OutC*g.framed }

func (g backImage[F]) split(parts int, space []F) {
	runRanges(parts, g.N, func(worker, lo, hi int) {
		g.imageGradients(lo, hi,
			space[worker*g.bufferSize():][:g.bufferSize()])
	})
}

// imageGradients computes the gradients of images lo to hi-1. It overwrites space, which must
// have g.bufferSize() elements.
func (g *backImage[F]) imageGradients(lo, hi int, space []F) {
	u, frame := space[:g.unfolded], space[g.unfolded:g.bufferSize()]
	clear(frame)
	edge, area := (g.taps-1)*g.outW, g.area
	for n := lo; n < hi; n++ {
		g.copyRows(g.OutC, area, &g.dy[n*g.outStep], area, &frame[edge], g.framed)
		turned := g.turned
		for r := range g.remainders {
			g.computePlanes(r, turned, frame, u[r*g.plane:])
			turned = turned[g.tapsOf(r)*g.OutC*g.C*g.KW:]
		}
		dx := g.dx[n*g.step:][:g.image]
		clear(dx)
		g.fold(&g.geometry, u, dx)
	}
}

// computePlanes overwrites the planes of remainder r in u, one tile width of columns at a time.
// turned holds the filters of this remainder, and frame is the framed dy. It skips taps that
// would only multiply zeros.
func (g *backImage[F]) computePlanes(r int, turned, frame, u []F) {
	rows, outW, distance := g.C*g.KW, g.outW, g.remainders*g.plane
	for j := 0; j < g.plane; j += g.panelWidth() {
		n := min(g.panelWidth(), g.plane-j)
		lo, hi := max(0, j/outW-g.outH+1), min(g.tapsOf(r)-1, (j+n-1)/outW)+1
		if lo >= hi {
			for i := range rows {
				clear(u[i*distance+j:][:n])
			}
			continue
		}
		a := operand[F]{data: turned[lo*g.OutC*rows:], row: 1, col: rows}
		g.multiplyPacked(rows, n, (hi-lo)*g.OutC, 1, &a, frame[j:], g.off[lo*g.OutC:], false, u[j:], distance)
	}
}
