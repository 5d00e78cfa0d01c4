package kernel

// Conv2dBackward computes the gradients of [Conv2d] from dy, the gradient of its output: dx is overwritten, dw and db are
// added to. Those that are nil are skipped. Images are divided between Threads goroutines.
func Conv2dBackward[F Float](s ConvShape, x, w, dy, dx, dw, db []F, scratch *Scratch) {
	s.check()
	parts := workers(s.N, s.operations())
	size := s.patch() * s.area()
	cols := borrow[F](scratch, columns, parts*size)
	if parts == 1 {
		propagate(s, x, w, dy, dx, dw, db, cols, 0, s.N)
		return
	}
	// Worker 0 adds to dw and db themselves, the others to sums of their own that are added at the end.
	sums := borrow[F](scratch, gradients, (parts-1)*s.parameters())
	clear(sums)
	fork(parts, s.N, func(worker, lo, hi int) {
		dw, db := dw, db
		if worker > 0 {
			dw, db = partial(s, sums, worker-1, dw, db)
		}
		propagate(s, x, w, dy, dx, dw, db, cols[worker*size:][:size], lo, hi)
	})
	for i := range parts - 1 {
		pw, pb := partial(s, sums, i, dw, db)
		Axpy(1, pw, dw)
		Axpy(1, pb, db)
	}
}

// parameters is how many weights and biases a convolution has.
func (s ConvShape) parameters() int { return s.OutC * (s.patch() + 1) }

// partial is the i-th pair of gradients in sums; what is nil in dw and db is nil in it.
func partial[F Float](s ConvShape, sums []F, i int, dw, db []F) (pw, pb []F) {
	sums = sums[i*s.parameters():][:s.parameters()]
	if dw != nil {
		pw = sums[s.OutC:]
	}
	if db != nil {
		pb = sums[:s.OutC]
	}
	return pw, pb
}

// propagate is Conv2dBackward for images lo to hi.
func propagate[F Float](s ConvShape, x, w, dy, dx, dw, db, cols []F, lo, hi int) {
	image, area, patch := s.image(), s.area(), s.patch()
	for n := lo; n < hi; n++ {
		out := dy[n*s.OutC*area:][:s.OutC*area]
		if db != nil {
			rowSum(s.OutC, area, out, db)
		}
		if dw != nil {
			im2col(s, x[n*image:][:image], cols)
			gemm(false, true, s.OutC, patch, area, 1, out, area, cols, area, 1, dw, patch)
		}
		if dx != nil {
			gemm(true, false, patch, area, s.OutC, 1, w, patch, out, area, 0, cols, area)
			clear(dx[n*image:][:image])
			col2im(s, cols, dx[n*image:][:image])
		}
	}
}

// rowSum adds the sum of each row of y to b.
func rowSum[F Float](rows, width int, y, b []F) {
	for i := range b[:rows] {
		var sum F
		for _, v := range y[i*width:][:width] {
			sum += v
		}
		b[i] += sum
	}
}
