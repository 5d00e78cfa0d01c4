package ptx

import (
	"fmt"
	"math"
	"strings"
)

// An asm generates one entry point. Its methods emit instructions. They take and return the
// names of registers as strings; where a value is read, a constant is possible as well. An asm
// uses a new register for each result; the driver's compiler allocates the physical registers.
type asm struct {
	name   string
	body   strings.Builder
	shared strings.Builder
	count  map[byte]int // number of registers, by class
	labels int
	words  int // number of argument words
}

// registers lists the register classes, by the first letter of their names, and their types.
var registers = []struct {
	letter byte
	kind   string
}{{'p', ".pred"}, {'h', ".b16"}, {'r', ".b32"}, {'d', ".b64"}}

func newAsm(name string) *asm { return &asm{name: name, count: map[byte]int{}} }

// entryText returns the PTX text of the entry point, with the instructions emitted so far.
func (a *asm) entryText() string {
	var s strings.Builder
	fmt.Fprintf(&s, ".visible .entry %s(.param .align 8 .b8 args[%d])\n{\n", a.name, 8*a.words)
	for _, r := range registers {
		if n := a.count[r.letter]; n > 0 {
			fmt.Fprintf(&s, "\t.reg %s %%%c<%d>;\n", r.kind, r.letter, n)
		}
	}
	s.WriteString(a.shared.String())
	s.WriteString(a.body.String())
	s.WriteString("\tret;\n}\n")
	return s.String()
}

// module returns the PTX text of a module with the given entry points.
func module(entries ...*asm) string {
	var s strings.Builder
	s.WriteString(".version 6.3\n.target sm_70\n.address_size 64\n")
	for _, a := range entries {
		s.WriteString("\n" + a.entryText())
	}
	return s.String()
}

// newRegister returns the name of a new register for values of size bytes: 1, 2, 4 or 8. It
// returns a predicate register if size is 0.
func (a *asm) newRegister(size int) string {
	letter := map[int]byte{0: 'p', 2: 'h', 1: 'r', 4: 'r', 8: 'd'}[size]
	a.count[letter]++
	return fmt.Sprintf("%%%c%d", letter, a.count[letter]-1)
}

// resultSize returns the size of the result of the instruction op, such as ld.global.u32, in
// bytes, or 0 for a predicate.
func resultSize(op string) int {
	words := strings.Split(op, ".")
	last := Type(words[len(words)-1])
	switch {
	case words[0] == "setp" || last == "pred":
		return 0
	case words[0] == "cvt":
		last = Type(words[len(words)-2])
	case words[0] == "ld" && last.Size() < 2:
		return 4
	case len(words) > 1 && words[1] == "wide":
		return 8
	}
	switch last {
	case "u16", "s16":
		return 2
	case "u32":
		return 4
	}
	return last.Size()
}

// emitResult emits an instruction and returns the new register that holds its result.
func (a *asm) emitResult(op string, args ...string) string {
	d := a.newRegister(resultSize(op))
	a.set(d, op, args...)
	return d
}

// set emits an instruction that stores its result in an existing register.
func (a *asm) set(d, op string, args ...string) {
	a.emit("%s %s", op, strings.Join(append([]string{d}, args...), ", "))
}

// emit emits an instruction without a result. format and args are as for [fmt.Fprintf].
func (a *asm) emit(format string, args ...any) { fmt.Fprintf(&a.body, "\t"+format+";\n", args...) }

// newLabel returns a new label. The caller must place it with placeLabel.
func (a *asm) newLabel() string {
	a.labels++
	return fmt.Sprintf("L%d", a.labels)
}

func (a *asm) placeLabel(label string) { fmt.Fprintf(&a.body, "%s:\n", label) }

// emitIf emits the code that then emits, to be run if the predicate p is true.
func (a *asm) emitIf(p string, then func()) { a.emitBranch("@!", p, then) }

// emitUnless emits the code that then emits, to be run if the predicate p is false.
func (a *asm) emitUnless(p string, then func()) { a.emitBranch("@", p, then) }

func (a *asm) emitBranch(over, p string, then func()) {
	end := a.newLabel()
	a.emit("%s%s bra %s", over, p, end)
	then()
	a.placeLabel(end)
}

// emitWhile emits a loop that runs body as long as test is true. test must emit the condition
// and return its predicate. Each is called once.
func (a *asm) emitWhile(test func() string, body func()) {
	again, end := a.newLabel(), a.newLabel()
	a.placeLabel(again)
	a.emit("@!%s bra %s", test(), end)
	body()
	a.emit("bra.uni %s", again)
	a.placeLabel(end)
}

// emitLoop emits a loop over i from a start value, in steps, while it is below end. The values
// are u32. body is called once to emit the code for one value, and must not change i.
func (a *asm) emitLoop(from, end, step string, body func(i string)) {
	i := a.emitResult("mov.u32", from)
	a.emitWhile(func() string { return a.emitResult("setp.lt.u32", i, end) }, func() {
		body(i)
		a.set(i, "add.u32", i, step)
	})
}

// emitUnrolled is like emitLoop, but runs body for atOnce values of i at a time. The remaining
// values are processed one by one. So body is called twice: with atOnce values, and with one.
func (a *asm) emitUnrolled(atOnce int, from, end, step string, body func(is []string)) {
	i := a.emitResult("mov.u32", from)
	is := make([]string, atOnce)
	last := func() string {
		for n := range is {
			if is[n] = i; n > 0 {
				is[n] = a.emitResult("add.u32", is[n-1], step)
			}
		}
		return a.emitResult("setp.lt.u32", is[atOnce-1], end)
	}
	a.emitWhile(last, func() {
		body(is)
		a.set(i, "add.u32", is[atOnce-1], step)
	})
	a.emitWhile(func() string { return a.emitResult("setp.lt.u32", i, end) }, func() {
		body([]string{i})
		a.set(i, "add.u32", i, step)
	})
}

// Reciprocal returns the factor that kernels use to divide by n, which must be from 1 to 2³¹. A
// kernel multiplies a number below 2³¹ by the factor and shifts the product right by 63 bits. The
// result is exact because the factor exceeds 2⁶³/n by at most 1.
func Reciprocal(n int) uint64 { return 1<<63/uint64(n) + 1 }

// emitQuotient emits the division of n (u32, below 2³¹) by the divisor of the given
// [Reciprocal] (u64), and returns the quotient (u32). It takes a third of the instructions of a
// division.
func (a *asm) emitQuotient(n, reciprocal string) string {
	double := a.emitResult("shl.b64", a.emitResult("cvt.u64.u32", n), "1")
	return a.emitResult("cvt.u32.u64", a.emitResult("mul.hi.u64", double, reciprocal))
}

// reserveArgs reserves n argument words and returns the index of the first one.
func (a *asm) reserveArgs(n int) int {
	a.words += n
	return a.words - n
}

// loadWord loads argument word i as type t, or its low bytes if t has fewer than 8.
func (a *asm) loadWord(t string, i int) string {
	return a.emitResult("ld.param."+t, fmt.Sprintf("[args+%d]", 8*i))
}

// loadU32 and loadU64 reserve the next argument and load it.
func (a *asm) loadU32() string { return a.loadWord("u32", a.reserveArgs(1)) }
func (a *asm) loadU64() string { return a.loadWord("u64", a.reserveArgs(1)) }

// threadIndex returns the index of the thread in the grid, as u32.
func (a *asm) threadIndex() string {
	return a.emitResult("mad.lo.u32", a.emitResult("mov.u32", "%ctaid.x"), a.emitResult("mov.u32", "%ntid.x"),
		a.emitResult("mov.u32", "%tid.x"))
}

// returnUnless makes threads return from the kernel if the predicate is false.
func (a *asm) returnUnless(p string) { a.emit("@!%s ret", p) }

// formatConst formats a constant of a class: Float32, Float64, or otherwise an integer, to
// which v is truncated.
func formatConst(class Type, v float64) string {
	switch class {
	case Float32:
		return fmt.Sprintf("0f%08X", math.Float32bits(float32(v)))
	case Float64:
		return fmt.Sprintf("0d%016X", math.Float64bits(v))
	}
	return fmt.Sprint(int64(v))
}

// c formats a float64 constant.
func c(v float64) string { return formatConst(Float64, v) }

// op returns the arithmetic instruction with the given name for a class. For floats it has the
// suffix .rn, so that the compiler does not fuse multiplications and additions.
func op(name string, class Type) string {
	if class.isFloat() {
		switch name {
		case "add", "sub", "mul", "div", "sqrt", "rcp", "fma":
			name += ".rn"
		}
	} else if name == "mul" {
		name = "mul.lo"
	}
	return name + "." + string(class)
}

// load loads the element at an address in global memory and converts it to its class; see
// [Type.computeType].
func (a *asm) load(t Type, address string) string {
	return a.toClass(t, a.emitResult("ld.global."+string(t.storageType()), "["+address+"]"))
}

// store converts v, of the class of t, to t and stores it at an address in global memory.
func (a *asm) store(t Type, address, v string) {
	a.emit("st.global.%s [%s], %s", t.storageType(), address, a.toStored(t, v))
}

// elementAddress returns the address of element i (u32) of an array at base with elements of
// size bytes.
func (a *asm) elementAddress(base, i string, size int) string {
	return a.emitResult("mad.wide.u32", i, fmt.Sprint(size), base)
}
