package dist

import (
	"slices"
	"strconv"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// An Op says what becomes of the elements of several ranks.
type Op uint8

// The operations. Mean, which torch.distributed calls AVG, is one of floating point only. Integers wrap around; Max and Min of
// NaN and anything are NaN. Float16 and BFloat16 are reduced in float32 and rounded once.
const (
	Sum Op = iota
	Mean
	Max
	Min
	Prod
)

var opNames = [...]string{"sum", "mean", "max", "min", "prod"}

// String returns the name of the operation.
func (op Op) String() string {
	if int(op) < len(opNames) {
		return opNames[op]
	}
	return "op " + strconv.Itoa(int(op))
}

type number interface {
	uint8 | int8 | int16 | int32 | int64 | float32 | float64
}

// A folding reduces n elements of v, those from each of from on, to those from into on.
type folding func(op Op, v *tensor.Tensor, into int, from []int, n int)

var foldings = map[tensor.DType]folding{
	tensor.Uint8: fold(add[uint8]), tensor.Int8: fold(add[int8]), tensor.Int16: fold(add[int16]), tensor.Int32: fold(add[int32]), tensor.Int64: fold(add[int64]),
	tensor.Float32: fold(axpy[float32]), tensor.Float64: fold(axpy[float64]), tensor.Float16: foldHalf, tensor.BFloat16: foldHalf,
}

// floats are the dtypes that have fractions.
var floats = []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64}

func (op Op) known() bool { return int(op) < len(opNames) }

// can reports whether elements of a dtype can be reduced by op.
func (op Op) can(dt tensor.DType) bool {
	return op.known() && foldings[dt] != nil && (op != Mean || slices.Contains(floats, dt))
}

// blockLen is how many elements are reduced at a time, so that they stay in the processor's cache.
const blockLen = 4 << 10

// fold returns the folding of T, which sums by add.
func fold[T number](add func(d, s []T)) folding {
	return func(op Op, v *tensor.Tensor, into int, from []int, n int) {
		all := tensor.Data[T](v)
		for at := 0; at < n; at += blockLen {
			size := min(blockLen, n-at)
			d := all[into+at:][:size]
			copy(d, all[from[0]+at:])
			for _, f := range from[1:] {
				combine(op, add, d, all[f+at:][:size])
			}
			if op == Mean {
				divide(d, len(from))
			}
		}
	}
}

// foldHalf is fold by way of float32.
func foldHalf(op Op, v *tensor.Tensor, into int, from []int, n int) {
	at := func(i int) *tensor.Tensor { return v.Narrow(0, i, n) }
	sum := at(from[0]).To(tensor.Float32)
	d := tensor.Data[float32](sum)
	for _, f := range from[1:] {
		combine(op, axpy[float32], d, tensor.Data[float32](at(f).To(tensor.Float32)))
	}
	if op == Mean {
		divide(d, len(from))
	}
	at(into).CopyFrom(sum)
}

func add[T number](d, s []T) {
	for i, x := range s[:len(d)] {
		d[i] += x
	}
}

// axpy is add by a kernel: 1·s + d is exact before it is rounded, as s + d is.
func axpy[F kernel.Float](d, s []F) { kernel.Axpy(1, s, d) }

// divide divides by a number of ranks. A reciprocal is as good where it is exact, and several times as fast.
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

// combine puts elements of another rank to those of d; add adds them.
func combine[T number](op Op, add func(d, s []T), d, s []T) {
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
	default:
		add(d, s)
	}
}
