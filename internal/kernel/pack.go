package kernel

// packedFactors reports for each factor whether it should be packed, that is, copied into the
// order of access. Small factors are not packed, because the copy costs more than the cache
// misses. A transposed b is always packed, because its rows are not contiguous.
func (g *gemm[F]) packedFactors() (a, b bool) {
	const small = 1 << 14 // elements that almost fit into the first-level cache
	a = g.m*g.k > small && g.n > 4*g.panelWidth()
	b = g.transB || g.n*g.k > small && g.m > 2*len(g.tiles[0])
	return a, b
}

// fillMultiples fills off with 0, step, 2·step and so on.
func fillMultiples(off []int, step int) {
	for i := range off {
		off[i] = i * step
	}
}

// panelWidthFor returns the width of the panels of k rows and n columns: the width of a tile, or n
// if the product is computed row by row.
func (g *gemm[F]) panelWidthFor(n, k int) int {
	if n*k <= shallow {
		return n
	}
	return g.panelWidth()
}

// roundUpTo rounds n up to a multiple of width.
func roundUpTo(n, width int) int { return (n + width - 1) / width * width }

// packPanels copies k rows from l and n columns from j of op(b) to packed, as panels of the
// given width, and returns packed. It uses space for offsets.
func (g *gemm[F]) packPanels(space *Scratch, packed []F, width, k, l, j, n int) []F {
	for at := 0; at < n; at += width {
		from, to := j+at, packed[at*k:]
		w := min(width, n-at)
		if g.transB {
			g.transposeRows(space, w, k, g.b[from*g.ldb+l:], g.ldb, to, width)
		} else {
			g.copyRows(k, w, &g.b[l*g.ldb+from], g.ldb, &to[0], width)
		}
	}
	return packed
}

// factor is a packed second operand, k×n, that many products use. factorOf makes it.
type factor[F Float] struct {
	k, n, width int // width of a panel
	data        []F
}

// packedSize returns the maximum number of elements of a packed k×n factor.
func packedSize(n, k int) int { return roundUpTo(n, portableLanes) * k }

// factorOf packs op(b), k×n, into data, which must have packedSize(n, k) elements. The result
// refers to data. If transB is set, op transposes.
func factorOf[F Float](transB bool, n, k int, b []F, ldb int, data []F, space *Scratch) factor[F] {
	g := newGemm[F](false, transB, 1, n, k, 1, nil, 0, b, ldb, false, nil, 0)
	f := factor[F]{k, n, g.panelWidth(), data}
	for j := 0; j < n; j += blockCols {
		for l := 0; l < k; l += blockDeep {
			g.packPanels(space, f.packedBlock(l, j), f.width, min(blockDeep, k-l), l, j, min(blockCols, n-j))
		}
	}
	return f
}

// packedBlock returns f.data from the packed block on that begins at row l and column j. l must
// be a multiple of blockDeep, and j a multiple of blockCols.
func (f factor[F]) packedBlock(l, j int) []F {
	return f.data[j*f.k+l*roundUpTo(min(blockCols, f.n-j), f.width):]
}

// multiplySerial computes c = alpha·a·f on the calling goroutine, or adds to c if add is set,
// using the first k rows and n columns of f. a is m×k and c m×n, with rows lda and ldc apart.
// Any size may be 0.
func (f factor[F]) multiplySerial(m, n, k int, alpha F, a []F, lda int, add bool, c []F, ldc int) {
	switch {
	case m == 0 || n == 0:
	case k > 0:
		g := newGemm(false, false, m, n, k, alpha, a, lda, nil, 0, add, c, ldc)
		g.ready = f
		g.computeBlock(0, m, 0, n)
	case !add:
		scaleRows(m, n, 0, c, ldc)
	}
}

// multiplyParallel is [factor.multiplySerial] with the whole of f and alpha 1. The rows of a,
// m×f.k, are divided between goroutines; c is m×f.n.
func (f factor[F]) multiplyParallel(m int, a []F, add bool, c []F) {
	if parts := workerCount(m, m*f.n*f.k); parts > 1 {
		runRanges(parts, m, func(_, lo, hi int) {
			f.multiplySerial(hi-lo, f.n, f.k, 1, a[lo*f.k:], f.k, add,
				c[lo*f.n:], f.n)
		})
	} else {
		f.multiplySerial(m, f.n, f.k, 1, a, f.k, add, c, f.n)
	}
}

// packRows copies m×k of a into blocks of rows as [loops.multiplyPacked] uses them. The result
// is valid until the next use of space.
func (g *gemm[F]) packRows(space *Scratch, a *operand[F], m, k int) operand[F] {
	packed := borrowSlice[F](space, firsts, m*k)
	height := g.blockHeight(m)
	for lo := 0; lo < m; lo += height {
		hi := min(lo+height, m)
		from, to := a.data[lo*a.row:], packed[lo*k:]
		if a.row == 1 {
			g.copyRows(k, hi-lo, &from[0], a.col, &to[0], hi-lo)
		} else {
			g.transposeRows(space, hi-lo, k, from, a.row, to, hi-lo)
		}
	}
	return operand[F]{data: packed, deep: k}
}

// transposeRows writes rows×cols of src, with rows lds apart, as columns of dst, with rows ldd
// apart.
func (p *loops[F]) transposeRows(space *Scratch, rows, cols int, src []F, lds int, dst []F, ldd int) {
	off := borrowSlice[int](space, turned, p.columns)
	fillMultiples(off, lds)
	for i := 0; i < rows; i += p.columns {
		p.transpose(min(p.columns, rows-i), cols, &src[i*lds], &off[0], &dst[i], ldd)
	}
}
