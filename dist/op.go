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

// An operand is a range of elements of a tensor that starts at an index.
type operand struct {
	of *tensor.Tensor
	at int
}

// A folding reduces n elements of the operands from, one for each rank, in the order of the ranks.
// into may be one of the operands; otherwise it must not overlap them.
type folding func(op Op, into operand, from []operand, n int)

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

// blockLen is the number of elements reduced at a time. Two blocks must fit in the CPU's first
// cache.
const blockLen = 2 << 10

// elements returns n elements of an operand.
func elements[T number](o operand, n int) []T { return tensor.Data[T](o.of)[o.at:][:n] }

// newFolding returns the folding for T. combine stores the reduction of x and y in d, which may be
// x or y.
func newFolding[T number](combine func(op Op, d, x, y []T)) folding {
	return func(op Op, into operand, from []operand, n int) {
		d := elements[T](into, n)
		in := make([][]T, len(from))
		for r, o := range from {
			in[r] = elements[T](o, n)
		}
		var scratch []T // sums of into's elements before the last, if they are an operand themselves
		if len(from) > 2 && slices.Contains(from[1:], into) {
			scratch = make([]T, min(n, blockLen))
		}
		for at := 0; at < n; at += blockLen {
			d := d[at:min(n, at+blockLen)]
			sum := in[0][at:][:len(d)]
			for r, x := range in[1:] {
				to := d
				if scratch != nil && r < len(in)-2 {
					to = scratch[:len(d)]
				}
				combine(op, to, sum, x[at:][:len(d)])
				sum = to
			}
			if len(in) == 1 {
				copy(d, sum)
			}
			if op == Mean {
				divideByRanks(d, len(from))
			}
		}
	}
}

func foldInteger[T integer](op Op, into operand, from []operand, n int) {
	newFolding(combineInteger[T])(op, into, from, n)
}

// foldBool reduces bytes that are 0 or 1.
func foldBool(op Op, into operand, from []operand, n int) {
	switch op {
	case Sum, Max:
		op = BOr
	case Prod, Min:
		op = BAnd
	}
	foldInteger[uint8](op, into, from, n)
}

// foldHalf reduces half-precision numbers in float32.
func foldHalf(op Op, into operand, from []operand, n int) {
	const most = 8 * blockLen
	sum, next := tensor.Empty(tensor.Float32, min(n, most)), tensor.Empty(tensor.Float32, min(n, most))
	defer sum.Close()
	defer next.Close()
	for at := 0; at < n; at += most {
		size := min(most, n-at)
		move := func(to, from operand) {
			to.of, from.of = to.of.Narrow(0, to.at, size), from.of.Narrow(0, from.at, size)
			to.of.CopyFrom(from.of)
			to.of.Close()
			from.of.Close()
		}
		d, x := tensor.Data[float32](sum)[:size], tensor.Data[float32](next)[:size]
		move(operand{sum, 0}, operand{from[0].of, from[0].at + at})
		for _, o := range from[1:] {
			move(operand{next, 0}, operand{o.of, o.at + at})
			combineFloat(op, d, d, x)
		}
		if op == Mean {
			divideByRanks(d, len(from))
		}
		move(operand{into.of, into.at + at}, operand{sum, 0})
	}
}

// divideByRanks divides the elements of d, floats, by the number of ranks, in place. It leaves
// integers unchanged. For powers of two it multiplies by the reciprocal, which is exact and
// several times as fast.
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

func combineFloat[T kernel.Float](op Op, d, x, y []T) {
	switch op {
	case Sum, Mean:
		kernel.Add(x, y, d)
	case Prod:
		kernel.Mul(x, y, d)
	case Max:
		kernel.Max(x, y, d)
	case Min:
		kernel.Min(x, y, d)
	}
}

func combineInteger[T integer](op Op, d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	switch op {
	case Sum:
		for i := range d {
			d[i] = x[i] + y[i]
		}
	case Prod:
		for i := range d {
			d[i] = x[i] * y[i]
		}
	case BAnd:
		for i := range d {
			d[i] = x[i] & y[i]
		}
	case BOr:
		for i := range d {
			d[i] = x[i] | y[i]
		}
	case BXor:
		for i := range d {
			d[i] = x[i] ^ y[i]
		}
	default:
		combine(op, d, x, y)
	}
}

func combine[T number](op Op, d, x, y []T) {
	x, y = x[:len(d)], y[:len(d)]
	switch op {
	case Max:
		for i := range d {
			d[i] = max(x[i], y[i])
		}
	case Min:
		for i := range d {
			d[i] = min(x[i], y[i])
		}
	}
}
