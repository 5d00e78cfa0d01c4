package kernel

// narrow reports whether each element of the result is best a sum of its own: a few rows or columns, of factors that have what is summed over in
// one piece. A factor with one row or column has it after a short copy.
func (g *gemm[F]) narrow() bool {
	return min(g.m, g.n) <= g.few && (g.a.col == 1 || g.m == 1) && (g.transB || g.n == 1)
}

// dots is compute for a narrow product.
func (g *gemm[F]) dots(i0, i1, j0, j1 int) {
	a, b, lda, ldb := g.a.data, g.b, g.a.row, g.ldb
	if g.a.col != 1 || !g.transB && g.ldb != 1 {
		space := spaces.Get().(*Scratch)
		defer spaces.Put(space)
		if g.a.col != 1 {
			a = gather(borrow[F](space, firsts, g.k), a, g.a.col)
		}
		if !g.transB {
			b = gather(borrow[F](space, seconds, g.k), b, g.ldb)
		}
	}
	if !g.transB {
		ldb = g.k
	}
	for i := i0; i < i1; i++ {
		row := a[i*lda:][:g.k]
		for j := j0; j < j1; j++ {
			sum := g.alpha * Dot(row, b[j*ldb:])
			if to := &g.c[i*g.ldc+j]; g.add {
				*to += sum
			} else {
				*to = sum
			}
		}
	}
}

// gather writes elements of x that are step apart to y.
func gather[F Float](y, x []F, step int) []F {
	for i := range y {
		y[i] = x[i*step]
	}
	return y
}
