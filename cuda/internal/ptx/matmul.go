package ptx

import "fmt"

// Tile is the number of rows, and of columns, of the product that a block computes.
const Tile = 64

const (
	tileDepth = 16        // extent of the inner dimension in shared memory at a time
	perThread = Tile / 16 // rows, and columns, computed by a thread
	loads     = Tile * tileDepth / BlockSize
)

// MatMul returns the kernel of batched matrix products. It has one entry, "matmul". Blocks must
// have [BlockSize] threads; along x they cover the tiles of [Tile]×[Tile] elements of the product
// in row-major order, and along z the batch. The arguments are the numbers of rows and columns and
// the inner dimension; the addresses of the product, a and b; the strides in bytes along the batch,
// rows and columns, first the three of the product, then of a, then of b; and beta, as float64. It
// returns false for Bool.
func MatMul(t Type) (Kernel, bool) {
	if t == Bool {
		return Kernel{}, false
	}
	return Kernel{Name: "MatMul " + string(t), entries: func() []*asm { return []*asm{matmul(t)} }}, true
}

// A matrix is an address, and the strides of rows and columns in bytes.
type matrix struct{ base, row, column string }

func (a *asm) element(m matrix, i, j string) string {
	at := a.emitResult("mad.lo.s64", a.emitResult("cvt.u64.u32", i), m.row, m.base)
	return a.emitResult("mad.lo.s64", a.emitResult("cvt.u64.u32", j), m.column, at)
}

func matmul(t Type) *asm {
	a := newAsm("matmul")
	class, size := t.computeType(), t.computeType().Size()
	rows, columns, depth := a.loadU32(), a.loadU32(), a.loadU32()
	bases := [3]string{a.loadU64(), a.loadU64(), a.loadU64()}
	var of [3]matrix
	batch := a.emitResult("cvt.u64.u32", a.emitResult("mov.u32", "%ctaid.z"))
	for i, base := range bases {
		of[i].base = a.emitResult("mad.lo.s64", batch, a.loadU64(), base)
		of[i].row, of[i].column = a.loadU64(), a.loadU64()
	}
	beta := a.loadWord("f64", a.reserveArgs(1))
	fmt.Fprintf(&a.shared, "\t.shared .align 16 .b8 sa[%d];\n\t.shared .align 16 .b8 sb[%[1]d];\n", Tile*tileDepth*size)
	sa, sb := a.emitResult("mov.u64", "sa"), a.emitResult("mov.u64", "sb")

	tid, block := a.emitResult("mov.u32", "%tid.x"), a.emitResult("mov.u32", "%ctaid.x")
	across := a.emitResult("div.u32", a.emitResult("add.u32", columns, fmt.Sprint(Tile-1)), fmt.Sprint(Tile))
	down := a.emitResult("div.u32", block, across)
	top := a.emitResult("mul.lo.u32", down, fmt.Sprint(Tile))
	left := a.emitResult("mul.lo.u32", a.emitResult("sub.u32", block, a.emitResult("mul.lo.u32", down, across)),
		fmt.Sprint(Tile))
	ty := a.emitResult("mul.lo.u32", a.emitResult("shr.u32", tid, "4"), fmt.Sprint(perThread))
	tx := a.emitResult("mul.lo.u32", a.emitResult("and.b32", tid, "15"), fmt.Sprint(perThread))

	var sums [perThread][perThread]string
	for i := range sums {
		for j := range sums[i] {
			sums[i][j] = a.emitResult("mov."+string(class), formatConst(class, 0))
		}
	}
	a.emitLoop("0", depth, fmt.Sprint(tileDepth), func(from string) {
		for e := range loads {
			n := a.emitResult("add.u32", tid, fmt.Sprint(e*BlockSize))
			k, i := a.emitResult("and.b32", n, fmt.Sprint(tileDepth-1)),
				a.emitResult("div.u32", n, fmt.Sprint(tileDepth))
			a.fetch(t, of[1], a.emitResult("add.u32", top, i), rows, a.emitResult("add.u32", from, k), depth,
				a.elementAddress(sa, a.emitResult("mad.lo.u32", k, fmt.Sprint(Tile), i), size))
			j := a.emitResult("and.b32", n, fmt.Sprint(Tile-1))
			k = a.emitResult("div.u32", n, fmt.Sprint(Tile))
			a.fetch(t, of[2], a.emitResult("add.u32", from, k), depth, a.emitResult("add.u32", left, j), columns,
				a.elementAddress(sb, a.emitResult("mad.lo.u32", k, fmt.Sprint(Tile), j), size))
		}
		a.emit("bar.sync 0")
		pa, pb := a.elementAddress(sa, ty, size), a.elementAddress(sb, tx, size)
		a.emitLoop("0", fmt.Sprint(tileDepth), "1", func(string) {
			var x, y [perThread]string
			for i := range perThread {
				x[i] = a.emitResult("ld.shared."+string(class), fmt.Sprintf("[%s+%d]", pa, i*size))
				y[i] = a.emitResult("ld.shared."+string(class), fmt.Sprintf("[%s+%d]", pb, i*size))
			}
			for i := range sums {
				for j := range sums[i] {
					a.set(sums[i][j], multiplyAdd(class), x[i], y[j], sums[i][j])
				}
			}
			a.set(pa, "add.u64", pa, fmt.Sprint(Tile*size))
			a.set(pb, "add.u64", pb, fmt.Sprint(Tile*size))
		})
		a.emit("bar.sync 0")
	})
	again := a.emitResult("setp.neu.f64", beta, c(0))
	factor := a.cast(class, Float64, beta)
	for i := range sums {
		row := a.emitResult("add.u32", a.emitResult("add.u32", top, ty), fmt.Sprint(i))
		for j := range sums[i] {
			column := a.emitResult("add.u32", a.emitResult("add.u32", left, tx), fmt.Sprint(j))
			a.emitIf(a.emitResult("and.pred", a.emitResult("setp.lt.u32", row, rows),
				a.emitResult("setp.lt.u32", column, columns)), func() {
				at := a.element(of[0], row, column)
				a.emitIf(again, func() { a.set(sums[i][j], multiplyAdd(class), factor, a.load(t, at), sums[i][j]) })
				a.store(t, at, sums[i][j])
			})
		}
	}
	return a
}

func multiplyAdd(class Type) string {
	if class == Int64 {
		return "mad.lo.s64"
	}
	return op("fma", class)
}

// fetch copies element (i, j) of the matrix m, rows×columns of type t, to the address to in
// shared memory, converted to its class. It stores 0 if the element is outside of the matrix.
func (a *asm) fetch(t Type, m matrix, i, rows, j, columns, to string) {
	class := t.computeType()
	v := a.emitResult("mov."+string(class), formatConst(class, 0))
	a.emitIf(a.emitResult("and.pred", a.emitResult("setp.lt.u32", i, rows), a.emitResult("setp.lt.u32", j, columns)),
		func() {
			a.set(v, "mov."+string(class), a.load(t, a.element(m, i, j)))
		})
	a.emit("st.shared.%s [%s], %s", class, to, v)
}
