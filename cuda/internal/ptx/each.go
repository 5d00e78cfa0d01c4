package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// A Kernel is a module that Text writes. Kernels of one name have one text.
type Kernel struct {
	Name string
	// of "dense" and "inner": how many elements a thread takes, and of how many an address is a
	// multiple
	Vector  int
	entries func() []*asm
}

// Text returns the module, with the zero byte at the end that the driver wants.
func (k Kernel) Text() []byte { return append([]byte(module(k.entries()...)), 0) }

// An Operand is a type of elements, in memory or a Number among the arguments.
type Operand struct {
	Type   Type
	Number bool
}

// Dims is how many dimensions a layout has room for.
const Dims = 12

// What is done with an operand.
type mode uint8

const (
	reads    mode = 1 << iota // the element, before
	writes                    // it, afterwards
	adds                      // to it, atomically
	points                    // to it: the body has its address
	inNumber                  // an argument instead of memory
)

type access struct {
	kind Type
	mode mode
}

// An each does something with each element of its operands, all of one shape. Its arguments are the
// number of elements, the place of the first, a word for each operand (its address, or the number),
// extra words, and a layout, which the entry "dense" ignores.
type each struct {
	name     string
	operands []access
	extra    int
	// body gets the values that are read and the addresses of what is pointed to, the element's
	// place in row-major order, u64, and where the extra words are. It returns what is written and
	// added.
	body func(a *asm, x []string, place string, extra int) []string
	// neighbours does several elements at once, where that is not nil: as many as a vector has, the
	// first of which has a place that is a multiple of their number.
	neighbours func(a *asm, x [][]string, place string, extra int) [][]string
}

func (e each) kernel() Kernel {
	k := Kernel{Name: e.name, Vector: 4}
	for _, o := range e.operands {
		k.Name += fmt.Sprintf(" %s/%d", o.kind, o.mode)
		if o.mode&inNumber == 0 && o.kind.Size() == 8 {
			k.Vector = min(k.Vector, 2)
		}
	}
	k.entries = func() []*asm { return []*asm{e.dense(k.Vector), e.inner(k.Vector), e.strided()} }
	return k
}

// begin reads the arguments of all entries.
func (e each) begin(name string) (a *asm, n, place string, bases []string, extra int) {
	a = newAsm(name)
	n, place = a.u32(), a.u64()
	for _, o := range e.operands {
		w := a.arg(1)
		if o.mode&inNumber != 0 {
			bases = append(bases, a.widen(o.kind, a.word(string(o.kind.stored()), w)))
		} else {
			bases = append(bases, a.word("u64", w))
		}
	}
	return a, n, place, bases, a.arg(e.extra)
}

// apply does one element, whose operands are at addresses.
func (e each) apply(a *asm, at []string, place string, extra int) {
	x := make([]string, len(at))
	for k, o := range e.operands {
		if x[k] = at[k]; o.mode&reads != 0 {
			x[k] = a.load(o.kind, at[k])
		}
	}
	results := e.body(a, x, place, extra)
	for k, o := range e.operands {
		switch {
		case o.mode&writes != 0:
			a.store(o.kind, at[k], results[0])
		case o.mode&adds != 0:
			a.addAtomically(o.kind, at[k], results[0])
		default:
			continue
		}
		results = results[1:]
	}
}

// addAtomically adds for all processes that see the memory: those of the scope .gpu are the threads
// of this one. Of float32 it takes numbers too small to be normal for 0.
func (a *asm) addAtomically(t Type, address, v string) {
	kind := string(t)
	if t == Int64 {
		kind = "u64"
	}
	a.emit("red.relaxed.sys.global.add.%s [%s], %s", kind, address, a.narrow(t, v))
}

// strided gives each thread one element.
func (e each) strided() *asm {
	a, n, place, bases, extra := e.begin("strided")
	i := a.thread()
	a.only(a.do("setp.lt.u32", i, n))
	memory := e.memory()
	at := append([]string{}, bases...)
	for _, k := range memory {
		at[k] = a.do("mov.u64", bases[k])
	}
	a.offsets(a.arg(layoutWords(len(memory))), i, pick(at, memory))
	e.apply(a, at, a.do("add.u64", place, a.do("cvt.u64.u32", i)), extra)
	return a
}

func pick(s []string, which []int) (out []string) {
	for _, k := range which {
		out = append(out, s[k])
	}
	return out
}

// layoutWords are how many words a layout of so many operands has.
func layoutWords(operands int) int { return 1 + Dims*(2+operands) }

// offsets moves addresses to where a layout, whose words begin at w, has element i. The outermost
// dimension needs no division.
func (a *asm) offsets(w int, i string, addresses []string) {
	rest, left := a.do("mov.u32", i), a.do("mov.u32", a.word("u32", w))
	dim := a.do("add.u64", a.do("mov.u64", "args"), fmt.Sprint(8*(w+1)))
	step := func(m string) {
		wide := a.do("cvt.u64.u32", m)
		for k, p := range addresses {
			a.set(p, "mad.lo.s64", wide, a.do("ld.param.s64", fmt.Sprintf("[%s+%d]", dim, 8*(layoutWords(k)-1))), p)
		}
	}
	a.while(func() string { return a.do("setp.gt.u32", left, "1") }, func() {
		size := a.do("ld.param.u32", "["+dim+"]")
		quotient := a.quotient(rest, a.do("ld.param.u64", fmt.Sprintf("[%s+%d]", dim, 8*Dims)))
		step(a.do("sub.u32", rest, a.do("mul.lo.u32", quotient, size)))
		a.set(rest, "mov.u32", quotient)
		a.set(left, "sub.u32", left, "1")
		a.set(dim, "add.u64", dim, "8")
	})
	step(rest)
}

// dense gives each thread some neighbours, all at once.
func (e each) dense(vector int) *asm {
	a, n, place, bases, extra := e.begin("dense")
	first := a.do("shl.b32", a.thread(), fmt.Sprint(vector/2))
	a.only(a.do("setp.lt.u32", first, n))
	all := a.do("setp.le.u32", a.do("add.u32", first, fmt.Sprint(vector)), n)
	a.unless(all, func() {
		a.loop(first, n, "1", func(i string) {
			e.apply(a, e.addresses(a, bases, i), a.do("add.u64", place, a.do("cvt.u64.u32", i)), extra)
		})
		a.emit("ret")
	})
	at := e.addresses(a, bases, first)
	e.applyAll(a, vector, at, nil, a.do("add.u64", place, a.do("cvt.u64.u32", first)), extra)
	return a
}

// inner gives each thread some neighbours along the innermost dimension, of which an operand has
// all, or one where its stride is 0. The layout is that of the first of them, and so is the number
// of elements.
func (e each) inner(vector int) *asm {
	a, n, place, bases, extra := e.begin("inner")
	i := a.thread()
	a.only(a.do("setp.lt.u32", i, n))
	memory := e.memory()
	layout := a.arg(layoutWords(len(memory)))
	at, one := append([]string{}, bases...), make([]string, len(bases))
	for m, k := range memory {
		at[k] = a.do("mov.u64", bases[k])
		if e.operands[k].mode&(reads|points) != 0 {
			one[k] = a.do("setp.eq.u64", a.word("u64", layout+layoutWords(m)), "0")
		}
	}
	a.offsets(layout, i, pick(at, memory))
	first := a.do("mad.wide.u32", i, fmt.Sprint(vector), place)
	e.applyAll(a, vector, at, one, first, extra)
	return a
}

// memory returns which operands are no numbers.
func (e each) memory() (which []int) {
	for k, o := range e.operands {
		if o.mode&inNumber == 0 {
			which = append(which, k)
		}
	}
	return which
}

// applyAll does some neighbours, the first of which has its operands at addresses. one has
// predicates that hold where an operand has one element for all, if there are any.
func (e each) applyAll(a *asm, vector int, at, one []string, place string, extra int) {
	x := make([][]string, vector)
	for k, o := range e.operands {
		values := slices.Repeat([]string{at[k]}, vector)
		switch {
		case o.mode&reads != 0:
			values = e.loadAll(a, vector, o.kind, at[k], k, one)
		case o.mode&points != 0:
			values = e.pointAll(a, vector, o.kind, at[k], k, one)
		}
		for i, v := range values {
			x[i] = append(x[i], v)
		}
	}
	var results [][]string
	if e.neighbours != nil {
		results = e.neighbours(a, x, place, extra)
	} else {
		for i := range x {
			results = append(results, e.body(a, x[i], a.do("add.u64", place, fmt.Sprint(i)), extra))
		}
	}
	done := 0
	for k, o := range e.operands {
		if o.mode&(writes|adds) == 0 {
			continue
		}
		var values []string
		for i := range results {
			if v := results[i][done]; o.mode&writes != 0 {
				values = append(values, a.narrow(o.kind, v))
			} else {
				a.addAtomically(o.kind, a.do("add.u64", at[k], fmt.Sprint(i*o.kind.Size())), v)
			}
		}
		if o.mode&writes != 0 {
			a.emit("st.global.v%d.%s [%s], {%s}", vector, o.kind.stored(), at[k], strings.Join(values, ", "))
		}
		done++
	}
}

// loadAll reads neighbours to compute with, or one for all.
func (e each) loadAll(a *asm, vector int, t Type, at string, k int, one []string) []string {
	values, size := make([]string, vector), resultSize("ld.global."+string(t.stored()))
	for i := range values {
		values[i] = a.reg(size)
	}
	all := func() { a.emit("ld.global.v%d.%s {%s}, [%s]", vector, t.stored(), strings.Join(values, ", "), at) }
	if one == nil || one[k] == "" {
		all()
	} else {
		a.unless(one[k], all)
		a.when(one[k], func() {
			a.set(values[0], "ld.global."+string(t.stored()), "["+at+"]")
			for _, v := range values[1:] {
				a.set(v, fmt.Sprintf("mov.b%d", 8*size), values[0])
			}
		})
	}
	for i, v := range values {
		values[i] = a.widen(t, v)
	}
	return values
}

// pointAll returns the addresses of neighbours, or that of the one for all.
func (e each) pointAll(a *asm, vector int, t Type, at string, k int, one []string) []string {
	values, step := []string{at}, a.do("mov.u64", fmt.Sprint(t.Size()))
	if one != nil && one[k] != "" {
		step = a.do("selp.u64", "0", step, one[k])
	}
	for i := range vector - 1 {
		values = append(values, a.do("add.u64", values[i], step))
	}
	return values
}

// addresses returns those of element i; numbers stay what they are.
func (e each) addresses(a *asm, bases []string, i string) (at []string) {
	for k, o := range e.operands {
		if o.mode&inNumber != 0 {
			at = append(at, bases[k])
		} else {
			at = append(at, a.at(bases[k], i, o.kind.Size()))
		}
	}
	return at
}
