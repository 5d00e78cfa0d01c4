package kernel

import "encoding/binary"

// turnedCols is the number of columns that are transposed before the next rows. It is the number of
// float32 elements in a cache line.
const turnedCols = 16

// Transpose writes rows×cols of src as columns of dst: dst[j·ldd + i] = src[i·lds + j].
func Transpose[F Float](rows, cols int, src []F, lds int, dst []F, ldd int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = src[(rows-1)*lds+cols-1], dst[(cols-1)*ldd+rows-1]
	p := loopsFor[F]()
	if all, n := rows&^15, cols&^15; p.transposeSixteen != nil && all > 0 && n > 0 {
		for i := 0; i < all; i += 16 {
			for j, n := range shortPieces(n) {
				p.transposeSixteen(n, &src[i*lds+j], lds, &dst[j*ldd+i], ldd)
			}
		}
		Transpose(all, cols-n, src[n:], lds, dst[min(n*ldd, len(dst)):], ldd)
		Transpose(rows-all, cols, src[min(all*lds, len(src)):], lds, dst[all:], ldd)
		return
	}
	space := spaces.Get().(*Scratch)
	defer spaces.Put(space)
	off := borrowSlice[int](space, turned, p.columns)
	fillMultiples(off, lds)
	for j := 0; j < cols; j += turnedCols {
		n := min(turnedCols, cols-j)
		for i := 0; i < rows; i += p.columns {
			p.transpose(min(p.columns, rows-i), n, &src[i*lds+j], &off[0], &dst[j*ldd+i], ldd)
		}
	}
}

// TransposeBytes is [Transpose] for one-byte elements; rows, cols, lds and ldd are in elements. It
// transposes 8×8 blocks in eight 64-bit registers by exchanging halves of words, then quarters,
// then eighths.
func TransposeBytes(rows, cols int, src []byte, lds int, dst []byte, ldd int) {
	turnWords(rows, cols, 1, src, lds, dst, ldd, turnBytes)
}

// TransposePairs is [Transpose] for two-byte elements; rows, cols, lds and ldd are in elements.
func TransposePairs(rows, cols int, src []byte, lds int, dst []byte, ldd int) {
	turnWords(rows, cols, 2, src, 2*lds, dst, 2*ldd, turnPairs)
}

// turnWords transposes like [Transpose] for elements of size bytes. It calls turn to transpose
// blocks of 8/size rows and columns, as many elements as fit into a word, and copies the others
// one by one. lds and ldd are in bytes.
func turnWords(rows, cols, size int, src []byte, lds int, dst []byte, ldd int,
	turn func(src []byte, lds int, dst []byte, ldd int)) {
	each := 8 / size
	one := func(i, j int) { copy(dst[j*ldd+i*size:][:size], src[i*lds+j*size:]) }
	for j := 0; j < cols; j += turnedCols {
		end := min(j+turnedCols, cols)
		whole := j + (end-j)/each*each
		i := 0
		for ; i+each <= rows; i += each {
			for k := j; k < whole; k += each {
				turn(src[i*lds+k*size:], lds, dst[k*ldd+i*size:], ldd)
			}
			for k := whole; k < end; k++ {
				for r := range each {
					one(i+r, k)
				}
			}
		}
		for ; i < rows; i++ {
			for k := j; k < end; k++ {
				one(i, k)
			}
		}
	}
}

func turnBytes(src []byte, lds int, dst []byte, ldd int) {
	const bytes, pairs, half = 0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff
	a, b, c, d := loadWord(src, 0), loadWord(src, lds), loadWord(src, 2*lds), loadWord(src, 3*lds)
	e, f, g, h := loadWord(src, 4*lds), loadWord(src, 5*lds), loadWord(src, 6*lds), loadWord(src, 7*lds)
	a, e = exchange(a, e, 32, half)
	b, f = exchange(b, f, 32, half)
	c, g = exchange(c, g, 32, half)
	d, h = exchange(d, h, 32, half)
	a, c = exchange(a, c, 16, pairs)
	b, d = exchange(b, d, 16, pairs)
	e, g = exchange(e, g, 16, pairs)
	f, h = exchange(f, h, 16, pairs)
	a, b = exchange(a, b, 8, bytes)
	c, d = exchange(c, d, 8, bytes)
	e, f = exchange(e, f, 8, bytes)
	g, h = exchange(g, h, 8, bytes)
	putWord(dst, 0, a)
	putWord(dst, ldd, b)
	putWord(dst, 2*ldd, c)
	putWord(dst, 3*ldd, d)
	putWord(dst, 4*ldd, e)
	putWord(dst, 5*ldd, f)
	putWord(dst, 6*ldd, g)
	putWord(dst, 7*ldd, h)
}

func turnPairs(src []byte, lds int, dst []byte, ldd int) {
	const pairs, half = 0x0000ffff0000ffff, 0x00000000ffffffff
	a, b, c, d := loadWord(src, 0), loadWord(src, lds), loadWord(src, 2*lds), loadWord(src, 3*lds)
	a, c = exchange(a, c, 32, half)
	b, d = exchange(b, d, 32, half)
	a, b = exchange(a, b, 16, pairs)
	c, d = exchange(c, d, 16, pairs)
	putWord(dst, 0, a)
	putWord(dst, ldd, b)
	putWord(dst, 2*ldd, c)
	putWord(dst, 3*ldd, d)
}

// exchange swaps the upper half of each group of 2·bits bits of a with the lower half of the same
// group of b. lower is the mask of the lower halves.
func exchange(a, b uint64, bits int, lower uint64) (uint64, uint64) {
	t := (a>>bits ^ b) & lower
	return a ^ t<<bits, b ^ t
}

func loadWord(x []byte, at int) uint64   { return binary.LittleEndian.Uint64(x[at:]) }
func putWord(x []byte, at int, v uint64) { binary.LittleEndian.PutUint64(x[at:], v) }
