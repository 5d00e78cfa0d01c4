package ptx

import (
	"fmt"
	"math"
	"strings"
)

// A reducer reduces many elements to one. Its state consists of values in classes of at most 8
// bytes. take emits the update of the state by an element and its index, merge the update of
// the state by another state, both in place.
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
	wide := in.computeType()
	if in.isFloat() {
		wide = Float64
	}
	switch least, most := math.Inf(-1), math.Inf(1); name {
	case "Sum":
		return foldReducer(wide, 0, singleInstruction("add")), true
	case "Prod":
		return foldReducer(wide, 1, singleInstruction("mul")), true
	case "Amax":
		return foldReducer(in.computeType(), least, extremeOf(in, "max")), true
	case "Amin":
		return foldReducer(in.computeType(), most, extremeOf(in, "min")), true
	case "Argmax":
		return indexReducer(in.computeType(), least, "gt"), true
	case "Argmin":
		return indexReducer(in.computeType(), most, "lt"), true
	case "Var":
		return variance, in.isFloat()
	}
	return reducer{}, false
}

func extremeOf(in Type, name string) opFunc {
	if in.isFloat() {
		return nanExtreme(name)
	}
	return singleInstruction(name)
}

// foldReducer returns a reducer that combines values with the binary operation f. first is its
// neutral element.
func foldReducer(class Type, first float64, f opFunc) reducer {
	return reducer{
		class: class, state: []Type{class}, first: []float64{first},
		take:  func(a *asm, s []string, x, _ string) { a.set(s[0], "mov."+string(class), f(a, class, s[0], x)) },
		merge: func(a *asm, s, o []string) { a.set(s[0], "mov."+string(class), f(a, class, s[0], o[0])) },
		end:   func(a *asm, s []string) string { return s[0] },
	}
}

// indexReducer returns a reducer that finds a value and its index. before is the comparison by
// which a value precedes another, such as gt, and first must precede no number. NaN precedes
// all numbers. Of equal values the first wins.
func indexReducer(class Type, first float64, before string) reducer {
	better := func(a *asm, s []string, x, place string) {
		t := string(class)
		same := a.emitResult("setp.eq."+t, x, s[0])
		wins := a.emitResult("setp."+before+"."+t, x, s[0])
		if class.isFloat() {
			nan, had := a.emitResult("setp.nan."+t, x, x), a.emitResult("setp.nan."+t, s[0], s[0])
			same = a.emitResult("or.pred", same, a.emitResult("and.pred", nan, had))
			wins = a.emitResult("or.pred", wins, a.emitResult("and.pred", nan, a.emitResult("not.pred", had)))
		}
		wins = a.emitResult("or.pred", wins, a.emitResult("and.pred", same, a.emitResult("setp.lt.s64", place, s[1])))
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
		off := a.emitResult("sub.rn.f64", x, s[1])
		a.set(s[1], "add.rn.f64", s[1], a.emitResult("div.rn.f64", off, s[0]))
		a.set(s[2], "fma.rn.f64", off, a.emitResult("sub.rn.f64", x, s[1]), s[2])
	},
	merge: func(a *asm, s, o []string) {
		n := a.emitResult("add.rn.f64", s[0], o[0])
		share := a.emitResult("div.rn.f64", o[0], a.emitResult("max.f64", n, c(1)))
		off := a.emitResult("sub.rn.f64", o[1], s[1])
		far := a.emitResult("mul.rn.f64", a.emitResult("mul.rn.f64", off, off), a.emitResult("mul.rn.f64", s[0], share))
		a.set(s[2], "add.rn.f64", a.emitResult("add.rn.f64", s[2], o[2]), far)
		a.set(s[1], "fma.rn.f64", off, share, s[1])
		a.set(s[0], "mov.f64", n)
	},
	end: func(a *asm, s []string) string {
		v := a.emitResult("div.rn.f64", s[2], a.emitResult("sub.rn.f64", s[0], c(1)))
		return a.emitResult("selp.f64", v, c(math.NaN()), a.emitResult("setp.ge.f64", s[0], c(2)))
	},
}

// limitConst formats a constant of a class, like [formatConst]. For integers, an infinity
// becomes the largest or smallest integer.
func limitConst(class Type, v float64) string {
	switch {
	case class.isFloat() || !math.IsInf(v, 0):
		return formatConst(class, v)
	case v > 0:
		return "0x7fffffffffffffff"
	}
	return "0x8000000000000000"
}

func (r reducer) entry(name string, out, in Type) *asm {
	a := newAsm(name)
	results, n, chunk, width, alongBy, acrossBy, step := a.loadU32(), a.loadU32(), a.loadU32(), a.loadU32(),
		a.loadU32(), a.loadU32(), a.loadU64()
	to, from := a.loadU64(), a.loadU64()
	outer, inner := a.reserveArgs(layoutWords(2)), a.reserveArgs(layoutWords(1))

	tid, part := a.emitResult("mov.u32", "%tid.x"), a.emitResult("mov.u32", "%ctaid.y")
	height := a.emitResult("div.u32", fmt.Sprint(BlockSize), width)
	along := a.emitResult("rem.u32", a.emitResult("div.u32", tid, alongBy), width)
	across := a.emitResult("rem.u32", a.emitResult("div.u32", tid, acrossBy), height)
	result := a.emitResult("mad.lo.u32", a.emitResult("mov.u32", "%ctaid.x"), height, across)
	mine := a.emitResult("setp.lt.u32", result, results)

	state := make([]string, len(r.state))
	for i, t := range r.state {
		state[i] = a.emitResult("mov."+string(t), limitConst(t, r.first[i]))
	}
	a.emitIf(mine, func() {
		a.advanceAddresses(outer, result, []string{from, to})
		begin := a.emitResult("mul.lo.u32", part, chunk)
		end := a.emitResult("min.u32", a.emitResult("add.u32", begin, chunk), n)
		first := a.emitResult("add.u32", begin, along)
		if name == "line" {
			r.accumulateLine(a, state, in, from, first, end, width, a.loadWord("u64", inner+layoutWords(0)))
			return
		}
		a.emitLoop(first, end, width, func(i string) {
			at := a.emitResult("mov.u64", from)
			a.advanceAddresses(inner, i, []string{at})
			r.take(a, state, a.cast(r.class, in.computeType(), a.load(in, at)), a.emitResult("cvt.u64.u32", i))
		})
	})
	r.mergeThreads(a, state, along, across, width, height, false)
	a.returnUnless(a.emitResult("and.pred", mine, a.emitResult("setp.eq.u32", along, "0")))
	v := a.convert(out, r.state[len(r.state)-1], r.end(a, state))
	a.store(out, a.emitResult("mad.lo.u64", a.emitResult("cvt.u64.u32", part), step, to), v)
	return a
}

// accumulateLine takes the elements from first to before end at intervals of width. from is the
// address of element 0, and stride the distance of elements in bytes. Eight loads are in flight
// at a time.
func (r reducer) accumulateLine(a *asm, state []string, in Type, from, first, end, width, stride string) {
	step := a.emitResult("mul.lo.u64", a.emitResult("cvt.u64.u32", width), stride)
	at := a.emitResult("mad.lo.u64", a.emitResult("cvt.u64.u32", first), stride, from)
	a.emitUnrolled(8, first, end, width, func(places []string) {
		x := make([]string, len(places))
		for i := range places {
			x[i] = a.load(in, at)
			a.set(at, "add.u64", at, step)
		}
		for i, place := range places {
			r.take(a, state, a.cast(r.class, in.computeType(), x[i]), a.emitResult("cvt.u64.u32", place))
		}
	})
}

// few is the maximum number of threads that merge in the first step of together.
const few = 16

// mergeThreads merges the states of the threads along a row of the block: first, few threads
// merge the states of the others; then thread 0 merges theirs. If all is set, every thread does
// the second step, so that all threads of a row get the result. Otherwise only thread 0 gets
// it. All threads of the block must run the code, because it has barriers.
func (r reducer) mergeThreads(a *asm, state []string, along, across, width, height string, all bool) {
	for i := range state {
		if room := fmt.Sprintf("\t.shared .align 8 .b8 s%d[%d];\n", i,
			8*BlockSize); !strings.Contains(a.shared.String(), room) {
			a.shared.WriteString(room)
		}
	}
	slot := a.emitResult("mad.lo.u32", along, height, across)
	put := func() {
		for i, t := range r.state {
			a.emit("st.shared.%s [%s], %s", t, a.sharedState(i, slot), state[i])
		}
	}
	get := func(along string) (other []string) {
		partner := a.emitResult("mad.lo.u32", along, height, across)
		for i, t := range r.state {
			other = append(other, a.emitResult("ld.shared."+string(t), "["+a.sharedState(i, partner)+"]"))
		}
		return other
	}
	first := a.emitResult("min.u32", width, fmt.Sprint(few))
	put()
	a.emit("bar.sync 0")
	a.emitIf(a.emitResult("setp.lt.u32", along, first), func() {
		a.emitLoop(a.emitResult("add.u32", along, first), width, first, func(i string) { r.merge(a, state, get(i)) })
		put()
	})
	a.emit("bar.sync 0")
	last := func() {
		for i, v := range get("0") {
			a.set(state[i], "mov."+string(r.state[i]), v)
		}
		a.emitLoop("1", first, "1", func(i string) { r.merge(a, state, get(i)) })
	}
	if all {
		last()
	} else {
		a.emitIf(a.emitResult("setp.eq.u32", along, "0"), last)
	}
}

// sharedState returns the address of value i of a thread's state in shared memory.
func (a *asm) sharedState(i int, slot string) string {
	return a.elementAddress(a.emitResult("mov.u64", fmt.Sprintf("s%d", i)), slot, 8)
}
