package ptx

import "math"

// Kernels of windows have one entry, "window", with one thread for each element of the output. The
// arguments are the number of these elements; the addresses of the output and the input and, for
// MaxPool, of the indices; the height and width of the image, of the array of window positions, of
// the window, of the step, and of the padding; and the reciprocals of the first eight of these
// numbers.

// Unfold returns the kernel of im2col.
func Unfold(t Type) Kernel { return windowKernel("Unfold", t, unfold) }

// Fold returns the kernel of col2im. It returns false for Bool.
func Fold(t Type) (Kernel, bool) { return windowKernel("Fold", t, fold), t != Bool }

// MaxPool returns the kernel of the maximum of each window and its index in the image.
func MaxPool(t Type) Kernel { return windowKernel("MaxPool", t, maxPool) }

func windowKernel(name string, t Type, write func(w *windowAsm, t Type)) Kernel {
	return Kernel{Name: name + " " + string(t), entries: func() []*asm {
		w := &windowAsm{asm: newAsm("window")}
		n := w.loadU32()
		w.out, w.in = w.loadU64(), w.loadU64()
		if name == "MaxPool" {
			w.whereTo = w.loadU64()
		}
		for i := range w.pairs {
			w.pairs[i] = [2]string{w.loadU32(), w.loadU32()}
		}
		w.reciprocals = map[string]string{}
		for _, pair := range w.pairs[:4] {
			for _, n := range pair {
				w.reciprocals[n] = w.loadU64()
			}
		}
		w.i = w.threadIndex()
		w.returnUnless(w.emitResult("setp.lt.u32", w.i, n))
		write(w, t)
		return []*asm{w.asm}
	}}
}

// A windowAsm generates a kernel of windows. i is the index of the thread's element of the
// output, and pairs are the pairs of numbers among the arguments.
type windowAsm struct {
	*asm
	out, in, whereTo, i string
	pairs               [5][2]string
	reciprocals         map[string]string
}

func (w *windowAsm) image() [2]string   { return w.pairs[0] }
func (w *windowAsm) places() [2]string  { return w.pairs[1] }
func (w *windowAsm) size() [2]string    { return w.pairs[2] }
func (w *windowAsm) step() [2]string    { return w.pairs[3] }
func (w *windowAsm) padding() [2]string { return w.pairs[4] }

// split returns the quotient and the remainder of n/by. by must be one of the numbers with a
// reciprocal among the arguments.
func (w *windowAsm) split(n, by string) (quotient, rest string) {
	quotient = w.emitQuotient(n, w.reciprocals[by])
	return quotient, w.emitResult("sub.u32", n, w.emitResult("mul.lo.u32", quotient, by))
}

// splitIndex splits the index n of an element into the number of its plane and the position in
// it. size is the height and width of a plane.
func (w *windowAsm) splitIndex(n string, size [2]string) (which, y, x string) {
	n, x = w.split(n, size[1])
	which, y = w.split(n, size[0])
	return which, y, x
}

// index returns the index of the element at row y and column x of plane number which. size is
// the height and width of a plane. It reverses splitIndex.
func (w *windowAsm) index(which, y, x string, size [2]string) string {
	return w.emitResult("mad.lo.u32", w.emitResult("mad.lo.u32", which, size[0], y), size[1], x)
}

// imagePosition returns the position in the image of element tap of the window at position
// place, and a predicate that is true if it is within the image. A negative coordinate wraps
// around to a large number.
func (w *windowAsm) imagePosition(place, tap [2]string) (at [2]string, within string) {
	var in [2]string
	for i := range at {
		at[i] = w.emitResult("sub.u32", w.emitResult("mad.lo.u32", place[i], w.step()[i], tap[i]), w.padding()[i])
		in[i] = w.emitResult("setp.lt.u32", at[i], w.image()[i])
	}
	return at, w.emitResult("and.pred", in[0], in[1])
}

func unfold(w *windowAsm, t Type) {
	n, py, px := w.splitIndex(w.i, w.places())
	plane, ky, kx := w.splitIndex(n, w.size())
	at, within := w.imagePosition([2]string{py, px}, [2]string{ky, kx})
	v := w.emitResult("mov."+selpType(t), "0")
	w.emitIf(within, func() {
		w.set(v, "mov."+selpType(t),
			w.load(t, w.elementAddress(w.in, w.index(plane, at[0], at[1], w.image()), t.Size())))
	})
	w.store(t, w.elementAddress(w.out, w.i, t.Size()), v)
}

// eachTap emits a loop that runs body for each element of a window.
func (w *windowAsm) eachTap(body func(ky, kx string)) {
	w.emitLoop("0", w.size()[0], "1", func(ky string) {
		w.emitLoop("0", w.size()[1], "1", func(kx string) { body(ky, kx) })
	})
}

func fold(w *windowAsm, t Type) {
	class := t.computeType()
	sum := w.emitResult("mov."+string(class), formatConst(class, 0))
	plane, y, x := w.splitIndex(w.i, w.image())
	w.eachTap(func(ky, kx string) {
		var place [2]string
		there := ""
		for i, pair := range [2][2]string{{y, ky}, {x, kx}} {
			from := w.emitResult("add.u32", pair[0], w.padding()[i])
			var rest string
			place[i], rest = w.split(w.emitResult("sub.u32", from, pair[1]), w.step()[i])
			for _, p := range []string{w.emitResult("setp.ge.u32", from, pair[1]), w.emitResult("setp.eq.u32", rest, "0"),
				w.emitResult("setp.lt.u32", place[i], w.places()[i])} {
				if there != "" {
					p = w.emitResult("and.pred", there, p)
				}
				there = p
			}
		}
		w.emitIf(there, func() {
			at := w.index(w.index(plane, ky, kx, w.size()), place[0], place[1], w.places())
			w.set(sum, op("add", class), sum, w.load(t, w.elementAddress(w.in, at, t.Size())))
		})
	})
	w.store(t, w.elementAddress(w.out, w.i, t.Size()), sum)
}

func maxPool(w *windowAsm, t Type) {
	r := indexReducer(t.computeType(), math.Inf(-1), "gt")
	state := []string{w.emitResult("mov."+string(r.state[0]), limitConst(r.state[0], r.first[0])),
		w.emitResult("mov.s64", limitConst(Int64, r.first[1]))}
	plane, py, px := w.splitIndex(w.i, w.places())
	w.eachTap(func(ky, kx string) {
		at, within := w.imagePosition([2]string{py, px}, [2]string{ky, kx})
		w.emitIf(within, func() {
			x := w.load(t, w.elementAddress(w.in, w.index(plane, at[0], at[1], w.image()), t.Size()))
			r.take(w.asm, state, x, w.emitResult("cvt.u64.u32", w.index("0", at[0], at[1], w.image())))
		})
	})
	w.store(t, w.elementAddress(w.out, w.i, t.Size()), state[0])
	w.store(Int64, w.elementAddress(w.whereTo, w.i, 8), state[1])
}
