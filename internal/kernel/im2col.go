package kernel

// im2col writes the patches of one image as a matrix of s.patch() rows and s.area() columns: column j is what
// output pixel j sees.
func im2col[F Float](s ConvShape, x, cols []F) {
	area := s.area()
	for c := range s.C {
		plane := x[c*s.H*s.W:][:s.H*s.W]
		for kh := range s.KH {
			for kw := range s.KW {
				gather(s, plane, kh, kw, cols[:area])
				cols = cols[area:]
			}
		}
	}
}

// gather writes what every output pixel sees at (kh, kw) of its patch.
func gather[F Float](s ConvShape, plane []F, kh, kw int, row []F) {
	outW := s.OutW()
	lo, hi := inside(s.W, outW, s.StrideW, s.PadW, kw)
	for oh := range s.OutH() {
		dst := row[oh*outW:][:outW]
		h := oh*s.StrideH - s.PadH + kh
		if h < 0 || h >= s.H || lo >= hi {
			clear(dst)
			continue
		}
		clear(dst[:lo])
		src := plane[h*s.W:][:s.W]
		if from := lo*s.StrideW - s.PadW + kw; s.StrideW == 1 {
			copy(dst[lo:hi], src[from:])
		} else {
			for i := range dst[lo:hi] {
				dst[lo+i] = src[from+i*s.StrideW]
			}
		}
		clear(dst[hi:])
	}
}

// col2im adds the columns to the pixels they were taken from: the transpose of im2col.
func col2im[F Float](s ConvShape, cols, x []F) {
	area := s.area()
	for c := range s.C {
		plane := x[c*s.H*s.W:][:s.H*s.W]
		for kh := range s.KH {
			for kw := range s.KW {
				scatter(s, cols[:area], kh, kw, plane)
				cols = cols[area:]
			}
		}
	}
}

// scatter adds to the pixels what every output pixel has for (kh, kw) of its patch.
func scatter[F Float](s ConvShape, row []F, kh, kw int, plane []F) {
	outW := s.OutW()
	lo, hi := inside(s.W, outW, s.StrideW, s.PadW, kw)
	for oh := range s.OutH() {
		h := oh*s.StrideH - s.PadH + kh
		if h < 0 || h >= s.H || lo >= hi {
			continue
		}
		src := row[oh*outW:][lo:hi]
		dst := plane[h*s.W:][:s.W][lo*s.StrideW-s.PadW+kw:]
		if s.StrideW == 1 {
			dst = dst[:len(src)]
			for i, v := range src {
				dst[i] += v
			}
		} else {
			for i, v := range src {
				dst[i*s.StrideW] += v
			}
		}
	}
}

// inside is the range of output columns whose patch has its column k inside an image of width w.
func inside(w, out, stride, pad, k int) (lo, hi int) {
	lo = min(out, max(0, (pad-k+stride-1)/stride))
	hi = max(lo, min(out, (w+pad-k+stride-1)/stride))
	return lo, hi
}
