package ptx

import (
	"fmt"
	"math"
)

// A rowwise is what is done with rows of elements: each is reduced, and then its elements are
// written, or what it was reduced to.
type rowwise struct {
	reducer
	in    int // operands
	taken func(r *rowAsm, i string) string
	// what is written to an element of the row, which is computed in float64
	write func(r *rowAsm) func(i string) string
	final func(r *rowAsm) string // or for the row
}

// A rowAsm writes a kernel of rows.
type rowAsm struct {
	*asm
	t                         Type
	start, n, classes, factor string
	out                       string
	in, state                 []string
}

// Rows returns the kernel of a kind of device.RowOp: LogSoftmax, LogSoftmaxGradient or NLL, for a
// type of fractions, with the one entry "rows" for blocks of BlockSize. Its arguments are the
// number of rows, of elements in each, and of threads for each; the number of classes and the
// factor; and the addresses of the output and the operands.
func Rows(kind string, t Type) (Kernel, bool) {
	w, ok := rows[kind]
	if !ok || !t.float() {
		return Kernel{}, false
	}
	return Kernel{Name: fmt.Sprintf("%s %s", kind, t), entries: func() []*asm { return []*asm{w.entry(t)} }}, true
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

var rows = map[string]rowwise{
	"LogSoftmax": {
		reducer: logSumExp, in: 1,
		taken: func(r *rowAsm, i string) string { return r.element(0, i) },
		write: func(r *rowAsm) func(i string) string {
			most, sum := r.state[0], r.state[1]
			lost := r.do("sub.rn.f64", most, most) // NaN where that is infinite
			rest := r.do("add.rn.f64", log(r.asm, Float64, sum), lost)
			return func(i string) string {
				return r.do("sub.rn.f64", r.do("sub.rn.f64", r.element(0, i), most), rest)
			}
		},
	},
	"LogSoftmaxGradient": {
		reducer: folding(Float64, 0, simple("add")), in: 2,
		taken: func(r *rowAsm, i string) string { return r.element(1, i) },
		write: func(r *rowAsm) func(i string) string {
			return func(i string) string {
				share := r.do("mul.rn.f64", exp(r.asm, Float64, r.element(0, i)), r.state[0])
				return r.do("sub.rn.f64", r.element(1, i), share)
			}
		},
	},
	"NLL": {
		reducer: folding(Float64, 0, simple("add")), in: 2,
		taken: func(r *rowAsm, i string) string {
			class := r.load(Int64, r.at(r.in[1], i, 8))
			at := r.do("mad.lo.u64", r.do("cvt.u64.u32", i), r.classes, class)
			return r.value(r.do("mad.lo.u64", at, fmt.Sprint(r.t.Size()), r.in[0]))
		},
		final: func(r *rowAsm) string { return r.do("mul.rn.f64", r.factor, r.state[0]) },
	},
}

// value is an element at an address, in float64.
func (r *rowAsm) value(address string) string {
	return r.cast(Float64, r.t.class(), r.load(r.t, address))
}

func (r *rowAsm) address(base, i string) string {
	place := r.do("add.u64", r.start, r.do("cvt.u64.u32", i))
	return r.do("mad.lo.u64", place, fmt.Sprint(r.t.Size()), base)
}

func (r *rowAsm) element(operand int, i string) string { return r.value(r.address(r.in[operand], i)) }

func (r *rowAsm) put(address, v string) { r.store(r.t, address, r.cast(r.t.class(), Float64, v)) }

// logSumExp keeps the largest of what it has seen, and the sum of what e is raised to by how far
// they are below it.
var logSumExp = reducer{
	class: Float64, state: []Type{Float64, Float64}, first: []float64{math.Inf(-1), 0},
	take:  func(a *asm, s []string, x, _ string) { a.addExp(s, x, c(1)) },
	merge: func(a *asm, s, o []string) { a.addExp(s, o[0], o[1]) },
}

func (a *asm) addExp(s []string, most, sum string) {
	off := a.do("abs.f64", a.do("sub.rn.f64", s[0], most))
	off = a.do("selp.f64", c(0), off, a.do("setp.eq.f64", s[0], most)) // infinite ones too
	e, above := exp(a, Float64, a.do("neg.f64", off)), a.do("setp.gt.f64", most, s[0])
	a.set(s[1], "selp.f64", a.do("fma.rn.f64", s[1], e, sum), a.do("fma.rn.f64", sum, e, s[1]), above)
	a.set(s[0], "selp.f64", most, s[0], above)
}

func (w rowwise) entry(t Type) *asm {
	r := &rowAsm{asm: newAsm("rows"), t: t}
	rows, n, width := r.u32(), r.u32(), r.u32()
	r.n, r.classes, r.factor, r.out = n, r.u64(), r.word("f64", r.arg(1)), r.u64()
	for range w.in {
		r.in = append(r.in, r.u64())
	}
	tid := r.do("mov.u32", "%tid.x")
	height := r.do("div.u32", fmt.Sprint(BlockSize), width)
	along, across := r.do("rem.u32", tid, width), r.do("div.u32", tid, width)
	row := r.do("mad.lo.u32", r.do("mov.u32", "%ctaid.x"), height, across)
	mine := r.do("setp.lt.u32", row, rows)
	r.start = r.do("mul.wide.u32", row, n)
	for i, t := range w.state {
		r.state = append(r.state, r.do("mov."+string(t), limit(t, w.first[i])))
	}
	r.when(mine, func() {
		r.loop(along, n, width, func(i string) { w.take(r.asm, r.state, w.taken(r, i), i) })
	})
	w.together(r.asm, r.state, along, r.do("mad.lo.u32", along, height, across), width, height)
	r.emit("bar.sync 0")
	for i, t := range w.state {
		r.set(r.state[i], "ld.shared."+string(t), "["+r.sharedState(i, across)+"]") // the first thread's
	}
	r.only(mine)
	if w.final != nil {
		r.only(r.do("setp.eq.u32", along, "0"))
		r.put(r.do("mad.wide.u32", row, fmt.Sprint(t.Size()), r.out), w.final(r))
		return r.asm
	}
	element := w.write(r)
	r.loop(along, n, width, func(i string) { r.put(r.address(r.out, i), element(i)) })
	return r.asm
}
