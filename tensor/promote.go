package tensor

// promotionRank returns the rank of d in promotion: 0 for bool, 1 for integers, 2 for floats, 3 for
// complex numbers.
func (d DType) promotionRank() int {
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

// Promote returns the dtype of the result of an operation on a and b, like PyTorch's
// promote_types. It panics if one of them is a storage-only dtype, such as Uint16, and the other
// is neither the same dtype nor Bool.
func Promote(a, b DType) DType {
	if a > b {
		a, b = b, a
	}
	switch {
	case a == b, a == Bool:
		return b
	case b.isKept():
		misuse(ErrOperand, "%v and %v have no common dtype: convert one with To", a, b)
	case a.promotionRank() < b.promotionRank() && b != Complex64:
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

// ResultType returns the dtype of the result of an operation on a and b, like PyTorch's
// result_type: a tensor without dimensions matters only if its category is higher, and so does the
// result of [Tensor.Number] next to such a tensor. It panics under the same conditions as
// [Promote].
func ResultType(a, b *Tensor) DType { return promoteOperands(a, b) }

// promotionPriority returns 2 for a tensor with dimensions, 1 for one without, and 0 for a number.
// Of two operands, the dtype of the one with the lower priority matters only if its category is
// higher.
func (t *Tensor) promotionPriority() int {
	switch {
	case len(t.Shape()) > 0:
		return 2
	case t.number:
		return 0
	}
	return 1
}

// promoteOperands is Promote for operands with priorities. A complex scalar takes the precision of
// the float tensor that it is combined with.
func promoteOperands(a, b *Tensor) DType {
	switch before := a.promotionPriority() - b.promotionPriority(); {
	case before == 0:
		return Promote(a.dtype, b.dtype)
	case before < 0:
		a, b = b, a
	}
	switch {
	case b.dtype.promotionRank() <= a.dtype.promotionRank():
		return a.dtype
	case a.dtype.isFloat():
		return Promote(a.dtype, Complex64)
	}
	return Promote(a.dtype, b.dtype)
}

// computeDType returns the dtype in which elements of d are computed: Float32 for 16-bit floats,
// and otherwise d.
func (d DType) computeDType() DType {
	if d == Float16 || d == BFloat16 {
		return Float32
	}
	return d
}

// floatDType returns d, or Float32 for integers and booleans. It is the dtype of quotients, roots
// and logarithms.
func (d DType) floatDType() DType {
	if d.promotionRank() < 2 {
		return Float32
	}
	return d
}

// requireCastable panics unless results of dtype from can be stored in t. They cannot if their
// category is higher.
func (t *Tensor) requireCastable(from DType) {
	if from.promotionRank() > t.dtype.promotionRank() {
		misuse(ErrOperand, "result of dtype %v cannot be stored in place in a tensor of %v", from, t.dtype)
	}
}
