package kernel

// Conv2d overwrites y (N, OutC, OutH, OutW) with the cross-correlation of x (N, C, H, W) with the filters w
// (OutC, C, KH, KW), plus bias (OutC) unless it is nil. Images are divided between Threads goroutines.
func Conv2d[F Float](s ConvShape, x, w, bias, y []F, scratch *Scratch) {
	s.check()
	parts := workers(s.N, s.operations())
	size := s.patch() * s.area()
	cols := borrow[F](scratch, columns, parts*size)
	if parts == 1 {
		convolve(s, x, w, bias, y, cols, 0, s.N)
		return
	}
	fork(parts, s.N, func(worker, lo, hi int) {
		convolve(s, x, w, bias, y, cols[worker*size:][:size], lo, hi)
	})
}

// convolve is Conv2d for images lo to hi.
func convolve[F Float](s ConvShape, x, w, bias, y, cols []F, lo, hi int) {
	image, area, patch := s.image(), s.area(), s.patch()
	for n := lo; n < hi; n++ {
		im2col(s, x[n*image:][:image], cols)
		out := y[n*s.OutC*area:][:s.OutC*area]
		var beta F
		if bias != nil {
			spread(bias[:s.OutC], area, out)
			beta = 1
		}
		gemm(false, false, s.OutC, area, patch, 1, w, patch, cols, area, beta, out, area)
	}
}

// spread fills row i of y, of the given width, with b[i].
func spread[F Float](b []F, width int, y []F) {
	for i, v := range b {
		row := y[i*width:][:width]
		for j := range row {
			row[j] = v
		}
	}
}
