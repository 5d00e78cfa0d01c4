package kernel

import (
	"encoding/binary"
	"unsafe"
)

// brainLoops are the inner loops for a processor with a matrix unit for BFloat16.
type brainLoops struct {
	// product computes c = a·b of 32 rows in float32. a has depth·32 columns. b consists of panels
	// of 32 columns, step bytes apart. Each panel holds pairs of vertically adjacent elements in
	// depth·16 rows. lda and ldc are in bytes.
	product func(depth, panels int, a *byte, lda int, b *byte, step int, c *float32, ldc int)
	// pair interleaves pairs of rows for product. columns must be a multiple of 16; ld and ldy are
	// in bytes.
	pair func(rows, columns int, x *byte, ld int, y *byte, ldy int)
}

// Sizes of a product by the matrix unit: the rows and columns of one call, and the part of b that
// is meant to stay in the second-level cache.
const (
	brainSide  = 32
	brainDeep  = 32 // columns of a per step
	brainPair  = 4  // bytes of a pair
	brainWide  = 16 // panels
	leastBrain = 16 // minimum rows, columns and depth; below, the unit is slower
)

// HasBrainProduct reports whether [BrainProduct] supports a product of an m×k and a k×n matrix
// on this machine. It returns false if a size is below 16.
func HasBrainProduct(m, n, k int) bool {
	return current.brain != nil && min(m, n, k) >= leastBrain && matrixUnit()
}

// BrainProduct computes c = op(a)·op(b) of BFloat16 elements, like [Gemm] with alpha 1 and beta
// 0. It may only be called if [HasBrainProduct] returns true for m, n and k. It accumulates in
// float32 and rounds once. Subnormal float32 values count as 0. lda, ldb and ldc are in
// elements.
func BrainProduct(transA, transB bool, m, n, k int, a []byte, lda int, b []byte, ldb int, c []byte, ldc int) {
	space := spaces.Get().(*Scratch)
	defer spaces.Put(space)
	g := brainProduct{m: m, n: n, k: k, depth: (k + brainDeep - 1) / brainDeep, c: c, ldc: 2 * ldc}
	g.a, g.lda = g.rowMajor(transA, a, 2*lda, space)
	panels := (n + brainSide - 1) / brainSide
	g.step = g.depth * brainDeep / 2 * brainSide * brainPair
	g.b = bytesOf(borrowSlice[float32](space, seconds, panels*g.step/4))
	cost := m * n * k / 8
	pack := func(_, lo, hi int) {
		for p := lo; p < hi; p++ {
			g.packPanel(p, transB, b, 2*ldb)
		}
	}
	compute := func(_, lo, hi int) { g.computeRows(lo*brainSide, min(hi*brainSide, m)) }
	if parts := workerCount(panels, cost); parts > 1 {
		runRanges(parts, panels, pack)
	} else {
		pack(0, 0, panels)
	}
	blocks := (m + brainSide - 1) / brainSide
	if parts := workerCount(blocks, cost); parts > 1 {
		runRanges(parts, blocks, compute)
	} else {
		compute(0, 0, blocks)
	}
}

func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// brainProduct is a product in progress. Row distances are in bytes.
type brainProduct struct {
	m, n, k int
	depth   int // steps of brainDeep columns of a
	a       []byte
	lda     int
	b       []byte // packed panels
	step    int    // distance of panels
	c       []byte
	ldc     int
}

// rowMajor returns op(a) in row-major order, with each row zero-padded to the depth, and the
// distance of the rows in bytes. It returns a itself if it already has this form, and otherwise
// a copy in space. lda is in bytes.
func (g *brainProduct) rowMajor(trans bool, a []byte, lda int, space *Scratch) ([]byte, int) {
	whole := 2 * brainDeep * g.depth
	if !trans && g.k%brainDeep == 0 {
		return a, lda
	}
	packed := bytesOf(borrowSlice[float32](space, firsts, g.m*whole/4))
	if trans {
		TransposePairs(g.k, g.m, a, lda/2, packed, whole/2)
	}
	for i := range g.m {
		row := packed[i*whole:][:whole]
		if !trans {
			copy(row, a[i*lda:][:2*g.k])
		}
		clear(row[2*g.k:])
	}
	return packed, whole
}

// packPanel packs the 32 columns of op(b) from 32·p on into panel p of g.b, padded with zeros.
// ldb is in bytes.
func (g *brainProduct) packPanel(p int, trans bool, b []byte, ldb int) {
	to, from := g.b[p*g.step:][:g.step], p*brainSide
	width := min(brainSide, g.n-from)
	const row = brainSide * brainPair
	if width < brainSide {
		clear(to)
	} else {
		clear(to[(g.k+1)/2*row:])
	}
	if trans {
		b = b[from*ldb:]
		if address := uintptr(unsafe.Pointer(&b[0])); ldb%brainPair == 0 && address%brainPair == 0 {
			src := unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), ((width-1)*ldb+g.k/2*brainPair)/brainPair)
			dst := unsafe.Slice((*float32)(unsafe.Pointer(&to[0])), len(to)/brainPair)
			Transpose(width, g.k/2, src, ldb/brainPair, dst, brainSide)
		} else {
			for j := range width {
				for l := range g.k / 2 {
					copy(to[l*row+j*brainPair:][:brainPair], b[j*ldb+l*brainPair:])
				}
			}
		}
		if g.k%2 == 1 {
			clear(to[g.k/2*row:])
			for j := range width {
				copy(to[g.k/2*row+j*brainPair:][:2], b[j*ldb+2*g.k-2:])
			}
		}
		return
	}
	b = b[2*from:]
	done := 0
	if whole := width &^ 15; whole > 0 {
		current.brain.pair(g.k/2, whole, &b[0], ldb, &to[0], row)
		done = whole
	}
	for l := range (g.k + 1) / 2 {
		if 2*l+1 == g.k {
			done = 0
		}
		for j := done; j < width; j++ {
			pair := uint32(binary.LittleEndian.Uint16(b[2*l*ldb+2*j:]))
			if 2*l+1 < g.k {
				pair |= uint32(binary.LittleEndian.Uint16(b[(2*l+1)*ldb+2*j:])) << 16
			}
			binary.LittleEndian.PutUint32(to[l*row+j*brainPair:], pair)
		}
	}
}

// computeRows computes rows i0 to i1-1 of the product. i0 must be a multiple of 32. It may be
// called concurrently for different rows.
func (g *brainProduct) computeRows(i0, i1 int) {
	const roundUpTo = brainWide * brainSide
	space := spaces.Get().(*Scratch)
	defer spaces.Put(space)
	sums := borrowSlice[float32](space, seconds, brainSide*roundUpTo)
	var rest []byte // the last rows, padded to brainSide; the results of the padding are not used
	for j := 0; j < g.n; j += roundUpTo {
		width := min(roundUpTo, g.n-j)
		panels := (width + brainSide - 1) / brainSide
		for i := i0; i < i1; i += brainSide {
			a, lda := g.a[i*g.lda:], g.lda
			if i+brainSide > g.m {
				if rest == nil {
					rest = bytesOf(borrowSlice[float32](space, firsts, brainSide*brainDeep*g.depth/2))
					for r := range g.m - i {
						copy(rest[r*2*brainDeep*g.depth:][:2*brainDeep*g.depth], a[r*lda:])
					}
				}
				a, lda = rest, 2*brainDeep*g.depth
			}
			current.brain.product(g.depth, panels, &a[0], lda, &g.b[j/brainSide*g.step], g.step, &sums[0], 4*roundUpTo)
			for r := range min(brainSide, i1-i) {
				g.writeRounded(sums[r*roundUpTo:][:roundUpTo], g.c[(i+r)*g.ldc+2*j:][:2*width])
			}
		}
	}
}

// writeRounded converts the first len(to)/2 sums of a row to BFloat16 and writes them to to.
// sums must have as many elements, rounded up to a multiple of 8.
func (g *brainProduct) writeRounded(sums []float32, to []byte) {
	from, n := unsafe.Slice((*byte)(unsafe.Pointer(&sums[0])), 4*len(sums)), len(to)/2
	done := Float32ToBrain.Do(n, to, from)
	if done < n { // sums is longer than to, so convert a full group and copy a part
		var last [2 * 8]byte
		Float32ToBrain.Do(8, last[:], from[4*done:])
		copy(to[2*done:], last[:])
	}
}
