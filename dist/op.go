package dist

import (
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// An Op reduces the elements of several ranks to one.
type Op uint8

// The operations. Mean, torch.distributed's AVG, is for floats and complex numbers. BAnd, BOr and
// BXor are for integers, bit by bit, and for Bool. Complex numbers have Sum and Mean only. Integers
// wrap around. Max and Min of NaN and any number are NaN. Float16 and BFloat16 are reduced in
// float32 and rounded once. For Bool, Sum and Max are "or", and Prod and Min are "and", as with
// NCCL.
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

// A folding reduces n elements of v, those from each of from on, to those from into on.
type folding func(op Op, v *tensor.Tensor, into int, from []int, n int)

// A reduction says how elements of a dtype are reduced: as one or two of another, by the operations
// that there are.
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
	tensor.Float32:    {tensor.Float32, fold(combineFloat[float32]), ofFloats},
	tensor.Float64:    {tensor.Float64, fold(combineFloat[float64]), ofFloats},
	tensor.Float16:    {tensor.Float16, foldHalf, ofFloats},
	tensor.BFloat16:   {tensor.BFloat16, foldHalf, ofFloats},
	tensor.Complex64:  {tensor.Float32, fold(combineFloat[float32]), ofComplex},
	tensor.Complex128: {tensor.Float64, fold(combineFloat[float64]), ofComplex},
}

func (op Op) known() bool { return int(op) < len(opNames) }

// can reports whether elements of a dtype can be reduced by op.
func (op Op) can(dt tensor.DType) bool { return slices.Contains(reductions[dt].ops, op) }

// blockLen is how many elements are reduced at a time, so that they stay in the processor's cache.
const blockLen = 4 << 10

// fold returns the folding of T by what puts elements of another rank to those of d.
func fold[T number](combine func(op Op, d, s []T)) folding {
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
				divide(d, len(from))
			}
		}
	}
}

func foldInteger[T integer](op Op, v *tensor.Tensor, into int, from []int, n int) {
	fold(combineInteger[T])(op, v, into, from, n)
}

// foldBool is of bytes that are 0 or 1.
func foldBool(op Op, v *tensor.Tensor, into int, from []int, n int) {
	switch op {
	case Sum, Max:
		op = BOr
	case Prod, Min:
		op = BAnd
	}
	foldInteger[uint8](op, v, into, from, n)
}

// foldHalf is fold by way of float32.
func foldHalf(op Op, v *tensor.Tensor, into int, from []int, n int) {
	at := func(i int) *tensor.Tensor { return v.Narrow(0, i, n) }
	sum := at(from[0]).To(tensor.Float32)
	d := tensor.Data[float32](sum)
	for _, f := range from[1:] {
		combineFloat(op, d, tensor.Data[float32](at(f).To(tensor.Float32)))
	}
	if op == Mean {
		divide(d, len(from))
	}
	at(into).CopyFrom(sum)
}

// divide divides by a number of ranks. A reciprocal is as good where it is exact, and several times
// as fast.
func divide[T number](d []T, ranks int) {
	switch d := any(d).(type) {
	case []float32:
		scale(d, float32(ranks), ranks)
	case []float64:
		scale(d, float64(ranks), ranks)
	}
}

func scale[F kernel.Float](d []F, by F, ranks int) {
	if ranks&(ranks-1) == 0 {
		kernel.Scale(1/by, d)
		return
	}
	for i := range d {
		d[i] /= by
	}
}

// combineFloat puts elements of another rank to those of d. The sum is a kernel's: 1·s + d is exact
// before it is rounded, as s + d is.
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
