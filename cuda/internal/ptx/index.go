package ptx

import "fmt"

// Outside returns the kernel that looks for an element that is less than the first extra word
// or not less than the second. The kernel writes such an element to the address in the third
// word, followed by 1, and writes nothing if there is none.
func Outside() Kernel {
	return each{name: "Outside", operands: []access{{Int64, reads}}, extra: 3,
		body: func(a *asm, x []string, _ string, extra int) []string {
			low := a.emitResult("setp.lt.s64", x[0], a.loadWord("s64", extra))
			out := a.emitResult("or.pred", low, a.emitResult("setp.ge.s64", x[0], a.loadWord("s64", extra+1)))
			a.storeReport(out, x[0], a.loadWord("u64", extra+2))
			return nil
		}}.kernel()
}

// storeReport stores v, which must have 8 bytes, at the address to, and 1 in the next 8 bytes,
// if the predicate p is true.
func (a *asm) storeReport(p, v, to string) {
	a.emitIf(p, func() {
		a.emit("st.global.u64 [%s], %s", to, v)
		a.emit("st.global.u64 [%s+8], %s", to, a.emitResult("mov.u64", "1"))
	})
}

// Gather returns the kernel that loads elements by index. The operands are the output, the
// index, and the input, which must have stride 0 along the indexed dimension. The extra words
// are the input's stride in bytes and size in elements in that dimension, and the address for
// reporting an index that is out of range, as in [Outside], or 0.
func Gather(t Type) Kernel {
	return each{name: "Gather", operands: []access{{t, writes}, {Int64, reads}, {t, points}}, extra: 3,
		body: func(a *asm, x []string, _ string, extra int) []string {
			at, stray := a.indexedAddress(x[2], x[1], extra)
			to := a.loadWord("u64", extra+2)
			a.storeReport(a.emitResult("and.pred", stray, a.emitResult("setp.ne.u64", to, "0")), x[1], to)
			return []string{a.load(t, at)}
		}}.kernel()
}

// Scatter returns the kernel that stores elements by index, or adds them if add is set. The
// operands are the output, which must have stride 0 along the indexed dimension, the index, and
// the input. The extra words are the output's stride in bytes and size in elements in that
// dimension. Negative indices count from the end. The kernel clamps an index that is out of
// range. All types may be added.
func Scatter(t Type, add bool) Kernel {
	e := each{name: "Scatter", operands: []access{{t, points}, {Int64, reads}, {t, reads}}, extra: 2}
	if add {
		e.name = "ScatterAdd"
	}
	e.body = func(a *asm, x []string, _ string, extra int) []string {
		if at, _ := a.indexedAddress(x[0], x[1], extra); add {
			a.addAtomic(t, at, x[2])
		} else {
			a.store(t, at, x[2])
		}
		return nil
	}
	return e.kernel()
}

// indexedAddress returns the address selected by an index; negative indices count from the end.
// The extra words from extra on are the stride in bytes and the size of the indexed dimension.
// If the index is out of range, the predicate stray is true and the address is clamped, so a
// process that concurrently modifies indices cannot cause an access outside of the memory.
func (a *asm) indexedAddress(base, index string, extra int) (at, stray string) {
	size := a.loadWord("s64", extra+1)
	end := a.emitResult("add.s64", index, size)
	index = a.emitResult("selp.s64", end, index, a.emitResult("setp.lt.s64", index, "0"))
	inside := a.emitResult("min.u64", index, a.emitResult("sub.s64", size, "1"))
	return a.emitResult("mad.lo.s64", inside, a.loadWord("s64", extra), base),
		a.emitResult("setp.ne.u64", inside, index)
}

// addAtomic adds v to the element at an address atomically, including types without such an
// instruction: Bool addition is or, which is a store, and narrow numbers use a compare-and-swap
// loop on their 4-byte word.
func (a *asm) addAtomic(t Type, address, v string) {
	if t == Bool {
		a.emitUnless(a.emitResult("setp.eq.s64", v, "0"), func() { a.store(t, address, v) })
		return
	}
	if t.Size() >= 4 {
		a.addAtomically(t, address, v)
		return
	}
	width := 8 * t.Size()
	word := a.emitResult("and.b64", address, "0xfffffffffffffffc")
	shift := a.emitResult("shl.b32", a.emitResult("cvt.u32.u64", a.emitResult("and.b64", address, "3")), "3")
	mask := a.emitResult("shl.b32", fmt.Sprint(1<<width-1), shift)
	rest := a.emitResult("not.b32", mask)
	seen, old, again := a.emitResult("ld.global.u32", "["+word+"]"), a.newRegister(4),
		a.emitResult("setp.eq.u32", "0", "0")
	a.emitWhile(func() string { return again }, func() {
		a.set(old, "mov.u32", seen)
		own := a.emitResult("shr.u32", old, shift)
		switch {
		case width == 16:
			own = a.emitResult("cvt.u16.u32", own)
		case t == Int8:
			own = a.emitResult("cvt.s32.s8", own)
		default:
			own = a.emitResult("and.b32", own, "255")
		}
		sum := a.toStored(t, a.emitResult(op("add", t.computeType()), a.toClass(t, own), v))
		if width == 16 {
			sum = a.emitResult("cvt.u32.u16", sum)
		}
		sum = a.emitResult("and.b32", a.emitResult("shl.b32", sum, shift), mask)
		a.set(seen, "atom.relaxed.sys.global.cas.b32", "["+word+"]", old,
			a.emitResult("or.b32", a.emitResult("and.b32", old, rest), sum))
		a.set(again, "setp.ne.u32", seen, old)
	})
}
