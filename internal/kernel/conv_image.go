package kernel

// imageGradient overwrites dx with the gradient of the images: what an image has unfolded gets the
// product of the turned filters and dy, and is folded. A row of a plane gets something from each
// row of the filters whose output row is above it: with zeros above and below dy that is a product
// again, of filters with (kh, channel of the output) as columns, and dy as many rows further up.
func imageGradient[F Float](s *geometry, w, dy, dx []F, parts int, scratch *Scratch) {
	g := backImage[F]{loops: inner[F](), geometry: *s, dy: dy, dx: dx}
	g.turned = borrow[F](scratch, filters, s.OutC*s.patch)
	turnFilters(s, w, g.turned)
	g.off = borrow[int](scratch, offsets, s.taps*s.OutC)[:s.taps*s.OutC]
	for i := range g.off {
		t, o := i/s.OutC, i%s.OutC
		g.off[i] = o*s.framed + (s.taps-1-t)*s.outW
	}
	space := borrow[F](scratch, images, parts*g.room())
	if parts > 1 {
		g.split(parts, space)
	} else {
		g.images(0, s.N, space)
	}
}

type backImage[F Float] struct {
	*loops[F]
	geometry
	dy, dx []F
	turned []F   // filters as (kh, o) by (c, kw), those of each remainder of kh together
	off    []int // of the rows of framed dy
}

// tapsOf is how many rows of the filters have remainder r.
func (g *geometry) tapsOf(r int) int { return (g.KH-1-r)/g.StrideH + 1 }

// turnFilters writes to t, for each remainder r and tap, kh = r + tap·StrideH, and each channel o
// of the output, w[o, :, kh, :].
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

// room is the space for an unfolded image and a framed dy.
func (g *backImage[F]) room() int { return g.unfolded + g.OutC*g.framed }

func (g backImage[F]) split(parts int, space []F) {
	fork(parts, g.N, func(worker, lo, hi int) { g.images(lo, hi, space[worker*g.room():][:g.room()]) })
}

// images computes the gradients of images lo to hi.
func (g *backImage[F]) images(lo, hi int, space []F) {
	u, frame := space[:g.unfolded], space[g.unfolded:g.room()]
	clear(frame)
	edge, area := (g.taps-1)*g.outW, g.area
	for n := lo; n < hi; n++ {
		g.copyRows(g.OutC, area, &g.dy[n*g.outStep], area, &frame[edge], g.framed)
		turned := g.turned
		for r := range g.remainders {
			g.planes(r, turned, frame, u[r*g.plane:])
			turned = turned[g.tapsOf(r)*g.OutC*g.C*g.KW:]
		}
		dx := g.dx[n*g.step:][:g.image]
		clear(dx)
		g.fold(&g.geometry, u, dx)
	}
}

// planes computes the planes of remainder r, as many columns at a time as a tile has, and leaves
// the taps out that meet zeros alone.
func (g *backImage[F]) planes(r int, turned, frame, u []F) {
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
		g.multiply(rows, n, (hi-lo)*g.OutC, 1, &a, frame[j:], g.off[lo*g.OutC:], false, u[j:], distance)
	}
}
