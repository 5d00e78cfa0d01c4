package tensor

import (
	"sync"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// A numeric contains the loops for one dtype: a function for each operation on rows, or nil if the
// operation is not defined. Float16 and BFloat16, which are computed in Float32 (see
// DType.computeDType), and storage-only dtypes (see DType.isKept) have none.
type numeric struct {
	rows    []rowFunc // for each operation
	byOne   []oneFunc // for binary operations with a scalar, if faster; may be nil
	folds   [reductions]foldFunc
	columns [reductions]columnsFunc // if faster than the operation on rows; else nil
	total   DType                   // dtype of sums, products and variances
	add     castFunc                // adds src to dst; both have this dtype
	addAt   placesFunc              // the same at a list of positions
	// running computes cumulative sums of a row, of type total for integers and of this dtype
	// otherwise.
	running func(out, row []byte)
	keys    keysFunc
	clamp   numbersFunc // with bounds; only for floats
	axpy    numbersFunc // with a factor of the second operand; only for floats
	product func(p matrixProduct, a, b, c []byte)
}

// numerics creates the tables of each dtype on first use, so that they do not slow down program
// start.
var numerics = [dtypes]func() *numeric{
	Bool:       sync.OnceValue(boolNumeric),
	Uint8:      sync.OnceValue(integerNumeric[uint8]),
	Int8:       sync.OnceValue(integerNumeric[int8]),
	Int16:      sync.OnceValue(integerNumeric[int16]),
	Int32:      sync.OnceValue(integerNumeric[int32]),
	Int64:      sync.OnceValue(integerNumeric[int64]),
	Float32:    sync.OnceValue(floatNumeric[float32]),
	Float64:    sync.OnceValue(floatNumeric[float64]),
	Complex64:  sync.OnceValue(complexNumeric[complex64]),
	Complex128: sync.OnceValue(complexNumeric[complex128]),
}

// numericLoops returns the loops for dtype d, which all operations share. It panics if d is
// storage-only.
func (d DType) numericLoops() *numeric {
	if numerics[d] == nil {
		misuse(ErrOperand, "%v supports no operations, only storage: convert the tensor with To first", d)
	}
	return numerics[d]()
}

// boolNumeric returns the operations that PyTorch defines for bool: addition is or, multiplication
// is and.
func boolNumeric() *numeric {
	n := &numeric{rows: make([]rowFunc, len(operations)), total: Int64, keys: integerKeys[uint8],
		running: runningSum[int64, int64, uint8], addAt: orAt}
	orderedRows[uint8](n.rows)
	n.rows[opMaximum] = combineRow(kernel.Larger,
		func(r, a, b []uint8) { zip(r, a, b, func(x, y uint8) uint8 { return x | y }) })
	n.rows[opMinimum] = combineRow(kernel.Smaller,
		func(r, a, b []uint8) { zip(r, a, b, func(x, y uint8) uint8 { return x & y }) })
	n.rows[opAdd], n.rows[opMul] = n.rows[opMaximum], n.rows[opMinimum]
	n.add = accumulate(n.rows[opAdd], func(a, b uint8) uint8 { return a | b })
	for _, o := range []op{opSub, opNeg, opAbs, opReLU, opFloor, opCeil, opRound, opTrunc} {
		n.rows[o] = nil
	}
	orderedFolds[uint8, int64](&n.folds)
	wholeFolds[uint8](&n.folds)
	return n
}

func integerNumeric[T integer]() *numeric {
	n := &numeric{rows: make([]rowFunc, len(operations)), total: Int64, keys: integerKeys[T],
		running: runningSum[int64, int64, T], product: wholeProduct[T], addAt: addAt[T]}
	orderedRows[T](n.rows)
	integerRows[T](n.rows)
	n.add = accumulate(n.rows[opAdd], sum[T])
	orderedFolds[T, int64](&n.folds)
	wholeFolds[T](&n.folds)
	if DTypeOf[T]() == Int64 {
		longFolds(&n.folds)
	}
	return n
}

func floatNumeric[T float]() *numeric {
	n := &numeric{rows: make([]rowFunc, len(operations)), total: Float64, keys: floatKeys[T],
		running: runningSum[float64, T, T], product: gemm[T], addAt: addAt[T]}
	orderedRows[T](n.rows)
	floatRows[T](n.rows)
	n.add = accumulate(n.rows[opAdd], sum[T])
	orderedFolds[T, float64](&n.folds)
	n.byOne = make([]oneFunc, len(operations))
	n.byOne[opAdd], n.byOne[opMul] = alphaRow(kernel.Shift[T]), alphaRow(kernel.ScaleTo[T])
	n.clamp = func(lo, hi float64, out, x, _ []byte) { kernel.Clamp(T(lo), T(hi), bytesAs[T](x), bytesAs[T](out)) }
	n.axpy = func(alpha, _ float64, out, t, x []byte) {
		copy(out, t) // usually the same memory
		kernel.Axpy(T(alpha), bytesAs[T](x), bytesAs[T](out))
	}
	n.folds[redSum] = func(out, rows []byte, each int) { kernel.RowSums(each, bytesAs[T](rows), bytesAs[float64](out)) }
	n.columns[redSum] = func(rows, cols int, x []byte, ld int, to []byte, exact bool) {
		kernel.ColumnSums(rows, cols, bytesAs[T](x), ld, bytesAs[float64](to), exact)
	}
	n.columns[redMax], n.columns[redMin] = columnFold(kernel.LargestColumns[T]), columnFold(kernel.SmallestColumns[T])
	n.folds[redProd] = rowFold(kernel.Product[T])
	n.folds[redVar] = rowFold(varianceOf[T])
	n.folds[redMax] = rowFold(kernel.Largest[T])
	n.folds[redMin] = rowFold(kernel.Smallest[T])
	n.folds[redArgmax] = rowFold(placeOf(kernel.Largest[T], isGreater))
	n.folds[redArgmin] = rowFold(placeOf(kernel.Smallest[T], isLess))
	return n
}

func complexNumeric[T cplx]() *numeric {
	n := &numeric{rows: make([]rowFunc, len(operations)), total: Complex128, product: complexProduct[T],
		running: runningComplexSum[T], addAt: addAt[T]}
	arithmeticRows[T](n.rows)
	n.add = accumulate(n.rows[opAdd], sum[T])
	complexRows[T](n.rows)
	complexFolds[T](&n.folds)
	return n
}
