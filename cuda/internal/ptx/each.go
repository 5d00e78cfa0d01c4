package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// A Kernel is a generated module. Kernels with the same name must have the same text, which
// [Kernel.Text] generates.
type Kernel struct {
	Name string
	// Vector is the number of elements per thread in the entries "dense" and "inner". Addresses
	// must be aligned to that number of elements.
	Vector  int
	entries func() []*asm
}

// Text generates the module, with the terminating zero byte that the driver requires.
func (k Kernel) Text() []byte { return append([]byte(module(k.entries()...)), 0) }

// An Operand is the type of an operand's elements, which are in memory or, if Number is set, one
// number among the arguments.
type Operand struct {
	Type   Type
	Number bool
}

// Dims is the maximum number of dimensions of a layout.
const Dims = 12

// A mode is the set of accesses to an operand.
type mode uint8

const (
	reads    mode = 1 << iota // loads the element before the computation
	writes                    // stores the element after the computation
	adds                      // adds to the element atomically
	points                    // passes the element's address to the body
	inNumber                  // the operand is an argument, not in memory
)

type access struct {
	kind Type
	mode mode
}

// An each generates a kernel that processes each element of its operands, which have the same
// shape. Its arguments are the number of elements, the row-major index of the first one, a word for
// each operand (its address or number), extra words, and a layout, which the entry "dense" does not
// use.
type each struct {
	name     string
	operands []access
	extra    int
	// body emits code for one element. It gets the loaded values and addresses, the element's
	// row-major index (u64), and the index of the first extra word. It must return the values to
	// store and to add.
	body func(a *asm, x []string, place string, extra int) []string
	// neighbours, if not nil, emits code for a whole vector of elements. The index of the first one
	// is a multiple of the vector's size.
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

// begin starts an entry point and loads its common arguments.
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

// apply processes one element, given the addresses of its operands.
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

// addAtomically adds at system scope, so that it is atomic for all processes that share the memory;
// the scope .gpu covers only the threads of one program. The float32 instruction flushes subnormal
// numbers to 0.
func (a *asm) addAtomically(t Type, address, v string) {
	kind := string(t)
	if t == Int64 {
		kind = "u64"
	}
	a.emit("red.relaxed.sys.global.add.%s [%s], %s", kind, address, a.narrow(t, v))
}

// strided generates the entry point with one element per thread.
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

// layoutWords returns the number of words of a layout.
func layoutWords(operands int) int { return 1 + Dims*(2+operands) }

// offsets advances the addresses to element i of the layout that begins at word w. The outermost
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

// dense generates the entry point for contiguous operands, with a vector of elements per thread.
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

// inner generates the entry point with a vector of elements per thread along the innermost
// dimension. Each operand must be contiguous there, or have stride 0. The layout and the number of
// elements count vectors.
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

// memory returns the indices of the operands in memory.
func (e each) memory() (which []int) {
	for k, o := range e.operands {
		if o.mode&inNumber == 0 {
			which = append(which, k)
		}
	}
	return which
}

// applyAll processes a vector of elements, given the addresses of the first one. If one is not nil,
// it contains predicates that are true for operands with stride 0.
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

// loadAll loads a vector of elements, or broadcasts one element, and converts them to their class.
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

// pointAll returns the addresses of a vector of elements, or repeats the address of the broadcast
// one.
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

// addresses returns the addresses of element i of all operands. Numbers are returned unchanged.
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
