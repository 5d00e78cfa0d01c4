package tensor

// Argsort returns the Int64 indices that sort the elements along dim. The sort is stable. NaN
// counts as the largest value. t must not be complex.
func Argsort(t *Tensor, dim int, descending bool) *Tensor {
	in, keys := t.sortKeys()
	s := sorters.Get().(*sorter)
	defer sorters.Put(s)
	return t.alongRows(dim, in, Int64, asLong, func(out, row []byte) {
		numbers := bytesAs[int64](out)
		s.grow(len(numbers))
		keys(s.row, row)
		if descending {
			for i := range s.row {
				s.row[i].key = ^s.row[i].key
			}
		}
		s.sort(in.Size())
		for i := range numbers {
			numbers[i] = s.row[i].index
		}
	})
}

// sortKeys returns the dtype for sorting t, and the function that computes its keys. It panics
// with ErrOperand if the dtype has no order or is storage-only.
func (t *Tensor) sortKeys() (DType, keysFunc) {
	in := t.dtype.computeDType()
	keys := in.numericLoops().keys
	if keys == nil {
		misuse(ErrOperand, "Argsort is not defined for %v, which has no order", t.dtype)
	}
	return in, keys
}

// greatestIndices returns the indices of the k largest elements along dim, in descending order. k
// must be from 0 to the size of dim.
func (t *Tensor) greatestIndices(k, dim int) *Tensor {
	if len(t.Shape()) == 0 {
		return Argsort(t, dim, true)
	}
	if k > fewKeys || k > t.Dim(dim)/2 {
		indices := Argsort(t, dim, true)
		return indices.replaceWith(indices.Narrow(dim, 0, k))
	}
	in, keys := t.sortKeys()
	s := sorters.Get().(*sorter)
	defer sorters.Put(s)
	return t.alongRows(dim, in, Int64, k, func(out, row []byte) {
		numbers := bytesAs[int64](out)
		for i, p := range s.selectGreatest(k, row, in, keys) {
			numbers[i] = p.index
		}
	})
}

// Sort returns the elements sorted along dim, and their original Int64 indices; see [Argsort].
func Sort(t *Tensor, dim int, descending bool) (values, indices *Tensor) {
	indices = Argsort(t, dim, descending)
	return t.gatherOrSelf(dim, indices), indices
}

// TopK returns the k largest elements along dim in descending order, and their Int64 indices. k
// must not be negative or exceed the size of dim.
func TopK(t *Tensor, k, dim int) (values, indices *Tensor) {
	if len(t.Shape()) > 0 && (k < 0 || k > t.Dim(dim)) || k < 0 || k > 1 && len(t.Shape()) == 0 {
		misuse(ErrArgument, "TopK: k = %d is out of range for dimension %d of shape %v", k, dim, t.Shape())
	}
	indices = t.greatestIndices(k, dim)
	return t.gatherOrSelf(dim, indices), indices
}

// gatherOrSelf is like Gather, but also accepts scalars.
func (t *Tensor) gatherOrSelf(dim int, indices *Tensor) *Tensor {
	if len(t.Shape()) == 0 {
		return t.Clone()
	}
	return Gather(t, dim, indices)
}

// CumSum returns the cumulative sums along dim, with the dtypes of [Sum].
func CumSum(t *Tensor, dim int) *Tensor {
	in := t.dtype.computeDType()
	n := in.numericLoops()
	if t.dtype.promotionRank() < 2 {
		return t.alongRows(dim, in, n.total, asLong, n.running)
	}
	sums := t.alongRows(dim, in, in, asLong, n.running)
	return sums.convertOwned(t.dtype)
}

// runningSum sets the elements of out, of type R, to the cumulative sums of row, of type T. It
// accumulates in type A.
func runningSum[A, R, T ordered](out, row []byte) {
	var sum A
	each(bytesAs[R](out), bytesAs[T](row), func(x T) R { sum += A(x); return R(sum) })
}

func runningComplexSum[T cplx](out, row []byte) {
	var sum complex128
	each(bytesAs[T](out), bytesAs[T](row), func(x T) T { sum += complex128(x); return T(sum) })
}

// asLong makes alongRows return rows of the same length as its input.
const asLong = -1

// alongRows returns a new tensor of dtype out with t's shape except for the given length along
// dim; see asLong. It calls f for each row along dim, converted to dtype in, and f must set out
// to the resulting row.
func (t *Tensor) alongRows(dim int, in, out DType, length int, f func(out, row []byte)) *Tensor {
	return backendOf(t).onHostCopy(t, func(near *Tensor) *Tensor { return near.rowLoops(dim, in, out, length, f) })
}

func (t *Tensor) rowLoops(dim int, in, out DType, length int, f func(out, row []byte)) *Tensor {
	if len(t.Shape()) == 0 {
		wrapIndex(dim, 1, "dimension")
		line := t.borrowView([]int{1}, []int{1}, t.offset)
		defer line.releaseView()
		return line.rowLoops(0, in, out, length, f).setShape()
	}
	dim = t.resolveDim(dim)
	var room [2][2 * fewDims]int
	order, back := room[0][:0], room[1][:0]
	for d := range t.Shape() {
		switch {
		case d < dim:
			order, back = append(order, d), append(back, d)
		case d == dim:
			back = append(back, len(t.Shape())-1)
		default:
			order, back = append(order, d), append(back, d-1)
		}
	}
	rows := t.rowsOf(in, append(order, dim))
	var wanted [2 * fewDims]int
	shape := append(wanted[:0], rows.Shape()...)
	if length == asLong {
		length = t.Shape()[dim]
	}
	shape[len(shape)-1] = length
	result := Empty(out, shape...)
	if n := t.Shape()[dim]; n > 0 {
		from, to := rows.contiguousBytes(), result.contiguousBytes()
		for width, wide := n*in.Size(), length*out.Size(); len(from) > 0; from, to = from[width:], to[wide:] {
			f(to[:wide], from[:width])
		}
	}
	rows.releaseRows(t)
	if dim == len(t.Shape())-1 {
		return result
	}
	var turn [2][2 * fewDims]int
	turned := result.borrowView(appendPicked(turn[0][:0], result.Shape(), back),
		appendPicked(turn[1][:0], result.Strides(), back), 0)
	defer turned.releaseView()
	return result.replaceWith(turned.Clone())
}
