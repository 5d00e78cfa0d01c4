package dist

import (
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// An Op is a reduction of elements over ranks.
type Op uint8

// The reductions. [Mean], the AVG of torch.distributed, supports floats and complex numbers.
// [BAnd], [BOr] and [BXor] are bitwise and support integers and Bool. Complex numbers support only
// [Sum] and Mean. Integers wrap around. [Max] and [Min] of NaN and any number are NaN. Float16 and
// BFloat16 are reduced in float32 and rounded once. For Bool, Sum and Max are a logical or, and
// Prod and Min are a logical and, as in NCCL.
const (
	Sum Op = iota
	Mean
	Max
	Min
	Prod
	BAnd
	BOr
	BXor
)

var opNames = [...]string{"sum", "mean", "max", "min", "prod", "band", "bor", "bxor"}

// String returns the name of the operation.
func (op Op) String() string {
	if int(op) < len(opNames) {
		return opNames[op]
	}
	return "op " + strconv.Itoa(int(op))
}

type integer interface {
	uint8 | int8 | int16 | int32 | int64
}

type number interface {
	integer | float32 | float64
}

// A folding reduces n elements of v. The operands start at the indices from, one for each rank, and
// the result is written at index into.
type folding func(op Op, v *tensor.Tensor, into int, from []int, n int)

// A reduction describes how elements of a dtype are reduced: the dtype as which their memory is
// viewed, the function, and the operations that the dtype supports.
type reduction struct {
	as   tensor.DType
	fold folding
	ops  []Op
}

var (
	ofIntegers = []Op{Sum, Max, Min, Prod, BAnd, BOr, BXor}
	ofFloats   = []Op{Sum, Mean, Max, Min, Prod}
	ofComplex  = []Op{Sum, Mean}
)

var reductions = map[tensor.DType]reduction{
	tensor.Bool:       {tensor.Uint8, foldBool, ofIntegers},
	tensor.Uint8:      {tensor.Uint8, foldInteger[uint8], ofIntegers},
	tensor.Int8:       {tensor.Int8, foldInteger[int8], ofIntegers},
	tensor.Int16:      {tensor.Int16, foldInteger[int16], ofIntegers},
	tensor.Int32:      {tensor.Int32, foldInteger[int32], ofIntegers},
	tensor.Int64:      {tensor.Int64, foldInteger[int64], ofIntegers},
	tensor.Float32:    {tensor.Float32, newFolding(combineFloat[float32]), ofFloats},
	tensor.Float64:    {tensor.Float64, newFolding(combineFloat[float64]), ofFloats},
	tensor.Float16:    {tensor.Float16, foldHalf, ofFloats},
	tensor.BFloat16:   {tensor.BFloat16, foldHalf, ofFloats},
	tensor.Complex64:  {tensor.Float32, newFolding(combineFloat[float32]), ofComplex},
	tensor.Complex128: {tensor.Float64, newFolding(combineFloat[float64]), ofComplex},
}

func (op Op) isKnown() bool { return int(op) < len(opNames) }

// supports reports whether op supports dt.
func (op Op) supports(dt tensor.DType) bool { return slices.Contains(reductions[dt].ops, op) }

// blockLen is the number of elements reduced at a time. A block must fit in the CPU cache.
const blockLen = 4 << 10

// newFolding returns the folding for T. combine reduces the elements s of another rank into d.
func newFolding[T number](combine func(op Op, d, s []T)) folding {
	return func(op Op, v *tensor.Tensor, into int, from []int, n int) {
		all := tensor.Data[T](v)
		for at := 0; at < n; at += blockLen {
			size := min(blockLen, n-at)
			d := all[into+at:][:size]
			copy(d, all[from[0]+at:])
			for _, f := range from[1:] {
				combine(op, d, all[f+at:][:size])
			}
			if op == Mean {
				divideByRanks(d, len(from))
			}
		}
	}
}

func foldInteger[T integer](op Op, v *tensor.Tensor, into int, from []int, n int) {
	newFolding(combineInteger[T])(op, v, into, from, n)
}

// foldBool reduces bytes that are 0 or 1.
func foldBool(op Op, v *tensor.Tensor, into int, from []int, n int) {
	switch op {
	case Sum, Max:
		op = BOr
	case Prod, Min:
		op = BAnd
	}
	foldInteger[uint8](op, v, into, from, n)
}

// foldHalf reduces half-precision numbers in float32.
func foldHalf(op Op, v *tensor.Tensor, into int, from []int, n int) {
	at := func(i int) *tensor.Tensor { return v.Narrow(0, i, n) }
	sum := at(from[0]).To(tensor.Float32)
	d := tensor.Data[float32](sum)
	for _, f := range from[1:] {
		combineFloat(op, d, tensor.Data[float32](at(f).To(tensor.Float32)))
	}
	if op == Mean {
		divideByRanks(d, len(from))
	}
	at(into).CopyFrom(sum)
}

// divideByRanks divides by the number of ranks. For powers of two it multiplies by the reciprocal,
// which is exact and several times as fast.
func divideByRanks[T number](d []T, ranks int) {
	switch d := any(d).(type) {
	case []float32:
		divideBy(d, float32(ranks), ranks)
	case []float64:
		divideBy(d, float64(ranks), ranks)
	}
}

func divideBy[F kernel.Float](d []F, by F, ranks int) {
	if ranks&(ranks-1) == 0 {
		kernel.Scale(1/by, d)
		return
	}
	for i := range d {
		d[i] /= by
	}
}

// combineFloat reduces the elements s of another rank into d. Sums use an axpy kernel: 1·s + d
// rounds once, as s + d does, because the product is exact.
func combineFloat[T kernel.Float](op Op, d, s []T) {
	if op == Sum || op == Mean {
		kernel.Axpy(1, s, d)
		return
	}
	combine(op, d, s)
}

func combineInteger[T integer](op Op, d, s []T) {
	s = s[:len(d)]
	switch op {
	case Sum:
		for i, x := range s {
			d[i] += x
		}
	case BAnd:
		for i, x := range s {
			d[i] &= x
		}
	case BOr:
		for i, x := range s {
			d[i] |= x
		}
	case BXor:
		for i, x := range s {
			d[i] ^= x
		}
	default:
		combine(op, d, s)
	}
}

func combine[T number](op Op, d, s []T) {
	s = s[:len(d)]
	switch op {
	case Max:
		for i, x := range s {
			d[i] = max(d[i], x)
		}
	case Min:
		for i, x := range s {
			d[i] = min(d[i], x)
		}
	case Prod:
		for i, x := range s {
			d[i] *= x
		}
	}
}
