package kernel

// Gemm computes c = alpha·op(a)·op(b) + beta·c, where op transposes if the flag says so, op(a) is m×k, op(b) is k×n and
// c is m×n, all row-major with the distance between rows given: lda, ldb, ldc. With beta = 0, c is only written.
// It splits c between Threads goroutines. A zero in op(a) may hide a NaN or an infinity in op(b).
func Gemm[F Float](transA, transB bool, m, n, k int, alpha F, a []F, lda int, b []F, ldb int, beta F, c []F, ldc int) {
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		scaleRows(m, n, beta, c, ldc)
		return
	}
	parts := workers(max(m, n), m*n*k)
	switch {
	case parts == 1:
		gemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
	case m >= n:
		fork(parts, m, func(_, lo, hi int) {
			gemm(transA, transB, hi-lo, n, k, alpha, a[start(transA, lo, lda):], lda, b, ldb, beta, c[lo*ldc:], ldc)
		})
	default:
		fork(parts, n, func(_, lo, hi int) {
			gemm(transA, transB, m, hi-lo, k, alpha, a, lda, b[start(!transB, lo, ldb):], ldb, beta, c[lo:], ldc)
		})
	}
}

// start is where row i of op(x) begins: a column of x if across.
func start(across bool, i, ld int) int {
	if across {
		return i
	}
	return i * ld
}

// scaleRows multiplies c by beta: a product of nothing.
func scaleRows[F Float](m, n int, beta F, c []F, ldc int) {
	for i := range m {
		row := c[i*ldc:][:n]
		if beta == 0 {
			clear(row)
		} else {
			Scale(beta, row)
		}
	}
}
