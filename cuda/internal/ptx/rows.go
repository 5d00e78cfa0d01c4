package ptx

import (
	"fmt"
	"math"
	"slices"
)

// A rowwise is what is done with rows of elements: each is reduced, once or several times, and then
// its elements are written, or what it was reduced to.
type rowwise struct {
	sums []rowSum
	// what is written to an element of the row
	write func(r *rowAsm) func(i string) string
	final func(r *rowAsm) string // or for the row
	as    Type                   // that write and final compute in; "" is the class of the elements
}

// A rowSum reduces a row to a state, which is known from then on.
type rowSum struct {
	reducer
	taken func(r *rowAsm) func(i string) string
	// what is taken is a Float32 that is not below 0, of which a thread adds up a few as such
	few bool
}

// A rowAsm writes a kernel of rows.
type rowAsm struct {
	*asm
	t                  Type
	n, classes, factor string
	in, rows           []string // operands, and where they have the row
	known              []string // the states of all sums so far
}

// Rows returns the kernel of a kind of device.RowOp, but for NLLGradient, for a type of fractions
// and so many operands, with the one entry "rows" for blocks of BlockSize. Its arguments are the
// number of rows, of elements in each, and of threads for each; the number of classes and the
// factor; and the addresses of the output and the operands.
func Rows(kind string, t Type, operands int) (Kernel, bool) {
	of, ok := rows[kind]
	if !ok || !t.float() {
		return Kernel{}, false
	}
	return Kernel{Name: fmt.Sprintf("%s %s of %d", kind, t, operands),
		entries: func() []*asm { return []*asm{of(t.class()).entry(t, operands)} }}, true
}

// NLLGradient returns the kernel of the gradient of NLL: its operands are the output, the targets
// and what all rows have, and the extra words the number of classes and the factor.
func NLLGradient(t Type) (Kernel, bool) {
	e := each{name: "NLLGradient", operands: []access{{t, writes}, {Int64, reads}, {t, reads}}, extra: 2}
	e.body = func(a *asm, x []string, place string, extra int) []string {
		class := t.class()
		v := a.do(op("mul", class), a.cast(class, Float64, a.word("f64", extra+1)), x[2])
		own := a.do("setp.eq.u64", a.do("rem.u64", place, a.word("u64", extra)), x[1])
		return []string{a.do("selp."+string(class), v, number(class, 0), own)}
	}
	return e.kernel(), t.float()
}

// rows are what is done, by the class of the elements.
var rows = map[string]func(class Type) rowwise{
	"Softmax":            softmax,
	"SoftmaxGradient":    softmaxGradient,
	"LogSoftmax":         logSoftmax,
	"LogSoftmaxGradient": logSoftmaxGradient,
	"NLL":                func(Type) rowwise { return nll },
	"Norm":               func(Type) rowwise { return norm },
	"NormGradient":       func(Type) rowwise { return normGradient },
}

// exponential is exp in a class.
func (a *asm) exponential(class Type, x string) string {
	if class == Float32 {
		return exp32(a, class, x)
	}
	return exp(a, class, x)
}

// summing adds up in float64.
func summing(taken func(r *rowAsm) func(i string) string) rowSum {
	return rowSum{reducer: folding(Float64, 0, simple("add")), taken: taken}
}

// elements adds up those of an operand.
func elements(operand int) rowSum {
	return summing(func(r *rowAsm) func(i string) string {
		return func(i string) string { return r.element(operand, i) }
	})
}

// above returns the sums of a softmax: the largest element that is a number, and the sum of what e
// is raised to by how far elements are below it, which is NaN where one is, or the largest is
// infinite.
func above(class Type) []rowSum {
	powers := summing(func(r *rowAsm) func(i string) string {
		return func(i string) string { return r.fromTop(class, i) }
	})
	powers.few = class == Float32
	return []rowSum{{reducer: folding(class, math.Inf(-1), simple("max")),
		taken: func(r *rowAsm) func(i string) string {
			return func(i string) string { return r.own(0, i) }
		}}, powers}
}

// fromTop is what e is raised to by how far an element is below the largest.
func (r *rowAsm) fromTop(class Type, i string) string {
	return r.exponential(class, r.do(op("sub", class), r.own(0, i), r.known[0]))
}

func softmax(class Type) rowwise {
	return rowwise{sums: above(class), write: func(r *rowAsm) func(i string) string {
		share := r.cast(class, Float64, r.do("rcp.rn.f64", r.known[1]))
		return func(i string) string { return r.do(op("mul", class), r.fromTop(class, i), share) }
	}}
}

func softmaxGradient(class Type) rowwise {
	return rowwise{
		sums: []rowSum{summing(func(r *rowAsm) func(i string) string {
			return func(i string) string { return r.do("mul.rn.f64", r.element(0, i), r.element(1, i)) }
		})},
		write: func(r *rowAsm) func(i string) string {
			return func(i string) string {
				return r.do("mul.rn.f64", r.element(0, i), r.do("sub.rn.f64", r.element(1, i), r.known[0]))
			}
		}, as: Float64,
	}
}

func logSoftmax(class Type) rowwise {
	return rowwise{sums: above(class), write: func(r *rowAsm) func(i string) string {
		rest := r.cast(class, Float64, log(r.asm, Float64, r.known[1]))
		return func(i string) string {
			return r.do(op("sub", class), r.do(op("sub", class), r.own(0, i), r.known[0]), rest)
		}
	}}
}

func logSoftmaxGradient(class Type) rowwise {
	return rowwise{
		sums: []rowSum{elements(1)},
		write: func(r *rowAsm) func(i string) string {
			return func(i string) string {
				share := r.cast(Float64, class, r.exponential(class, r.own(0, i)))
				return r.do("sub.rn.f64", r.element(1, i), r.do("mul.rn.f64", share, r.known[0]))
			}
		}, as: Float64,
	}
}

var nll = rowwise{
	sums: []rowSum{summing(func(r *rowAsm) func(i string) string {
		return func(i string) string {
			class := r.load(Int64, r.at(r.in[1], i, 8))
			class = r.do("min.u64", class, r.do("sub.u64", r.classes, "1")) // as indexed does
			at := r.do("mad.lo.u64", r.do("cvt.u64.u32", i), r.classes, class)
			return r.value(r.do("mad.lo.u64", at, fmt.Sprint(r.t.Size()), r.in[0]))
		}
	})},
	final: func(r *rowAsm) string { return r.do("mul.rn.f64", r.factor, r.known[0]) },
	as:    Float64,
}

// moments are the mean of a row and the sum of the squares of what that leaves.
var moments = []rowSum{
	elements(0),
	summing(func(r *rowAsm) func(i string) string {
		centred := r.centred()
		return func(i string) string {
			off := centred(i)
			return r.do("mul.rn.f64", off, off)
		}
	}),
}

// mean is a sum divided by the number of elements.
func (r *rowAsm) mean(sum string) string {
	return r.do("div.rn.f64", sum, r.do("cvt.rn.f64.u32", r.n))
}

// centred are the elements without their mean.
func (r *rowAsm) centred() func(i string) string {
	mean := r.mean(r.known[0])
	return func(i string) string { return r.do("sub.rn.f64", r.element(0, i), mean) }
}

// scale is 1 / √(variance + factor).
func (r *rowAsm) scale() string {
	return r.do("rcp.rn.f64", r.do("sqrt.rn.f64", r.do("add.rn.f64", r.mean(r.known[1]), r.factor)))
}

// norm has, besides the rows, no operands, or a weight and a bias for each element of a row.
var norm = rowwise{sums: moments, as: Float64, write: func(r *rowAsm) func(i string) string {
	centred, scale := r.centred(), r.scale()
	return func(i string) string {
		y := r.do("mul.rn.f64", centred(i), scale)
		if len(r.in) > 1 {
			y = r.do("fma.rn.f64", y, r.along(1, i), r.along(2, i))
		}
		return y
	}
}}

// normGradient has the rows, dy, and perhaps the weight by which that is multiplied.
var normGradient = rowwise{
	sums: append(slices.Clone(moments),
		summing(func(r *rowAsm) func(i string) string { return r.weighted }),
		summing(func(r *rowAsm) func(i string) string {
			centred := r.centred()
			return func(i string) string { return r.do("mul.rn.f64", r.weighted(i), centred(i)) }
		})),
	as: Float64,
	write: func(r *rowAsm) func(i string) string {
		centred, scale, slope := r.centred(), r.scale(), r.mean(r.known[2])
		along := r.do("mul.rn.f64", r.mean(r.known[3]), r.do("mul.rn.f64", scale, scale))
		return func(i string) string {
			off := r.do("mul.rn.f64", centred(i), along)
			return r.do("mul.rn.f64", scale, r.do("sub.rn.f64", r.do("sub.rn.f64", r.weighted(i), slope), off))
		}
	},
}

func (r *rowAsm) weighted(i string) string {
	if len(r.in) < 3 {
		return r.element(1, i)
	}
	return r.do("mul.rn.f64", r.element(1, i), r.along(2, i))
}

// value is an element at an address, in float64.
func (r *rowAsm) value(address string) string {
	return r.cast(Float64, r.t.class(), r.load(r.t, address))
}

// element is one of an operand's row in float64, and own is it in its class.
func (r *rowAsm) element(operand int, i string) string {
	return r.value(r.at(r.rows[operand], i, r.t.Size()))
}

func (r *rowAsm) own(operand int, i string) string {
	return r.load(r.t, r.at(r.rows[operand], i, r.t.Size()))
}

// along is an element of what all rows have, in float64.
func (r *rowAsm) along(operand int, i string) string {
	return r.value(r.at(r.in[operand], i, r.t.Size()))
}

func (w rowwise) entry(t Type, operands int) *asm {
	r := &rowAsm{asm: newAsm("rows"), t: t}
	rows, n, width := r.u32(), r.u32(), r.u32()
	r.n, r.classes, r.factor = n, r.u64(), r.word("f64", r.arg(1))
	out := r.u64()
	for range operands {
		r.in = append(r.in, r.u64())
	}
	tid := r.do("mov.u32", "%tid.x")
	height := r.do("div.u32", fmt.Sprint(BlockSize), width)
	along, across := r.do("rem.u32", tid, width), r.do("div.u32", tid, width)
	row := r.do("mad.lo.u32", r.do("mov.u32", "%ctaid.x"), height, across)
	mine := r.do("setp.lt.u32", row, rows)
	start := r.do("mul.wide.u32", row, n)
	rowOf := func(base string) string { return r.do("mad.lo.u64", start, fmt.Sprint(t.Size()), base) }
	for _, base := range r.in {
		r.rows = append(r.rows, rowOf(base))
	}
	for k, sum := range w.sums {
		if k > 0 {
			r.emit("bar.sync 0") // all have read what the one before left
		}
		r.sum(sum, mine, along, across, width, height)
	}
	r.only(mine)
	as := w.as
	if as == "" {
		as = t.class()
	}
	put := func(address, v string) { r.store(t, address, r.cast(t.class(), as, v)) }
	if w.final != nil {
		r.only(r.do("setp.eq.u32", along, "0"))
		put(r.do("mad.wide.u32", row, fmt.Sprint(t.Size()), out), w.final(r))
		return r.asm
	}
	element, out := w.write(r), rowOf(out)
	r.several(8, along, n, width, func(is []string) {
		for _, i := range is {
			put(r.at(out, i, t.Size()), element(i))
		}
	})
	return r.asm
}

// pairwise adds up numbers of float32 by halves.
func (r *rowAsm) pairwise(x []string) string {
	if len(x) == 1 {
		return x[0]
	}
	return r.do("add.rn.f32", r.pairwise(x[:len(x)/2]), r.pairwise(x[len(x)/2:]))
}

// sum has the threads of a row reduce it, and all of them know its state then.
func (r *rowAsm) sum(s rowSum, mine, along, across, width, height string) {
	var state []string
	for i, t := range s.state {
		state = append(state, r.do("mov."+string(t), limit(t, s.first[i])))
	}
	taken := s.taken(r)
	r.when(mine, func() {
		r.several(8, along, r.n, width, func(is []string) {
			x := make([]string, len(is))
			for k, i := range is {
				x[k] = taken(i)
			}
			if s.few {
				x = []string{r.cast(Float64, Float32, r.pairwise(x))}
			}
			for k, v := range x {
				s.take(r.asm, state, v, is[k])
			}
		})
	})
	s.together(r.asm, state, along, across, width, height, true)
	r.known = append(r.known, state...)
}
