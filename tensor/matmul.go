package tensor

import (
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// MatMul returns the matrix product as torch.matmul does. Two vectors give their inner product. A
// matrix and a vector give a vector. With more dimensions, the last two are matrices, and the
// others are broadcast. Dtypes are promoted.
func MatMul(a, b *Tensor) *Tensor {
	if len(a.Shape()) == 0 || len(b.Shape()) == 0 {
		misuse("MatMul of shapes %v and %v: want at least one dimension", a.Shape(), b.Shape())
	}
	row, col := len(a.Shape()) == 1, len(b.Shape()) == 1
	dt := Promote(a.dtype, b.dtype)
	in := backendOf(a).multiplied(dt)
	x, y := a.matrices(in, 0), b.matrices(in, 1)
	m, k, n := x.Dim(-2), x.Dim(-1), y.Dim(-1)
	if y.Dim(-2) != k {
		misuse("MatMul of shapes %v and %v: %d columns meet %d rows", a.Shape(), b.Shape(), k, y.Dim(-2))
	}
	batch := broadcast(x.Shape()[:len(x.Shape())-2], y.Shape()[:len(y.Shape())-2])
	home([]*Tensor{a, b})
	out := a.NewEmpty(in, append(slices.Clone(batch), m, n)...)
	backendOf(out).multiply(out, x, y, batch)
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	if row {
		out = out.become(out.Squeeze(-2))
	}
	if col {
		out = out.become(out.Squeeze(-1))
	}
	return out.become(out.To(dt))
}

// AddMM adds the product of two matrices to t in place: torch.addmm. t is contiguous and has their
// dtype.
func (t *Tensor) AddMM(a, b *Tensor) *Tensor {
	if len(t.Shape()) != 2 || len(a.Shape()) != 2 || len(b.Shape()) != 2 || a.Shape()[1] != b.Shape()[0] ||
		t.Shape()[0] != a.Shape()[0] || t.Shape()[1] != b.Shape()[1] {
		misuse("AddMM of shapes %v and %v to %v", a.Shape(), b.Shape(), t.Shape())
	}
	backendOf(t).addProduct(t, a, b)
	return t
}

// BMM returns the matrix products of two batches, (b, n, k) and (b, k, m), as (b, n, m). It does
// not broadcast.
func BMM(a, b *Tensor) *Tensor {
	if len(a.Shape()) != 3 || len(b.Shape()) != 3 || a.Shape()[0] != b.Shape()[0] {
		misuse("BMM of shapes %v and %v: want (b, n, k) and (b, k, m)", a.Shape(), b.Shape())
	}
	return MatMul(a, b)
}

// matrices returns t in dtype dt as matrices whose rows or columns are contiguous; a vector is one
// with dimension dim of size 1.
func (t *Tensor) matrices(dt DType, dim int) *Tensor {
	x := t.peek(t.Shape(), t.Strides(), t.offset)
	if len(x.Shape()) == 1 {
		x.lay(slices.Insert(slices.Clone(x.Shape()), dim, 1), slices.Insert(slices.Clone(x.Strides()), dim, 1))
		if dim == 0 {
			x.Strides()[0] = t.Shape()[0] * t.Strides()[0]
		}
	}
	if _, _, ok := x.leading(); dt != x.dtype || !ok {
		return x.NewEmpty(dt, x.Shape()...).CopyFrom(x)
	}
	return x
}

// leading returns how the matrices lie in memory for Gemm: transposed or not, and the distance of
// rows (of columns, if transposed).
func (t *Tensor) leading() (trans bool, ld int, ok bool) {
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

// multiplyLoops is multiply on the host.
func (t *Tensor) multiplyLoops(x, y *Tensor, batch []int) {
	if t.Numel() == 0 {
		return
	}
	if x.Dim(-1) == 0 {
		clear(t.span())
		return
	}
	size := t.dtype.Size()
	f := t.dtype.numeric().product
	if f == nil {
		misuse("MatMul is not defined for %v", t.dtype)
	}
	p := matrixProduct{m: t.Dim(-2), n: t.Dim(-1), k: x.Dim(-1)}
	p.transA, p.lda, _ = x.leading()
	p.transB, p.ldb, _ = y.leading()
	xs, ys := x.bytes(), y.bytes()
	frame := New(Bool, batch...) // only its shape counts
	stacks := []*Tensor{x.stack(), y.stack()}
	w := newWalk(nil, frame, stacks)
	last := w.dims[len(w.dims)-1]
	w.rows(func(at [4]int) {
		for i := range last.Size {
			o := (at[output] + i*last.Steps[output]) * p.m * p.n
			f(p, xs[(at[0]+i*last.Steps[0])*size:], ys[(at[1]+i*last.Steps[1])*size:], t.span()[o*size:])
		}
	})
}

// stack returns the first elements of t's matrices.
func (t *Tensor) stack() *Tensor {
	n := len(t.Shape()) - 2
	return t.peek(t.Shape()[:n], t.Strides()[:n], t.offset)
}

type matrixProduct struct {
	m, n, k        int
	transA, transB bool
	lda, ldb       int
}

func gemm[T float](p matrixProduct, a, b, c []byte) {
	kernel.Gemm(p.transA, p.transB, p.m, p.n, p.k, 1, typed[T](a), p.lda, typed[T](b), p.ldb, 0, typed[T](c), p.n)
}

// plain is the product of numbers for which there is no kernel.
func plain[T ordered | cplx](p matrixProduct, a, b, c []byte) {
	x, y, z := typed[T](a), typed[T](b), typed[T](c)
	down, right := p.lda, 1
	if p.transA {
		down, right = 1, p.lda
	}
	under, across := p.ldb, 1
	if p.transB {
		under, across = 1, p.ldb
	}
	for i := range p.m {
		row := z[i*p.n : (i+1)*p.n]
		clear(row)
		for l := range p.k {
			v := x[i*down+l*right]
			for j := range row {
				row[j] += v * y[l*under+j*across]
			}
		}
	}
}
