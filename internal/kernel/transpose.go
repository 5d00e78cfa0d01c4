package kernel

// turnedCols is how many columns are turned before the next rows: those of a line of the nearest
// cache.
const turnedCols = 16

// Transpose writes rows×cols of src as columns of dst: dst[j·ldd + i] = src[i·lds + j].
func Transpose[F Float](rows, cols int, src []F, lds int, dst []F, ldd int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = src[(rows-1)*lds+cols-1], dst[(cols-1)*ldd+rows-1]
	p, space := inner[F](), spaces.Get().(*Scratch)
	defer spaces.Put(space)
	off := borrow[int](space, turned, p.columns)
	multiples(off, lds)
	for j := 0; j < cols; j += turnedCols {
		n := min(turnedCols, cols-j)
		for i := 0; i < rows; i += p.columns {
			p.transpose(min(p.columns, rows-i), n, &src[i*lds+j], &off[0], &dst[j*ldd+i], ldd)
		}
	}
}
