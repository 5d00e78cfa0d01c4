package tensor

import (
	"slices"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// MatMul returns the matrix product, like torch.matmul. Two vectors give their inner product; a
// matrix and a vector give a vector. If there are more dimensions, the last two are matrices, and
// the others are broadcast. Dtypes are promoted.
func MatMul(a, b *Tensor) *Tensor {
	if len(a.Shape()) == 0 || len(b.Shape()) == 0 {
		misuse(ErrShape, "MatMul: got shapes %v and %v, want at least 1 dimension each", a.Shape(), b.Shape())
	}
	row, col := len(a.Shape()) == 1, len(b.Shape()) == 1
	dt := Promote(a.dtype, b.dtype)
	in := backendOf(a).productDType(dt, a, b)
	x, y := a.asMatrices(in, 0), b.asMatrices(in, 1)
	m, k, n := x.Dim(-2), x.Dim(-1), y.Dim(-1)
	if y.Dim(-2) != k {
		misuse(ErrShape, "MatMul: shapes %v and %v: %d columns do not match %d rows",
			a.Shape(), b.Shape(), k, y.Dim(-2))
	}
	var room [2 * fewDims]int
	batch := broadcastInto(room[:0], x.Shape()[:len(x.Shape())-2], y.Shape()[:len(y.Shape())-2])
	commonDevice([]*Tensor{a, b})
	var whole [2 * fewDims]int
	shape := append(append(whole[:0], batch...), m, n)
	out := a.NewEmpty(in, shape...)
	backendOf(out).multiply(out, x, y, batch)
	x.releaseRows(a)
	y.releaseRows(b)
	last := len(batch)
	if col {
		shape = slices.Delete(shape, last+1, last+2)
	}
	if row {
		shape = slices.Delete(shape, last, last+1)
	}
	return out.setShape(shape...).convertOwned(dt)
}

// AddMMInPlace adds the product of two matrices to t in place, like torch.addmm. It needs no
// temporary tensor if t is contiguous, has the dtype of a and b, and shares its storage with
// neither.
func (t *Tensor) AddMMInPlace(a, b *Tensor) *Tensor {
	if len(t.Shape()) != 2 || len(a.Shape()) != 2 || len(b.Shape()) != 2 || a.Shape()[1] != b.Shape()[0] ||
		t.Shape()[0] != a.Shape()[0] || t.Shape()[1] != b.Shape()[1] {
		misuse(ErrShape, "AddMM: got shapes %v and %v for a result of shape %v, want (n, k) and (k, m) for (n, m)",
			a.Shape(), b.Shape(), t.Shape())
	}
	backendOf(t).addProduct(t, a, b)
	return t
}

// BMM returns the matrix products of two batches, (b, n, k) and (b, k, m), as (b, n, m). It does
// not broadcast: both batches must have the same size.
func BMM(a, b *Tensor) *Tensor {
	if len(a.Shape()) != 3 || len(b.Shape()) != 3 || a.Shape()[0] != b.Shape()[0] {
		misuse(ErrShape, "BMM: got shapes %v and %v, want (b, n, k) and (b, k, m)", a.Shape(), b.Shape())
	}
	return MatMul(a, b)
}

// asMatrices returns t in dtype dt as matrices whose rows or columns are contiguous. A vector
// becomes a matrix with size 1 in dimension dim. The caller must release the result with
// releaseRows.
func (t *Tensor) asMatrices(dt DType, dim int) *Tensor {
	x := t.borrowView(t.Shape(), t.Strides(), t.offset)
	if n, step := x.Shape(), x.Strides(); len(n) == 1 && dim == 0 {
		x.setLayout([]int{1, n[0]}, []int{n[0] * step[0], step[0]})
	} else if len(n) == 1 {
		x.setLayout([]int{n[0], 1}, []int{step[0], 1})
	}
	if _, _, ok := x.gemmLayout(); dt != x.dtype || !ok {
		dense := x.NewEmpty(dt, x.Shape()...).CopyFrom(x)
		x.releaseView()
		return dense
	}
	return x
}

// gemmLayout returns the layout of the matrices for Gemm: whether they are transposed, and the
// distance between rows, or between columns if transposed. ok is false if neither is contiguous.
func (t *Tensor) gemmLayout() (trans bool, ld int, ok bool) {
	rows, cols := t.Dim(-2), t.Dim(-1)
	down, across := t.Strides()[len(t.Strides())-2], t.Strides()[len(t.Strides())-1]
	switch {
	case (across == 1 || cols <= 1) && (down >= max(cols, 1) || rows <= 1):
		return false, max(down, cols, 1), true
	case (down == 1 || rows <= 1) && (across >= max(rows, 1) || cols <= 1):
		return true, max(across, rows, 1), true
	}
	return false, 0, false
}

// multiplyLoops implements backend.multiply on the host. It panics with ErrOperand if the dtype
// has no product.
func (t *Tensor) multiplyLoops(x, y *Tensor, batch []int) {
	if t.Numel() == 0 {
		return
	}
	if x.Dim(-1) == 0 {
		clear(t.contiguousBytes())
		return
	}
	size, f := t.dtype.Size(), brainProduct
	if t.dtype != BFloat16 {
		f = t.dtype.numericLoops().product
	}
	if f == nil {
		misuse(ErrOperand, "MatMul is not defined for %v", t.dtype)
	}
	p := matrixProduct{m: t.Dim(-2), n: t.Dim(-1), k: x.Dim(-1)}
	p.transA, p.lda, _ = x.gemmLayout()
	p.transB, p.ldb, _ = y.gemmLayout()
	xs, ys := x.bytes(), y.bytes()
	if len(batch) == 0 {
		f(p, xs[x.offset*size:], ys[y.offset*size:], t.contiguousBytes())
		return
	}
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	// only the shape of frame matters
	frame, stacks := t.firstElements(), [2]*Tensor{x.firstElements(), y.firstElements()}
	rowMajorInto(frame.Strides(), batch)
	frame.offset = 0
	w := newWalk(bufs.dims[:], frame, stacks[:])
	frame.releaseView()
	stacks[0].releaseView()
	stacks[1].releaseView()
	last := w.dims[len(w.dims)-1]
	w.eachRow(func(a, b, _, c int) {
		for i := range last.Size {
			o := (c + i*last.Steps[output]) * p.m * p.n
			f(p, xs[(a+i*last.Steps[0])*size:], ys[(b+i*last.Steps[1])*size:], t.contiguousBytes()[o*size:])
		}
	})
}

// addProductLoops adds the product of the matrices x and y to t. All must have the same dtype, and
// t must be contiguous.
func (t *Tensor) addProductLoops(x, y *Tensor) {
	p := matrixProduct{m: t.Dim(-2), n: t.Dim(-1), k: x.Dim(-1), add: true}
	p.transA, p.lda, _ = x.gemmLayout()
	p.transB, p.ldb, _ = y.gemmLayout()
	if size := t.dtype.Size(); p.m*p.n*p.k > 0 {
		t.dtype.numericLoops().product(p, x.bytes()[x.offset*size:], y.bytes()[y.offset*size:], t.contiguousBytes())
	}
	t.Touch()
}

// firstElements returns a view of the first element of each matrix. The caller must release it
// with releaseView.
func (t *Tensor) firstElements() *Tensor {
	n := len(t.Shape()) - 2
	return t.borrowView(t.Shape()[:n], t.Strides()[:n], t.offset)
}

// A matrixProduct contains the parameters of a product c = a·b of an m×k and a k×n matrix. lda
// and ldb are the distances between the rows of a and b in memory, in elements, or between the
// columns if transA or transB is true. c is contiguous.
type matrixProduct struct {
	m, n, k        int
	transA, transB bool
	lda, ldb       int
	add            bool // add to c; only gemm supports it
}

func gemm[T float](p matrixProduct, a, b, c []byte) {
	var beta T
	if p.add {
		beta = 1
	}
	if p.n == 1 && p.transA && p.m > 1 { // compute xᵀ·v as vᵀ·x, with rows in memory order
		p = matrixProduct{m: 1, n: p.m, k: p.k, transA: !p.transB, lda: p.ldb, ldb: p.lda, add: p.add}
		a, b = b, a
	}
	kernel.Gemm(p.transA, p.transB, p.m, p.n, p.k, 1, bytesAs[T](a), p.lda, bytesAs[T](b), p.ldb, beta,
		bytesAs[T](c), p.n)
}

// brainProduct sets c to the product of BFloat16 matrices without conversion, on processors with
// instructions for it.
func brainProduct(p matrixProduct, a, b, c []byte) {
	kernel.BrainProduct(p.transA, p.transB, p.m, p.n, p.k, a, p.lda, b, p.ldb, c, p.n)
}

// wholeProduct sets c to the product of integer matrices. If no sum can exceed the range in which
// float64 represents all integers, it computes in float64, which is exact in any order of
// additions.
func wholeProduct[T integer](p matrixProduct, a, b, c []byte) {
	const from = 1 << 12 // minimum number of multiplications
	if p.m*p.n*p.k < from {
		multiplyPlain[T](p, a, b, c)
		return
	}
	x, mostX := convertToFloats[T](a, p.m, p.k, p.transA, p.lda)
	defer x.release()
	y, mostY := convertToFloats[T](b, p.k, p.n, p.transB, p.ldb)
	defer y.release()
	if mostX*mostY*float64(p.k) > 1<<53 {
		multiplyPlain[T](p, a, b, c)
		return
	}
	z := Empty(Float64, p.m, p.n)
	defer z.release()
	p.lda, p.ldb = p.k, p.n
	if p.transA {
		p.lda = p.m
	}
	if p.transB {
		p.ldb = p.k
	}
	gemm[float64](p, x.contiguousBytes(), y.contiguousBytes(), z.contiguousBytes())
	for i, v := range bytesAs[float64](z.contiguousBytes()) {
		bytesAs[T](c)[i] = T(int64(v))
	}
}

// convertToFloats returns a dense copy of an integer matrix in Float64, and the largest
// magnitude. The caller must release the copy. rows and cols are the sizes of the matrix; if
// trans is true, x contains its transpose. ld is the distance between the rows in memory.
func convertToFloats[T integer](x []byte, rows, cols int, trans bool, ld int) (dense *Tensor, most float64) {
	if trans {
		rows, cols = cols, rows
	}
	dense = Empty(Float64, rows, cols)
	to := bytesAs[float64](dense.contiguousBytes())
	for i := range rows {
		row := to[i*cols:][:cols]
		for j, v := range bytesAs[T](x)[i*ld:][:cols] {
			row[j] = float64(v)
		}
		most = max(most, kernel.Largest(row), -kernel.Smallest(row))
	}
	return dense, most
}

// complexProduct sets c to the product of complex matrices. It computes large products from the
// products of real and imaginary parts.
func complexProduct[T cplx](p matrixProduct, a, b, c []byte) {
	const from = 1 << 12 // minimum number of multiplications
	switch {
	case p.m*p.n*p.k < from:
		multiplyPlain[T](p, a, b, c)
	case DTypeOf[T]() == Complex64:
		productOfParts[float32](p, a, b, c)
	default:
		productOfParts[float64](p, a, b, c)
	}
}

// productOfParts sets c to the product (x+iy)(u+iv) = (xu-yv) + i(xv+yu) of matrices with real
// and imaginary parts of type F.
func productOfParts[F float](p matrixProduct, a, b, c []byte) {
	x, y := splitComplex[F](a, p.m, p.k, p.transA, p.lda)
	defer x.release()
	defer y.release()
	u, v := splitComplex[F](b, p.k, p.n, p.transB, p.ldb)
	defer u.release()
	defer v.release()
	re, im := Empty(DTypeOf[F](), p.m, p.n), Empty(DTypeOf[F](), p.m, p.n)
	defer re.release()
	defer im.release()
	lda, ldb := p.k, p.n
	if p.transA {
		lda = p.m
	}
	if p.transB {
		ldb = p.k
	}
	multiply := func(alpha F, a, b *Tensor, beta F, c *Tensor) {
		kernel.Gemm(p.transA, p.transB, p.m, p.n, p.k, alpha, bytesAs[F](a.contiguousBytes()), lda,
			bytesAs[F](b.contiguousBytes()), ldb,
			beta, bytesAs[F](c.contiguousBytes()), p.n)
	}
	multiply(1, x, u, 0, re)
	multiply(-1, y, v, 1, re)
	multiply(1, x, v, 0, im)
	multiply(1, y, u, 1, im)
	to, s, t := bytesAs[F](c), bytesAs[F](re.contiguousBytes()), bytesAs[F](im.contiguousBytes())
	for i, v := range s {
		to[2*i], to[2*i+1] = v, t[i]
	}
}

// splitComplex returns dense copies of the real and the imaginary parts of a matrix. The
// parameters are those of convertToFloats. The caller must release both.
func splitComplex[F float](x []byte, rows, cols int, trans bool, ld int) (re, im *Tensor) {
	if trans {
		rows, cols = cols, rows
	}
	re, im = Empty(DTypeOf[F](), rows, cols), Empty(DTypeOf[F](), rows, cols)
	s, t := bytesAs[F](re.contiguousBytes()), bytesAs[F](im.contiguousBytes())
	for i := range rows {
		row := bytesAs[F](x)[2*i*ld:][:2*cols]
		for j := range cols {
			s[i*cols+j], t[i*cols+j] = row[2*j], row[2*j+1]
		}
	}
	return re, im
}

// multiplyPlain sets c to the product of matrices of any dtype, without a kernel.
func multiplyPlain[T ordered | cplx](p matrixProduct, a, b, c []byte) {
	x, y, z := bytesAs[T](a), bytesAs[T](b), bytesAs[T](c)
	down, right := p.lda, 1
	if p.transA {
		down, right = 1, p.lda
	}
	under, across := p.ldb, 1
	if p.transB {
		under, across = 1, p.ldb
	}
	const deep = 64 // rows of b that stay in the CPU cache for all rows of a
	clear(z[:p.m*p.n])
	for begin := 0; begin < p.k; begin += deep {
		end := min(begin+deep, p.k)
		for i := range p.m {
			row, l := z[i*p.n:(i+1)*p.n], begin
			if across == 1 {
				for ; l+4 <= end; l += 4 {
					at := i*down + l*right
					addRows(row, [4]T{x[at], x[at+right], x[at+2*right], x[at+3*right]}, y[l*under:], under)
				}
			}
			for ; l < end; l++ {
				v := x[i*down+l*right]
				for j := range row {
					row[j] += v * y[l*under+j*across]
				}
			}
		}
	}
}

// addRows adds v[i] times row i of y to row, for four rows that are ld elements apart.
func addRows[T ordered | cplx](row []T, v [4]T, y []T, ld int) {
	n := len(row)
	a, b, c, d := y[:n], y[ld:][:n], y[2*ld:][:n], y[3*ld:][:n]
	for j, sum := range row {
		sum += v[0] * a[j]
		sum += v[1] * b[j]
		sum += v[2] * c[j]
		sum += v[3] * d[j]
		row[j] = sum
	}
}
