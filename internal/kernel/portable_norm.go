package kernel

import "unsafe"

func centre[F Float](n int, shift F, x, y *F) (F, F) {
	var sum, squares float64
	to := unsafe.Slice(y, n)
	for i, v := range unsafe.Slice(x, n) {
		v -= shift
		to[i] = v
		sum, squares = sum+float64(v), squares+float64(v)*float64(v)
	}
	return F(sum), F(squares)
}

func scaleAndAdd[F Float](n int, alpha, beta F, w, b, y *F) {
	ws, bs, ys := unsafe.Slice(w, n), unsafe.Slice(b, n), unsafe.Slice(y, n)
	for i, v := range ys {
		ys[i] = (alpha*v+beta)*ws[i] + bs[i]
	}
}

func normSums[F Float](n int, shift, scale, left F, x, dy, w, dw, db *F) (F, F) {
	var sum, along float64
	dys, ws, dws, dbs := unsafe.Slice(dy, n), unsafe.Slice(w, n), unsafe.Slice(dw, n), unsafe.Slice(db, n)
	for i, v := range unsafe.Slice(x, n) {
		y, d := (v-shift)*scale+left, dys[i]
		dws[i] += d * y
		dbs[i] += d
		sum, along = sum+float64(d*ws[i]), along+float64(d*ws[i])*float64(y)
	}
	return F(sum), F(along)
}

func normSlope[F Float](n int, shift, scale, left, mean, along F, x, dy, w, dx *F) {
	dys, ws, dxs := unsafe.Slice(dy, n), unsafe.Slice(w, n), unsafe.Slice(dx, n)
	for i, v := range unsafe.Slice(x, n) {
		dxs[i] = (dys[i]*ws[i] - mean - along*((v-shift)*scale+left)) * scale
	}
}
