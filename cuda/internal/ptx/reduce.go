package ptx

import (
	"fmt"
	"math"
	"strings"
)

// A reducer reduces many elements to one. Its state consists of values in classes of at most 8
// bytes.
type reducer struct {
	class Type // class of the values passed to take
	state []Type
	first []float64 // initial state
	take  func(a *asm, state []string, x, place string)
	merge func(a *asm, state, other []string)
	end   func(a *asm, state []string) string // the result, in the class of the last state value
}

// BlockSize is the number of threads in a block for kernels that reduce or multiply matrices.
const BlockSize = 256

// Reduce returns the kernel of a reduction of package tensor, by name. The entry "line" requires
// that the elements of a result form one dimension; "reduce" does not. It returns false if there is
// no kernel for these types.
//
// The arguments are the number of results; the number of elements of each result; the number of
// elements per part; the width of a block along these elements; the divisor of a thread's index
// that gives, modulo the width, its position along them; the divisor that gives, modulo the height,
// its result in the block; the distance of the parts' results in bytes; the addresses of output and
// input; the layout of input and output over the results; and the layout of the input over the
// elements of a result.
func Reduce(name string, out, in Type) (Kernel, bool) {
	r, ok := reducerOf(name, in)
	if !ok {
		return Kernel{}, false
	}
	return Kernel{Name: fmt.Sprintf("%s %s of %s", name, out, in),
		entries: func() []*asm { return []*asm{r.entry("line", out, in), r.entry("reduce", out, in)} }}, true
}

func reducerOf(name string, in Type) (reducer, bool) {
	wide := in.class()
	if in.float() {
		wide = Float64
	}
	switch least, most := math.Inf(-1), math.Inf(1); name {
	case "Sum":
		return folding(wide, 0, simple("add")), true
	case "Prod":
		return folding(wide, 1, simple("mul")), true
	case "Amax":
		return folding(in.class(), least, extremeOf(in, "max")), true
	case "Amin":
		return folding(in.class(), most, extremeOf(in, "min")), true
	case "Argmax":
		return finding(in.class(), least, "gt"), true
	case "Argmin":
		return finding(in.class(), most, "lt"), true
	case "Var":
		return variance, in.float()
	}
	return reducer{}, false
}

func extremeOf(in Type, name string) opFunc {
	if in.float() {
		return extreme(name)
	}
	return simple(name)
}

// folding returns a reducer that combines values with a binary operation.
func folding(class Type, first float64, f opFunc) reducer {
	return reducer{
		class: class, state: []Type{class}, first: []float64{first},
		take:  func(a *asm, s []string, x, _ string) { a.set(s[0], "mov."+string(class), f(a, class, s[0], x)) },
		merge: func(a *asm, s, o []string) { a.set(s[0], "mov."+string(class), f(a, class, s[0], o[0])) },
		end:   func(a *asm, s []string) string { return s[0] },
	}
}

// finding returns a reducer that finds a value and its index. NaN precedes all numbers. Of equal
// values the first wins.
func finding(class Type, first float64, before string) reducer {
	better := func(a *asm, s []string, x, place string) {
		t := string(class)
		same := a.do("setp.eq."+t, x, s[0])
		wins := a.do("setp."+before+"."+t, x, s[0])
		if class.float() {
			nan, had := a.do("setp.nan."+t, x, x), a.do("setp.nan."+t, s[0], s[0])
			same = a.do("or.pred", same, a.do("and.pred", nan, had))
			wins = a.do("or.pred", wins, a.do("and.pred", nan, a.do("not.pred", had)))
		}
		wins = a.do("or.pred", wins, a.do("and.pred", same, a.do("setp.lt.s64", place, s[1])))
		a.set(s[0], "selp."+t, x, s[0], wins)
		a.set(s[1], "selp.s64", place, s[1], wins)
	}
	return reducer{
		class: class, state: []Type{class, Int64}, first: []float64{first, math.Inf(1)},
		take:  better,
		merge: func(a *asm, s, o []string) { better(a, s, o[0], o[1]) },
		end:   func(a *asm, s []string) string { return s[1] },
	}
}

// variance tracks the count, the mean and the sum of squared deviations (Welford, 1962; Chan et
// al., 1979).
var variance = reducer{
	class: Float64, state: []Type{Float64, Float64, Float64}, first: []float64{0, 0, 0},
	take: func(a *asm, s []string, x, _ string) {
		a.set(s[0], "add.rn.f64", s[0], c(1))
		off := a.do("sub.rn.f64", x, s[1])
		a.set(s[1], "add.rn.f64", s[1], a.do("div.rn.f64", off, s[0]))
		a.set(s[2], "fma.rn.f64", off, a.do("sub.rn.f64", x, s[1]), s[2])
	},
	merge: func(a *asm, s, o []string) {
		n := a.do("add.rn.f64", s[0], o[0])
		share := a.do("div.rn.f64", o[0], a.do("max.f64", n, c(1)))
		off := a.do("sub.rn.f64", o[1], s[1])
		far := a.do("mul.rn.f64", a.do("mul.rn.f64", off, off), a.do("mul.rn.f64", s[0], share))
		a.set(s[2], "add.rn.f64", a.do("add.rn.f64", s[2], o[2]), far)
		a.set(s[1], "fma.rn.f64", off, share, s[1])
		a.set(s[0], "mov.f64", n)
	},
	end: func(a *asm, s []string) string {
		v := a.do("div.rn.f64", s[2], a.do("sub.rn.f64", s[0], c(1)))
		return a.do("selp.f64", v, c(math.NaN()), a.do("setp.ge.f64", s[0], c(2)))
	},
}

// limit formats a constant of a class. For integers, an infinity becomes the largest or smallest
// integer.
func limit(class Type, v float64) string {
	switch {
	case class.float() || !math.IsInf(v, 0):
		return number(class, v)
	case v > 0:
		return "0x7fffffffffffffff"
	}
	return "0x8000000000000000"
}

func (r reducer) entry(name string, out, in Type) *asm {
	a := newAsm(name)
	results, n, chunk, width, alongBy, acrossBy, step := a.u32(), a.u32(), a.u32(), a.u32(), a.u32(), a.u32(), a.u64()
	to, from := a.u64(), a.u64()
	outer, inner := a.arg(layoutWords(2)), a.arg(layoutWords(1))

	tid, part := a.do("mov.u32", "%tid.x"), a.do("mov.u32", "%ctaid.y")
	height := a.do("div.u32", fmt.Sprint(BlockSize), width)
	along := a.do("rem.u32", a.do("div.u32", tid, alongBy), width)
	across := a.do("rem.u32", a.do("div.u32", tid, acrossBy), height)
	result := a.do("mad.lo.u32", a.do("mov.u32", "%ctaid.x"), height, across)
	mine := a.do("setp.lt.u32", result, results)

	state := make([]string, len(r.state))
	for i, t := range r.state {
		state[i] = a.do("mov."+string(t), limit(t, r.first[i]))
	}
	a.when(mine, func() {
		a.offsets(outer, result, []string{from, to})
		begin := a.do("mul.lo.u32", part, chunk)
		end := a.do("min.u32", a.do("add.u32", begin, chunk), n)
		first := a.do("add.u32", begin, along)
		if name == "line" {
			r.line(a, state, in, from, first, end, width, a.word("u64", inner+layoutWords(0)))
			return
		}
		a.loop(first, end, width, func(i string) {
			at := a.do("mov.u64", from)
			a.offsets(inner, i, []string{at})
			r.take(a, state, a.cast(r.class, in.class(), a.load(in, at)), a.do("cvt.u64.u32", i))
		})
	})
	r.together(a, state, along, across, width, height, false)
	a.only(a.do("and.pred", mine, a.do("setp.eq.u32", along, "0")))
	v := a.convert(out, r.state[len(r.state)-1], r.end(a, state))
	a.store(out, a.do("mad.lo.u64", a.do("cvt.u64.u32", part), step, to), v)
	return a
}

// line takes the elements from first to end at intervals of width. stride is the distance of
// elements in bytes. Eight loads are in flight at a time.
func (r reducer) line(a *asm, state []string, in Type, from, first, end, width, stride string) {
	step := a.do("mul.lo.u64", a.do("cvt.u64.u32", width), stride)
	at := a.do("mad.lo.u64", a.do("cvt.u64.u32", first), stride, from)
	a.several(8, first, end, width, func(places []string) {
		x := make([]string, len(places))
		for i := range places {
			x[i] = a.load(in, at)
			a.set(at, "add.u64", at, step)
		}
		for i, place := range places {
			r.take(a, state, a.cast(r.class, in.class(), x[i]), a.do("cvt.u64.u32", place))
		}
	})
}

// few is the maximum number of threads that merge in the first step of together.
const few = 16

// together merges the states of the threads along a row of the block: first, few threads merge the
// states of the others; then thread 0 merges theirs. If all is set, every thread does the second
// step, so that all threads of a row get the result.
func (r reducer) together(a *asm, state []string, along, across, width, height string, all bool) {
	for i := range state {
		if room := fmt.Sprintf("\t.shared .align 8 .b8 s%d[%d];\n", i, 8*BlockSize); !strings.Contains(a.shared.String(), room) {
			a.shared.WriteString(room)
		}
	}
	slot := a.do("mad.lo.u32", along, height, across)
	put := func() {
		for i, t := range r.state {
			a.emit("st.shared.%s [%s], %s", t, a.sharedState(i, slot), state[i])
		}
	}
	get := func(along string) (other []string) {
		partner := a.do("mad.lo.u32", along, height, across)
		for i, t := range r.state {
			other = append(other, a.do("ld.shared."+string(t), "["+a.sharedState(i, partner)+"]"))
		}
		return other
	}
	first := a.do("min.u32", width, fmt.Sprint(few))
	put()
	a.emit("bar.sync 0")
	a.when(a.do("setp.lt.u32", along, first), func() {
		a.loop(a.do("add.u32", along, first), width, first, func(i string) { r.merge(a, state, get(i)) })
		put()
	})
	a.emit("bar.sync 0")
	last := func() {
		for i, v := range get("0") {
			a.set(state[i], "mov."+string(r.state[i]), v)
		}
		a.loop("1", first, "1", func(i string) { r.merge(a, state, get(i)) })
	}
	if all {
		last()
	} else {
		a.when(a.do("setp.eq.u32", along, "0"), last)
	}
}

// sharedState returns the address of value i of a thread's state in shared memory.
func (a *asm) sharedState(i int, slot string) string {
	return a.at(a.do("mov.u64", fmt.Sprintf("s%d", i)), slot, 8)
}
