package kernel

// packs says which factors are copied into the order in which they are read. What is small stays where it is: the copy costs
// more than the cache misses. A transposed b has no rows to read, and is always copied.
func (g *gemm[F]) packs() (a, b bool) {
	const small = 1 << 14 // elements that stay in the first-level cache, nearly
	a = g.m*g.k > small && g.n > 4*g.width()
	b = g.transB || g.n*g.k > small && g.m > 2*len(g.tiles[0])
	return a, b
}

// multiples fills off with the multiples of step, from 0 on.
func multiples(off []int, step int) {
	for i := range off {
		off[i] = i * step
	}
}

// panel is how wide panels are of k rows and n columns: as a tile, or all in one if that is better read row by row.
func (g *gemm[F]) panel(n, k int) int {
	if n*k <= shallow {
		return n
	}
	return g.width()
}

// pack copies rows l to l+len(off) and columns j to j+n of op(b) as panels, and says in off where their rows are.
func (g *gemm[F]) pack(space *Scratch, off []int, l, j, n int) []F {
	k := len(off)
	width := g.panel(n, k)
	panels := (n + width - 1) / width
	packed := borrow[F](space, seconds, panels*width*k)
	for p := range panels {
		from, to := j+p*width, packed[p*width*k:]
		w := min(width, n-p*width)
		if g.transB {
			g.turn(space, w, k, g.b[from*g.ldb+l:], g.ldb, to, width)
		} else {
			g.copyRows(k, w, &g.b[l*g.ldb+from], g.ldb, &to[0], width)
		}
	}
	multiples(off, width)
	return packed
}

// packRows copies m×k of a, block by block as multiply divides them.
func (g *gemm[F]) packRows(space *Scratch, a *operand[F], m, k int) operand[F] {
	packed := borrow[F](space, firsts, m*k)
	height := g.height(m)
	for lo := 0; lo < m; lo += height {
		hi := min(lo+height, m)
		from, to := a.data[lo*a.row:], packed[lo*k:]
		if a.row == 1 {
			g.copyRows(k, hi-lo, &from[0], a.col, &to[0], hi-lo)
		} else {
			g.turn(space, hi-lo, k, from, a.row, to, hi-lo)
		}
	}
	return operand[F]{data: packed, deep: k}
}

// turn writes rows of src as columns of dst.
func (p *loops[F]) turn(space *Scratch, rows, cols int, src []F, lds int, dst []F, ldd int) {
	off := borrow[int](space, turned, p.columns)
	multiples(off, lds)
	for i := 0; i < rows; i += p.columns {
		p.transpose(min(p.columns, rows-i), cols, &src[i*lds], &off[0], &dst[i], ldd)
	}
}
