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
// have [BlockSize] threads; along x they cover the tiles of the product in row-major order, and
// along z the batch. The arguments are the numbers of rows and columns and the inner dimension; the
// addresses of the product, a and b; the strides in bytes of each along the batch, rows and
// columns; and beta, as float64. It returns false for Bool.
func MatMul(t Type) (Kernel, bool) {
	if t == Bool {
		return Kernel{}, false
	}
	return Kernel{Name: "MatMul " + string(t), entries: func() []*asm { return []*asm{matmul(t)} }}, true
}

// A matrix is an address, and the strides of rows and columns in bytes.
type matrix struct{ base, row, column string }

func (a *asm) element(m matrix, i, j string) string {
	at := a.do("mad.lo.s64", a.do("cvt.u64.u32", i), m.row, m.base)
	return a.do("mad.lo.s64", a.do("cvt.u64.u32", j), m.column, at)
}

func matmul(t Type) *asm {
	a := newAsm("matmul")
	class, size := t.class(), t.class().Size()
	rows, columns, depth := a.u32(), a.u32(), a.u32()
	bases := [3]string{a.u64(), a.u64(), a.u64()}
	var of [3]matrix
	batch := a.do("cvt.u64.u32", a.do("mov.u32", "%ctaid.z"))
	for i, base := range bases {
		of[i].base = a.do("mad.lo.s64", batch, a.u64(), base)
		of[i].row, of[i].column = a.u64(), a.u64()
	}
	beta := a.word("f64", a.arg(1))
	fmt.Fprintf(&a.shared, "\t.shared .align 16 .b8 sa[%d];\n\t.shared .align 16 .b8 sb[%[1]d];\n", Tile*tileDepth*size)
	sa, sb := a.do("mov.u64", "sa"), a.do("mov.u64", "sb")

	tid, block := a.do("mov.u32", "%tid.x"), a.do("mov.u32", "%ctaid.x")
	across := a.do("div.u32", a.do("add.u32", columns, fmt.Sprint(Tile-1)), fmt.Sprint(Tile))
	down := a.do("div.u32", block, across)
	top := a.do("mul.lo.u32", down, fmt.Sprint(Tile))
	left := a.do("mul.lo.u32", a.do("sub.u32", block, a.do("mul.lo.u32", down, across)), fmt.Sprint(Tile))
	ty := a.do("mul.lo.u32", a.do("shr.u32", tid, "4"), fmt.Sprint(perThread))
	tx := a.do("mul.lo.u32", a.do("and.b32", tid, "15"), fmt.Sprint(perThread))

	var sums [perThread][perThread]string
	for i := range sums {
		for j := range sums[i] {
			sums[i][j] = a.do("mov."+string(class), number(class, 0))
		}
	}
	a.loop("0", depth, fmt.Sprint(tileDepth), func(from string) {
		for e := range loads {
			n := a.do("add.u32", tid, fmt.Sprint(e*BlockSize))
			k, i := a.do("and.b32", n, fmt.Sprint(tileDepth-1)), a.do("div.u32", n, fmt.Sprint(tileDepth))
			a.fetch(t, of[1], a.do("add.u32", top, i), rows, a.do("add.u32", from, k), depth,
				a.at(sa, a.do("mad.lo.u32", k, fmt.Sprint(Tile), i), size))
			j := a.do("and.b32", n, fmt.Sprint(Tile-1))
			k = a.do("div.u32", n, fmt.Sprint(Tile))
			a.fetch(t, of[2], a.do("add.u32", from, k), depth, a.do("add.u32", left, j), columns,
				a.at(sb, a.do("mad.lo.u32", k, fmt.Sprint(Tile), j), size))
		}
		a.emit("bar.sync 0")
		pa, pb := a.at(sa, ty, size), a.at(sb, tx, size)
		a.loop("0", fmt.Sprint(tileDepth), "1", func(string) {
			var x, y [perThread]string
			for i := range perThread {
				x[i] = a.do("ld.shared."+string(class), fmt.Sprintf("[%s+%d]", pa, i*size))
				y[i] = a.do("ld.shared."+string(class), fmt.Sprintf("[%s+%d]", pb, i*size))
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
	again := a.do("setp.neu.f64", beta, c(0))
	factor := a.cast(class, Float64, beta)
	for i := range sums {
		row := a.do("add.u32", a.do("add.u32", top, ty), fmt.Sprint(i))
		for j := range sums[i] {
			column := a.do("add.u32", a.do("add.u32", left, tx), fmt.Sprint(j))
			a.when(a.do("and.pred", a.do("setp.lt.u32", row, rows), a.do("setp.lt.u32", column, columns)), func() {
				at := a.element(of[0], row, column)
				a.when(again, func() { a.set(sums[i][j], multiplyAdd(class), factor, a.load(t, at), sums[i][j]) })
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

// fetch copies an element of a matrix to shared memory, or 0 if it is outside of the matrix.
func (a *asm) fetch(t Type, m matrix, i, rows, j, columns, to string) {
	class := t.class()
	v := a.do("mov."+string(class), number(class, 0))
	a.when(a.do("and.pred", a.do("setp.lt.u32", i, rows), a.do("setp.lt.u32", j, columns)), func() {
		a.set(v, "mov."+string(class), a.load(t, a.element(m, i, j)))
	})
	a.emit("st.shared.%s [%s], %s", class, to, v)
}
