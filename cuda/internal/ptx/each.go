package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// A Kernel is a generated module for one operation and one combination of types. Kernels with
// the same name must have the same text, which [Kernel.Text] generates. It may be copied and
// used concurrently.
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
	k.entries = func() []*asm { return []*asm{e.denseEntry(k.Vector), e.innerEntry(k.Vector), e.stridedEntry()} }
	return k
}

// beginEntry starts an entry point and loads its common arguments: n, the number of elements
// (u32), place, the row-major index of the first one (u64), and the addresses or numbers of the
// operands. extra is the index of the first extra word.
func (e each) beginEntry(name string) (a *asm, n, place string, bases []string, extra int) {
	a = newAsm(name)
	n, place = a.loadU32(), a.loadU64()
	for _, o := range e.operands {
		w := a.reserveArgs(1)
		if o.mode&inNumber != 0 {
			bases = append(bases, a.toClass(o.kind, a.loadWord(string(o.kind.storageType()), w)))
		} else {
			bases = append(bases, a.loadWord("u64", w))
		}
	}
	return a, n, place, bases, a.reserveArgs(e.extra)
}

// applyElement emits the code for one element, given the addresses of its operands, or their
// numbers, and its row-major index, place.
func (e each) applyElement(a *asm, at []string, place string, extra int) {
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

// addAtomically adds v to the element at an address, atomically at system scope, so for all
// processes that share the memory; the scope .gpu covers only the threads of one program. t
// must be Float32, Float64, Int32 or Int64. The float32 instruction flushes subnormal numbers
// to 0.
func (a *asm) addAtomically(t Type, address, v string) {
	kind := string(t)
	if t == Int64 {
		kind = "u64"
	}
	a.emit("red.relaxed.sys.global.add.%s [%s], %s", kind, address, a.toStored(t, v))
}

// stridedEntry generates the entry point with one element per thread.
func (e each) stridedEntry() *asm {
	a, n, place, bases, extra := e.beginEntry("strided")
	i := a.threadIndex()
	a.returnUnless(a.emitResult("setp.lt.u32", i, n))
	memory := e.memoryOperands()
	at := append([]string{}, bases...)
	for _, k := range memory {
		at[k] = a.emitResult("mov.u64", bases[k])
	}
	a.advanceAddresses(a.reserveArgs(layoutWords(len(memory))), i, selectStrings(at, memory))
	e.applyElement(a, at, a.emitResult("add.u64", place, a.emitResult("cvt.u64.u32", i)), extra)
	return a
}

func selectStrings(s []string, which []int) (out []string) {
	for _, k := range which {
		out = append(out, s[k])
	}
	return out
}

// layoutWords returns the number of words of a layout for the given number of operands in
// memory.
func layoutWords(operands int) int { return 1 + Dims*(2+operands) }

// advanceAddresses adds to each of the addresses, in place, the offset of element i of the
// layout that begins at word w. The outermost dimension needs no division.
func (a *asm) advanceAddresses(w int, i string, addresses []string) {
	rest, left := a.emitResult("mov.u32", i), a.emitResult("mov.u32", a.loadWord("u32", w))
	dim := a.emitResult("add.u64", a.emitResult("mov.u64", "args"), fmt.Sprint(8*(w+1)))
	step := func(m string) {
		wide := a.emitResult("cvt.u64.u32", m)
		for k, p := range addresses {
			a.set(p, "mad.lo.s64", wide,
				a.emitResult("ld.param.s64", fmt.Sprintf("[%s+%d]", dim, 8*(layoutWords(k)-1))), p)
		}
	}
	a.emitWhile(func() string { return a.emitResult("setp.gt.u32", left, "1") }, func() {
		size := a.emitResult("ld.param.u32", "["+dim+"]")
		quotient := a.emitQuotient(rest, a.emitResult("ld.param.u64", fmt.Sprintf("[%s+%d]", dim, 8*Dims)))
		step(a.emitResult("sub.u32", rest, a.emitResult("mul.lo.u32", quotient, size)))
		a.set(rest, "mov.u32", quotient)
		a.set(left, "sub.u32", left, "1")
		a.set(dim, "add.u64", dim, "8")
	})
	step(rest)
}

// denseEntry generates the entry point for contiguous operands, with a vector of elements per
// thread.
func (e each) denseEntry(vector int) *asm {
	a, n, place, bases, extra := e.beginEntry("dense")
	first := a.emitResult("shl.b32", a.threadIndex(), fmt.Sprint(vector/2))
	a.returnUnless(a.emitResult("setp.lt.u32", first, n))
	all := a.emitResult("setp.le.u32", a.emitResult("add.u32", first, fmt.Sprint(vector)), n)
	a.emitUnless(all, func() {
		a.emitLoop(first, n, "1", func(i string) {
			e.applyElement(a, e.elementAddresses(a, bases, i),
				a.emitResult("add.u64", place, a.emitResult("cvt.u64.u32", i)), extra)
		})
		a.emit("ret")
	})
	at := e.elementAddresses(a, bases, first)
	e.applyAll(a, vector, at, nil, a.emitResult("add.u64", place, a.emitResult("cvt.u64.u32", first)), extra)
	return a
}

// innerEntry generates the entry point with a vector of elements per thread along the innermost
// dimension. Each operand must be contiguous there, or have stride 0. The layout and the number of
// elements count vectors.
func (e each) innerEntry(vector int) *asm {
	a, n, place, bases, extra := e.beginEntry("inner")
	i := a.threadIndex()
	a.returnUnless(a.emitResult("setp.lt.u32", i, n))
	memory := e.memoryOperands()
	layout := a.reserveArgs(layoutWords(len(memory)))
	at, one := append([]string{}, bases...), make([]string, len(bases))
	for m, k := range memory {
		at[k] = a.emitResult("mov.u64", bases[k])
		if e.operands[k].mode&(reads|points) != 0 {
			one[k] = a.emitResult("setp.eq.u64", a.loadWord("u64", layout+layoutWords(m)), "0")
		}
	}
	a.advanceAddresses(layout, i, selectStrings(at, memory))
	first := a.emitResult("mad.wide.u32", i, fmt.Sprint(vector), place)
	e.applyAll(a, vector, at, one, first, extra)
	return a
}

// memoryOperands returns the indices of the operands in memory.
func (e each) memoryOperands() (which []int) {
	for k, o := range e.operands {
		if o.mode&inNumber == 0 {
			which = append(which, k)
		}
	}
	return which
}

// applyAll processes a vector of elements, given the addresses of the first one and its row-major
// index, place. extra is the index of the first extra word. If one is not nil, it contains
// predicates that are true for operands with stride 0.
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
			results = append(results, e.body(a, x[i], a.emitResult("add.u64", place, fmt.Sprint(i)), extra))
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
				values = append(values, a.toStored(o.kind, v))
			} else {
				a.addAtomically(o.kind, a.emitResult("add.u64", at[k], fmt.Sprint(i*o.kind.Size())), v)
			}
		}
		if o.mode&writes != 0 {
			a.emit("st.global.v%d.%s [%s], {%s}", vector, o.kind.storageType(), at[k], strings.Join(values, ", "))
		}
		done++
	}
}

// loadAll loads a vector of elements at the address at, or broadcasts the one there, and
// converts them to their class. k is the number of the operand. one is as for [each.applyAll].
func (e each) loadAll(a *asm, vector int, t Type, at string, k int, one []string) []string {
	values, size := make([]string, vector), resultSize("ld.global."+string(t.storageType()))
	for i := range values {
		values[i] = a.newRegister(size)
	}
	all := func() { a.emit("ld.global.v%d.%s {%s}, [%s]", vector, t.storageType(), strings.Join(values, ", "), at) }
	if one == nil || one[k] == "" {
		all()
	} else {
		a.emitUnless(one[k], all)
		a.emitIf(one[k], func() {
			a.set(values[0], "ld.global."+string(t.storageType()), "["+at+"]")
			for _, v := range values[1:] {
				a.set(v, fmt.Sprintf("mov.b%d", 8*size), values[0])
			}
		})
	}
	for i, v := range values {
		values[i] = a.toClass(t, v)
	}
	return values
}

// pointAll returns the addresses of a vector of elements from the address at, or repeats the
// address of the broadcast one. k and one are as for [each.loadAll].
func (e each) pointAll(a *asm, vector int, t Type, at string, k int, one []string) []string {
	values, step := []string{at}, a.emitResult("mov.u64", fmt.Sprint(t.Size()))
	if one != nil && one[k] != "" {
		step = a.emitResult("selp.u64", "0", step, one[k])
	}
	for i := range vector - 1 {
		values = append(values, a.emitResult("add.u64", values[i], step))
	}
	return values
}

// elementAddresses returns the addresses of element i of all operands, which begin at bases.
// Numbers are returned unchanged.
func (e each) elementAddresses(a *asm, bases []string, i string) (at []string) {
	for k, o := range e.operands {
		if o.mode&inNumber != 0 {
			at = append(at, bases[k])
		} else {
			at = append(at, a.elementAddress(bases[k], i, o.kind.Size()))
		}
	}
	return at
}
