package ptx

import (
	"fmt"
	"math"
	"slices"
)

// A rowwise is an operation on rows of elements. Each row is reduced by sums, in order. Then either
// each element or one result for the row is written.
type rowwise struct {
	sums []rowSum
	// returns a function that computes an element to write
	write func(r *rowAsm) func(i string) string
	final func(r *rowAsm) string // returns the result for the row, instead of write
	as    Type                   // class of the results; "" means the class of the elements
}

// A rowSum reduces a row to a state. Later sums and the results may use the state, in
// rowAsm.known. taken must return a function that emits the value of element i.
type rowSum struct {
	reducer
	taken func(r *rowAsm) func(i string) string
	// the values are nonnegative Float32; a thread may add a few of them in float32
	few bool
}

// A rowAsm generates a kernel of rows of elements of type t. n is the number of elements of a
// row.
type rowAsm struct {
	*asm
	t                  Type
	n, classes, factor string
	in, rows           []string // addresses of the operands, and of their current rows
	known              []string // states of the completed sums
}

// Rows returns the kernel of a kind of device.RowOp, except NLLGradient, for a floating-point type
// and a number of operands. It has one entry, "rows". Blocks must have [BlockSize] threads. The
// arguments are the numbers of rows, of elements per row, and of threads per row; the number of
// classes and the factor; and the addresses of the output and the operands. It returns false if the
// kind is unknown, or if t is not a floating-point type.
func Rows(kind string, t Type, operands int) (Kernel, bool) {
	of, ok := rows[kind]
	if !ok || !t.isFloat() {
		return Kernel{}, false
	}
	return Kernel{Name: fmt.Sprintf("%s %s of %d", kind, t, operands),
		entries: func() []*asm { return []*asm{of(t.computeType()).entry(t, operands)} }}, true
}

// NLLGradient returns the kernel of the gradient of NLL. The operands are the output, the targets
// and a factor for each row; the extra words are the number of classes and a common factor. It
// returns false unless t is a floating-point type.
func NLLGradient(t Type) (Kernel, bool) {
	e := each{name: "NLLGradient", operands: []access{{t, writes}, {Int64, reads}, {t, reads}}, extra: 2}
	e.body = func(a *asm, x []string, place string, extra int) []string {
		class := t.computeType()
		v := a.emitResult(op("mul", class), a.cast(class, Float64, a.loadWord("f64", extra+1)), x[2])
		own := a.emitResult("setp.eq.u64", a.emitResult("rem.u64", place, a.loadWord("u64", extra)), x[1])
		return []string{a.emitResult("selp."+string(class), v, formatConst(class, 0), own)}
	}
	return e.kernel(), t.isFloat()
}

// rows maps each kind to a function that returns the operation for a class of elements.
var rows = map[string]func(class Type) rowwise{
	"Softmax":            softmax,
	"SoftmaxGradient":    softmaxGradient,
	"LogSoftmax":         logSoftmax,
	"LogSoftmaxGradient": logSoftmaxGradient,
	"NLL":                func(Type) rowwise { return nll },
	"Norm":               func(Type) rowwise { return norm },
	"NormGradient":       func(Type) rowwise { return normGradient },
}

// exponential returns eˣ in a class, Float32 or Float64.
func (a *asm) exponential(class Type, x string) string {
	if class == Float32 {
		return exp32(a, class, x)
	}
	return exp(a, class, x)
}

// sumReducer returns a rowSum that adds in float64.
func sumReducer(taken func(r *rowAsm) func(i string) string) rowSum {
	return rowSum{reducer: foldReducer(Float64, 0, singleInstruction("add")), taken: taken}
}

// elementSum returns the sum of an operand's elements.
func elementSum(operand int) rowSum {
	return sumReducer(func(r *rowAsm) func(i string) string {
		return func(i string) string { return r.loadElement(operand, i) }
	})
}

// softmaxSums returns the sums of a softmax: the maximum of the elements that are numbers, and the
// sum of e^(x-maximum). The second is NaN if an element is NaN or the maximum is infinite.
func softmaxSums(class Type) []rowSum {
	powers := sumReducer(func(r *rowAsm) func(i string) string {
		return func(i string) string { return r.fromTop(class, i) }
	})
	powers.few = class == Float32
	return []rowSum{{reducer: foldReducer(class, math.Inf(-1), singleInstruction("max")),
		taken: func(r *rowAsm) func(i string) string {
			return func(i string) string { return r.loadElementInClass(0, i) }
		}}, powers}
}

// fromTop returns e^(x-maximum) for element i of the first operand's current row. The maximum
// must be the first state in r.known.
func (r *rowAsm) fromTop(class Type, i string) string {
	return r.exponential(class, r.emitResult(op("sub", class), r.loadElementInClass(0, i), r.known[0]))
}

func softmax(class Type) rowwise {
	return rowwise{sums: softmaxSums(class), write: func(r *rowAsm) func(i string) string {
		share := r.cast(class, Float64, r.emitResult("rcp.rn.f64", r.known[1]))
		return func(i string) string { return r.emitResult(op("mul", class), r.fromTop(class, i), share) }
	}}
}

func softmaxGradient(class Type) rowwise {
	return rowwise{
		sums: []rowSum{sumReducer(func(r *rowAsm) func(i string) string {
			return func(i string) string { return r.emitResult("mul.rn.f64", r.loadElement(0, i), r.loadElement(1, i)) }
		})},
		write: func(r *rowAsm) func(i string) string {
			return func(i string) string {
				return r.emitResult("mul.rn.f64", r.loadElement(0, i),
					r.emitResult("sub.rn.f64", r.loadElement(1, i), r.known[0]))
			}
		}, as: Float64,
	}
}

func logSoftmax(class Type) rowwise {
	return rowwise{sums: softmaxSums(class), write: func(r *rowAsm) func(i string) string {
		rest := r.cast(class, Float64, log(r.asm, Float64, r.known[1]))
		return func(i string) string {
			return r.emitResult(op("sub", class), r.emitResult(op("sub", class), r.loadElementInClass(0, i),
				r.known[0]), rest)
		}
	}}
}

func logSoftmaxGradient(class Type) rowwise {
	return rowwise{
		sums: []rowSum{elementSum(1)},
		write: func(r *rowAsm) func(i string) string {
			return func(i string) string {
				share := r.cast(Float64, class, r.exponential(class, r.loadElementInClass(0, i)))
				return r.emitResult("sub.rn.f64", r.loadElement(1, i), r.emitResult("mul.rn.f64", share, r.known[0]))
			}
		}, as: Float64,
	}
}

var nll = rowwise{
	sums: []rowSum{sumReducer(func(r *rowAsm) func(i string) string {
		return func(i string) string {
			class := r.load(Int64, r.elementAddress(r.in[1], i, 8))
			class = r.emitResult("min.u64", class, r.emitResult("sub.u64", r.classes, "1")) // clamped
			at := r.emitResult("mad.lo.u64", r.emitResult("cvt.u64.u32", i), r.classes, class)
			return r.loadValue(r.emitResult("mad.lo.u64", at, fmt.Sprint(r.t.Size()), r.in[0]))
		}
	})},
	final: func(r *rowAsm) string { return r.emitResult("mul.rn.f64", r.factor, r.known[0]) },
	as:    Float64,
}

// moments computes the sum of a row and the sum of squared deviations from the mean.
var moments = []rowSum{
	elementSum(0),
	sumReducer(func(r *rowAsm) func(i string) string {
		centred := r.subtractMean()
		return func(i string) string {
			off := centred(i)
			return r.emitResult("mul.rn.f64", off, off)
		}
	}),
}

// mean returns a sum divided by the number of elements of a row, in float64.
func (r *rowAsm) mean(sum string) string {
	return r.emitResult("div.rn.f64", sum, r.emitResult("cvt.rn.f64.u32", r.n))
}

// subtractMean emits the division that computes the mean from the sum known[0], and returns a
// function that loads element i of the first operand's current row and subtracts the mean, in
// float64. subtractMean must be called outside of the loop over the elements.
func (r *rowAsm) subtractMean() func(i string) string {
	mean := r.mean(r.known[0])
	return func(i string) string { return r.emitResult("sub.rn.f64", r.loadElement(0, i), mean) }
}

// scale returns 1 / √(variance + factor). The sum of squared deviations must be the second
// state in r.known.
func (r *rowAsm) scale() string {
	return r.emitResult("rcp.rn.f64",
		r.emitResult("sqrt.rn.f64", r.emitResult("add.rn.f64", r.mean(r.known[1]), r.factor)))
}

// norm takes the rows and, optionally, a weight and a bias for each element of a row.
var norm = rowwise{sums: moments, as: Float64, write: func(r *rowAsm) func(i string) string {
	centred, scale := r.subtractMean(), r.scale()
	return func(i string) string {
		y := r.emitResult("mul.rn.f64", centred(i), scale)
		if len(r.in) > 1 {
			y = r.emitResult("fma.rn.f64", y, r.loadShared(1, i), r.loadShared(2, i))
		}
		return y
	}
}}

// normGradient takes the rows, dy and, optionally, the weight that multiplies dy.
var normGradient = rowwise{
	sums: append(slices.Clone(moments),
		sumReducer(func(r *rowAsm) func(i string) string { return r.loadWeighted }),
		sumReducer(func(r *rowAsm) func(i string) string {
			centred := r.subtractMean()
			return func(i string) string { return r.emitResult("mul.rn.f64", r.loadWeighted(i), centred(i)) }
		})),
	as: Float64,
	write: func(r *rowAsm) func(i string) string {
		centred, scale, slope := r.subtractMean(), r.scale(), r.mean(r.known[2])
		along := r.emitResult("mul.rn.f64", r.mean(r.known[3]), r.emitResult("mul.rn.f64", scale, scale))
		return func(i string) string {
			off := r.emitResult("mul.rn.f64", centred(i), along)
			return r.emitResult("mul.rn.f64", scale,
				r.emitResult("sub.rn.f64", r.emitResult("sub.rn.f64", r.loadWeighted(i), slope), off))
		}
	},
}

func (r *rowAsm) loadWeighted(i string) string {
	if len(r.in) < 3 {
		return r.loadElement(1, i)
	}
	return r.emitResult("mul.rn.f64", r.loadElement(1, i), r.loadShared(2, i))
}

// loadValue loads an element and converts it to float64.
func (r *rowAsm) loadValue(address string) string {
	return r.cast(Float64, r.t.computeType(), r.load(r.t, address))
}

// loadElement loads element i of an operand's current row as float64, and loadElementInClass in
// its class.
func (r *rowAsm) loadElement(operand int, i string) string {
	return r.loadValue(r.elementAddress(r.rows[operand], i, r.t.Size()))
}

func (r *rowAsm) loadElementInClass(operand int, i string) string {
	return r.load(r.t, r.elementAddress(r.rows[operand], i, r.t.Size()))
}

// loadShared loads element i of an operand that all rows share, as float64.
func (r *rowAsm) loadShared(operand int, i string) string {
	return r.loadValue(r.elementAddress(r.in[operand], i, r.t.Size()))
}

func (w rowwise) entry(t Type, operands int) *asm {
	r := &rowAsm{asm: newAsm("rows"), t: t}
	rows, n, width := r.loadU32(), r.loadU32(), r.loadU32()
	r.n, r.classes, r.factor = n, r.loadU64(), r.loadWord("f64", r.reserveArgs(1))
	out := r.loadU64()
	for range operands {
		r.in = append(r.in, r.loadU64())
	}
	tid := r.emitResult("mov.u32", "%tid.x")
	height := r.emitResult("div.u32", fmt.Sprint(BlockSize), width)
	along, across := r.emitResult("rem.u32", tid, width), r.emitResult("div.u32", tid, width)
	row := r.emitResult("mad.lo.u32", r.emitResult("mov.u32", "%ctaid.x"), height, across)
	mine := r.emitResult("setp.lt.u32", row, rows)
	start := r.emitResult("mul.wide.u32", row, n)
	rowOf := func(base string) string { return r.emitResult("mad.lo.u64", start, fmt.Sprint(t.Size()), base) }
	for _, base := range r.in {
		r.rows = append(r.rows, rowOf(base))
	}
	for k, sum := range w.sums {
		if k > 0 {
			r.emit("bar.sync 0") // all threads have read the results of the previous sum
		}
		r.sum(sum, mine, along, across, width, height)
	}
	r.returnUnless(mine)
	as := w.as
	if as == "" {
		as = t.computeType()
	}
	put := func(address, v string) { r.store(t, address, r.cast(t.computeType(), as, v)) }
	if w.final != nil {
		r.returnUnless(r.emitResult("setp.eq.u32", along, "0"))
		put(r.emitResult("mad.wide.u32", row, fmt.Sprint(t.Size()), out), w.final(r))
		return r.asm
	}
	element, out := w.write(r), rowOf(out)
	r.emitUnrolled(8, along, n, width, func(is []string) {
		for _, i := range is {
			put(r.elementAddress(out, i, t.Size()), element(i))
		}
	})
	return r.asm
}

// addPairwise returns the sum of float32 numbers, which it adds pairwise. x must not be empty.
func (r *rowAsm) addPairwise(x []string) string {
	if len(x) == 1 {
		return x[0]
	}
	return r.emitResult("add.rn.f32", r.addPairwise(x[:len(x)/2]), r.addPairwise(x[len(x)/2:]))
}

// sum emits the reduction of a row with all of its threads, and appends the state to r.known.
// All of the threads then have it. mine is a predicate that is false for threads without a row.
func (r *rowAsm) sum(s rowSum, mine, along, across, width, height string) {
	var state []string
	for i, t := range s.state {
		state = append(state, r.emitResult("mov."+string(t), limitConst(t, s.first[i])))
	}
	taken := s.taken(r)
	r.emitIf(mine, func() {
		r.emitUnrolled(8, along, r.n, width, func(is []string) {
			x := make([]string, len(is))
			for k, i := range is {
				x[k] = taken(i)
			}
			if s.few {
				x = []string{r.cast(Float64, Float32, r.addPairwise(x))}
			}
			for k, v := range x {
				s.take(r.asm, state, v, is[k])
			}
		})
	})
	s.mergeThreads(r.asm, state, along, across, width, height, true)
	r.known = append(r.known, state...)
}
