package kernel

// operand is the first factor of a product: element (i, l) is at i·row + l·col of a slice. If it is
// packed, with deep columns, each of its blocks is a matrix of its own, column by column.
type operand[F Float] struct {
	data     []F
	row, col int
	deep     int // 0 unless packed
}

// block is where rows lo to hi begin, at column l, and how they lie.
func (o *operand[F]) block(lo, hi, l int) (first *F, row, col int) {
	if o.deep > 0 {
		return &o.data[lo*o.deep+l*(hi-lo)], 1, hi - lo
	}
	return &o.data[lo*o.row+l*o.col], o.row, o.col
}

// height is that of the blocks into which m rows are divided: as few as possible, of nearly the
// same height.
func (p *loops[F]) height(m int) int {
	tallest := len(p.tiles[0])
	blocks := (m + tallest - 1) / tallest
	return (m + blocks - 1) / blocks
}

// width is that of the widest tile of so many rows.
func (p *loops[F]) width(rows int) int {
	vecs := len(p.tiles)
	for len(p.tiles[vecs-1]) < rows {
		vecs--
	}
	return vecs * p.lanes
}

// registers is how many of them the widest tile of so many rows fills with up to so many columns,
// and how many columns the last one has.
func (p *loops[F]) registers(cols, rows int) (vecs, last int) {
	vecs = (cols + p.lanes - 1) / p.lanes
	if last = cols - (vecs-1)*p.lanes; len(p.tiles[vecs-1]) >= rows {
		return vecs, last
	}
	for len(p.tiles[vecs-1]) < rows {
		vecs--
	}
	return vecs, p.lanes
}

// panelWidth is that of the widest tile of any height.
func (p *loops[F]) panelWidth() int { return p.width(len(p.tiles[0])) }

// deepest is how many products one tile adds up at a time: even the largest takes a small part of a
// millisecond for them.
const deepest = 4096

// shallow is how many elements of the second factor stay in the first-level cache while the result
// is written row by row, which is quicker where sums are short.
const shallow = 1 << 12

// multiply computes c = alpha·a·b, or adds it to c, on the calling goroutine. a is m×k, c is m×n
// with rows ldc apart, and row l of b begins at b[off[l]]: rows may lie anywhere and overlap, so
// that the patches of an image are a matrix as they are. The order of the sums does not depend on m
// and n.
func (p *loops[F]) multiply(m, n, k int, alpha F, a *operand[F], b []F, off []int, add bool, c []F, ldc int) {
	height := p.height(m)
	width := p.width(height)
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
				first, row, col := a.block(lo, hi, l)
				for j < end {
					vecs, last := p.registers(end-j, hi-lo)
					p.tiles[vecs-1][hi-lo-1](deep, first, row, col, &b[j], &off[l], &c[lo*ldc+j], ldc, last, alpha,
						add || l > 0)
					j += (vecs-1)*p.lanes + last
				}
			}
		}
	}
}
