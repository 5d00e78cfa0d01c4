package kernel

// isNarrow reports whether the product is best computed by dot products: one factor has few rows or
// columns, and both are contiguous along the summed dimension. A factor with a single row or column
// qualifies as well, because it can be copied cheaply.
func (g *gemm[F]) isNarrow() bool {
	const long = 16 // fills at least one register
	return g.k >= long && min(g.m, g.n) <= g.few && (g.a.col == 1 || g.m == 1) && (g.transB || g.n == 1)
}

// computeDots is [gemm.computeBlock] for a narrow product: each element is a dot product.
func (g *gemm[F]) computeDots(i0, i1, j0, j1 int) {
	a, b, lda, ldb := g.a.data, g.b, g.a.row, g.ldb
	if g.a.col != 1 || !g.transB && g.ldb != 1 {
		space := spaces.Get().(*Scratch)
		defer spaces.Put(space)
		if g.a.col != 1 {
			a = gatherStrided(borrowSlice[F](space, firsts, g.k), a, g.a.col)
		}
		if !g.transB {
			b = gatherStrided(borrowSlice[F](space, seconds, g.k), b, g.ldb)
		}
	}
	if !g.transB {
		ldb = g.k
	}
	if i1-i0 > j1-j0 { // iterate over the smaller factor in the inner loop, so that it stays in the cache
		for i := i0; i < i1; i++ {
			for j := j0; j < j1; j++ {
				g.storeSum(i, j, Dot(a[i*lda:][:g.k], b[j*ldb:]))
			}
		}
		return
	}
	for j := j0; j < j1; j++ {
		for i := i0; i < i1; i++ {
			g.storeSum(i, j, Dot(a[i*lda:][:g.k], b[j*ldb:]))
		}
	}
}

// storeSum stores alpha times sum as element (i, j) of c, or adds it if g.add is set.
func (g *gemm[F]) storeSum(i, j int, sum F) {
	storeOrAdd(&g.c[i*g.ldc+j], g.alpha*sum, g.add)
}

// gatherStrided fills y with elements of x that are step apart, and returns y.
func gatherStrided[F Float](y, x []F, step int) []F {
	for i := range y {
		y[i] = x[i*step]
	}
	return y
}

// plainProduct is serialGemm by the textbook algorithm, for tiny sizes. Rows of op(a) are down
// apart, and its columns right.
func plainProduct[F Float](m, n, k int, alpha F, a []F, down, right int, b []F, ldb int, transB, add bool, c []F,
	ldc int) {
	for i := range m {
		row := c[i*ldc:][:n]
		if !add {
			clear(row)
		}
		if transB {
			addPlainDots(alpha, a[i*down:], right, b, ldb, k, row)
			continue
		}
		for l := range k {
			factor := alpha * a[i*down+l*right]
			for j, v := range b[l*ldb:][:n] {
				row[j] += factor * v
			}
		}
	}
}

// addPlainDots adds to each element of row alpha times the dot product of a row of a, with
// elements right apart, and a row of b. k is the length of the rows.
func addPlainDots[F Float](alpha F, a []F, right int, b []F, ldb, k int, row []F) {
	if right != 1 {
		var room [portableTiny]F
		a = gatherStrided(room[:k], a, right)
	}
	for j := range row {
		var sum F
		other := b[j*ldb:][:k]
		for l, v := range a[:len(other)] {
			sum += v * other[l]
		}
		row[j] += alpha * sum
	}
}

// storeOrAdd stores sum in *c, or adds it if add is set.
func storeOrAdd[F Float](c *F, sum F, add bool) {
	if add {
		sum += *c
	}
	*c = sum
}
