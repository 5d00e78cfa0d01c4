package tensor

// Max returns the greatest element along a dimension and its index (Int64), the first if there are several. NaN is
// greater than everything.
func Max(t *Tensor, dim int) (values, indices *Tensor) {
	indices = Argmax(t, dim)
	return t.pickAlong(dim, indices), indices
}

// Min returns the least element along a dimension and its index (Int64), the first if there are several. NaN is less
// than everything.
func Min(t *Tensor, dim int) (values, indices *Tensor) {
	indices = Argmin(t, dim)
	return t.pickAlong(dim, indices), indices
}

// Argmax returns the index (Int64) of the greatest element along a dimension.
func Argmax(t *Tensor, dim int) *Tensor { return extreme(t, dim, "Argmax", true) }

// Argmin returns the index (Int64) of the least element along a dimension.
func Argmin(t *Tensor, dim int) *Tensor { return extreme(t, dim, "Argmin", false) }

func extreme(t *Tensor, dim int, name string, greatest bool) *Tensor {
	if len(t.shape) == 0 {
		return New(Int64)
	}
	dim = t.axis(dim)
	if t.shape[dim] == 0 {
		misuse("%s along dimension %d, which has no elements", name, dim)
	}
	if t.dtype.isComplex() {
		misuse("%s of complex numbers, which have no order", name)
	}
	dt := t.dtype.computed()
	return fold{dt, Int64, extremeOn(dt, greatest)}.over(t, []int{dim}, false)
}

func extremeOn(dt DType, greatest bool) func(out, rows []byte, n int) {
	switch dt {
	case Int8:
		return folding(extremeOf[int8](greatest))
	case Int16:
		return folding(extremeOf[int16](greatest))
	case Int32:
		return folding(extremeOf[int32](greatest))
	case Int64:
		return folding(extremeOf[int64](greatest))
	case Float32:
		return folding(extremeOf[float32](greatest))
	case Float64:
		return folding(extremeOf[float64](greatest))
	}
	return folding(extremeOf[uint8](greatest))
}

func extremeOf[T ordered](greatest bool) func(row []T) int64 {
	if greatest {
		return func(row []T) int64 {
			best := 0
			for i, v := range row {
				if v > row[best] || v != v && row[best] == row[best] {
					best = i
				}
			}
			return int64(best)
		}
	}
	return func(row []T) int64 {
		best := 0
		for i, v := range row {
			if v < row[best] || v != v && row[best] == row[best] {
				best = i
			}
		}
		return int64(best)
	}
}

// pickAlong returns the elements at one index of a dimension for each of the others.
func (t *Tensor) pickAlong(dim int, indices *Tensor) *Tensor {
	if len(t.shape) == 0 {
		return t.Clone()
	}
	dim = t.axis(dim)
	along := indices.Unsqueeze(dim)
	defer along.release()
	picked := Gather(t, dim, along)
	return picked.become(picked.Squeeze(dim))
}
