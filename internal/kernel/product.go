package kernel

// operand is the first factor of a product: element (i, l) is data[i·row + l·col]. If it is packed,
// each of its blocks of rows is a column-major matrix with deep columns.
type operand[F Float] struct {
	data     []F
	row, col int
	deep     int // 0 if not packed
}

// firstElement returns the first element of rows lo to hi-1 at column l, and the distances of
// rows and columns. If o is packed, these rows must be one of its blocks.
func (o *operand[F]) firstElement(lo, hi, l int) (first *F, row, col int) {
	if o.deep > 0 {
		return &o.data[lo*o.deep+l*(hi-lo)], 1, hi - lo
	}
	return &o.data[lo*o.row+l*o.col], o.row, o.col
}

// blockHeight returns the height of the blocks into which m rows are divided for the tiles.
// There are as few blocks as possible, of nearly equal height. m must not be 0.
func (p *loops[F]) blockHeight(m int) int {
	tallest := len(p.tiles[0])
	blocks := (m + tallest - 1) / tallest
	return (m + blocks - 1) / blocks
}

// tileWidth returns the width, in elements, of the widest tile with at least the given number
// of rows.
func (p *loops[F]) tileWidth(rows int) int {
	vecs := len(p.tiles)
	for len(p.tiles[vecs-1]) < rows {
		vecs--
	}
	return vecs * p.lanes
}

// registerCount returns the number of registers of the widest tile that fits the given rows and
// columns, and the number of columns in its last register.
func (p *loops[F]) registerCount(cols, rows int) (vecs, last int) {
	vecs = (cols + p.lanes - 1) / p.lanes
	if last = cols - (vecs-1)*p.lanes; len(p.tiles[vecs-1]) >= rows {
		return vecs, last
	}
	for len(p.tiles[vecs-1]) < rows {
		vecs--
	}
	return vecs, p.lanes
}

// panelWidth returns the width, in elements, of the widest tile of full height.
func (p *loops[F]) panelWidth() int { return p.tileWidth(len(p.tiles[0])) }

// deepest is the maximum number of products that one tile accumulates per call. Even the largest
// tile then takes a small part of a millisecond.
const deepest = 4096

// shallow is the number of elements of the second factor up to which the result is computed row by
// row. The factor then stays in the first-level cache, which is faster for short sums.
const shallow = 1 << 12

// multiplyPacked computes c = alpha·a·b on the calling goroutine, or adds to c if add is set. a
// is m×k, c is m×n with rows ldc apart, and row l of b begins at b[off[l]]. Rows of b may be
// anywhere and may overlap, so the patches of an image can be used as a matrix without a copy.
// The order of summation does not depend on m and n.
func (p *loops[F]) multiplyPacked(m, n, k int, alpha F, a *operand[F], b []F, off []int, add bool, c []F, ldc int) {
	height := p.blockHeight(m)
	width := p.tileWidth(height)
	rowwise := n*k <= shallow
	outer, inner := (n+width-1)/width, (m+height-1)/height
	if rowwise {
		outer, inner = inner, outer
	}
	for l := 0; l < k; l += deepest {
		deep := min(deepest, k-l)
		for x := range outer {
			for y := range inner {
				lo, j := y*height, x*width
				if rowwise {
					lo, j = x*height, y*width
				}
				hi, end := min(lo+height, m), min(j+width, n)
				first, row, col := a.firstElement(lo, hi, l)
				for j < end {
					vecs, last := p.registerCount(end-j, hi-lo)
					p.tiles[vecs-1][hi-lo-1](deep, first, row, col, &b[j], &off[l], &c[lo*ldc+j], ldc, last, alpha,
						add || l > 0)
					j += (vecs-1)*p.lanes + last
				}
			}
		}
	}
}
