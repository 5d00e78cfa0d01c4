package tensor

// category orders dtypes as promotion does: bool, integers, floats, complex numbers.
func (d DType) category() int {
	switch {
	case d == Bool:
		return 0
	case d.isInteger():
		return 1
	case d.isFloat():
		return 2
	}
	return 3
}

// Promote returns the dtype of results of a and b, as PyTorch's promote_types does. It panics for
// dtypes that operations refuse.
func Promote(a, b DType) DType {
	if a > b {
		a, b = b, a
	}
	switch {
	case a == b, a == Bool:
		return b
	case b.isKept():
		misuse(ErrOperand, "%v and %v do not meet: To converts one", a, b)
	case a.category() < b.category() && b != Complex64:
		return b
	case a == Uint8 && b == Int8:
		return Int16
	case a == Float16 && b == BFloat16:
		return Float32
	case a == Float64 && b == Complex64:
		return Complex128
	}
	return b
}

// ResultType returns the dtype of results of a and b, as PyTorch's result_type does: a tensor
// without dimensions counts only if its category is the higher one. It panics where Promote does.
func ResultType(a, b *Tensor) DType { return promote(a, b) }

// promote is Promote for operands: a tensor without dimensions counts only if its category is the
// higher one, and a complex number without dimensions has the digits of the floats it meets.
func promote(a, b *Tensor) DType {
	if len(a.Shape()) == 0 {
		a, b = b, a
	}
	if len(a.Shape()) == 0 || len(b.Shape()) > 0 {
		return Promote(a.dtype, b.dtype)
	}
	switch {
	case b.dtype.category() <= a.dtype.category():
		return a.dtype
	case a.dtype.isFloat():
		return Promote(a.dtype, Complex64)
	}
	return Promote(a.dtype, b.dtype)
}

// computed returns the dtype in which elements of d are computed.
func (d DType) computed() DType {
	if d == Float16 || d == BFloat16 {
		return Float32
	}
	return d
}

// floating returns d, or Float32 where d has no fractions: the dtype of quotients, roots and
// logarithms.
func (d DType) floating() DType {
	if d.category() < 2 {
		return Float32
	}
	return d
}

// wantRoom refuses to store results of dtype from in a tensor of a lower category.
func (t *Tensor) wantRoom(from DType) {
	if from.category() > t.dtype.category() {
		misuse(ErrOperand, "result of %v does not fit in place into a tensor of %v", from, t.dtype)
	}
}
