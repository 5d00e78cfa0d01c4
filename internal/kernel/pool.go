package kernel

// MaxPool2d overwrites y (n, c, outH, outW) with the maximum of each kh×kw window of x (n, c,
// h, w). Windows are sh and sw apart, on planes padded with ph rows and pw columns of -∞. It
// overwrites idx, of the same size as y, with the index of the maximum in its plane (h·w). As
// in PyTorch the first of equal elements wins, and NaN wins over numbers. It panics if ph or pw
// is more than half of the window, or the window is larger than the padded plane.
func MaxPool2d[F Float](n, c, h, w, kh, kw, sh, sw, ph, pw int, x, y []F, idx []int32) {
	p := newPool(n*c, h, w, kh, kw, sh, sw, ph, pw)
	parts := workerCount(p.planes, p.planes*p.outputSize()*kh*kw)
	if parts == 1 {
		poolPlanes(p, x, y, idx, 0, p.planes)
		return
	}
	runRanges(parts, p.planes, func(_, lo, hi int) { poolPlanes(p, x, y, idx, lo, hi) })
}

// MaxPool2dBackward overwrites dx (n, c, h, w) with the gradient of [MaxPool2d]: each element
// of dy is added at its index in idx. The geometry must equal that of the MaxPool2d call that
// wrote idx; MaxPool2dBackward panics if MaxPool2d does not accept it.
func MaxPool2dBackward[F Float](n, c, h, w, kh, kw, sh, sw, ph, pw int, dy []F, idx []int32, dx []F) {
	p := newPool(n*c, h, w, kh, kw, sh, sw, ph, pw)
	if parts := workerCount(p.planes, p.planes*h*w*cheap); parts > 1 {
		runRanges(parts, p.planes, func(_, lo, hi int) { unpoolPlanes(p, dy, idx, dx, lo, hi) })
	} else {
		unpoolPlanes(p, dy, idx, dx, 0, p.planes)
	}
}

func unpoolPlanes[F Float](p pool, dy []F, idx []int32, dx []F, lo, hi int) {
	in, out := p.h*p.w, p.outputSize()
	for i := lo; i < hi; i++ {
		unpoolPlane(p, dy[i*out:][:out], idx[i*out:][:out], dx[i*in:][:in])
	}
}

// pool is the geometry of a pooling of the given number of planes.
type pool struct{ planes, h, w, kh, kw, sh, sw, ph, pw, outH, outW int }

func newPool(planes, h, w, kh, kw, sh, sw, ph, pw int) pool {
	switch {
	case planes < 0 || kh < 1 || kw < 1 || sh < 1 || sw < 1 || ph < 0 || pw < 0:
		panic("kernel: pooling: want a window and strides of at least 1, and padding of 0 or more")
	case 2*ph > kh || 2*pw > kw:
		panic("kernel: pooling: padding is more than half the window")
	case h+2*ph < kh || w+2*pw < kw:
		panic("kernel: pooling: window is larger than the padded plane")
	}
	return pool{planes, h, w, kh, kw, sh, sw, ph, pw, (h+2*ph-kh)/sh + 1, (w+2*pw-kw)/sw + 1}
}

func (p pool) outputSize() int { return p.outH * p.outW }

// hasPairWindows reports whether the windows are 2×2 and do not overlap, which is the common case.
func (p pool) hasPairWindows() bool {
	return p.kh == 2 && p.kw == 2 && p.sh == 2 && p.sw == 2 && p.ph == 0 && p.pw == 0
}

func poolPlanes[F Float](p pool, x, y []F, idx []int32, lo, hi int) {
	in, out := p.h*p.w, p.outputSize()
	for i := lo; i < hi; i++ {
		if p.hasPairWindows() {
			poolWindows(p, x[i*in:][:in], y[i*out:][:out], idx[i*out:][:out])
		} else {
			poolPlane(p, x[i*in:][:in], y[i*out:][:out], idx[i*out:][:out])
		}
	}
}

// poolWindows overwrites y and idx, one output plane, for adjacent 2×2 windows of x, one plane.
func poolWindows[F Float](p pool, x, y []F, idx []int32) {
	for r, rows := range p.shortRows() {
		loopsFor[F]().pool(rows, p.outW, &x[2*r*p.w], p.w, &y[r*p.outW], &idx[r*p.outW], 2*r*p.w)
	}
}

// poolPlane overwrites y and idx, one output plane, for any windows of x, one plane.
func poolPlane[F Float](p pool, x, y []F, idx []int32) {
	for oh := range p.outH {
		for ow := range p.outW {
			at := p.maxIndex(oh, ow, func(at, best int) bool { return x[at] > x[best] || x[at] != x[at] })
			y[oh*p.outW+ow], idx[oh*p.outW+ow] = x[at], int32(at)
		}
	}
}

// maxIndex returns the index in its plane of the maximum in the window of output pixel (oh,
// ow). better must report whether the element at index at replaces the one at index best.
func (p pool) maxIndex(oh, ow int, better func(at, best int) bool) int {
	top, left := oh*p.sh-p.ph, ow*p.sw-p.pw
	bottom, right := min(top+p.kh, p.h), min(left+p.kw, p.w)
	top, left = max(top, 0), max(left, 0)
	best := top*p.w + left
	for h := top; h < bottom; h++ {
		for w := left; w < right; w++ {
			if better(h*p.w+w, best) {
				best = h*p.w + w
			}
		}
	}
	return best
}

// unpoolPlane overwrites dx, one plane, with the gradient from dy and idx, one output plane.
func unpoolPlane[F Float](p pool, dy []F, idx []int32, dx []F) {
	if p.hasPairWindows() {
		if p.h%2 == 1 || p.w%2 == 1 {
			clear(dx) // also for the pixels outside of all windows
		}
		for r, rows := range p.shortRows() {
			loopsFor[F]().poolBackward(rows, p.outW, &dy[r*p.outW], &idx[r*p.outW], &dx[2*r*p.w], p.w, 2*r*p.w)
		}
		return
	}
	clear(dx)
	for i, at := range idx {
		dx[at] += dy[i]
	}
}

// shortRows divides the rows of the output into pieces for one call of a loop. It yields the
// first row and the number of rows of each.
func (p pool) shortRows() func(yield func(r, rows int) bool) {
	step := max(1, longest/p.outW)
	return func(yield func(r, rows int) bool) {
		for r := 0; r < p.outH && yield(r, min(step, p.outH-r)); r += step {
		}
	}
}
