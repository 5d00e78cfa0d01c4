package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/shoal-mp/shoal/internal/kernel/asm/gen/neon"
)

// tileHeights returns the number of rows of the tallest tile of each width, from one register
// on; 0 means that there are no such tiles. Wide tiles have few rows, but enough accumulators
// to hide the latency of FMA. In float64 the widest tile has a single row, and there is no tile
// of three registers, because two tiles can cover them.
func (v vector) tileHeights() []int {
	few := 1
	if v.neon {
		return []int{v.rows, v.rows / 2, 0, v.few}
	}
	if v.single() {
		few = v.few
	}
	return []int{v.rows, v.rows, 0, few}
}

// writeTiles emits the tiles of all heights and widths.
func writeTiles(vectors []vector) {
	for _, v := range vectors {
		for i, most := range v.tileHeights() {
			for rows := 1; rows <= most; rows++ {
				v.tile(rows, i+1)
			}
		}
	}
}

// count formats a number of things, such as 1 row or 2 rows.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

// tile emits the function for a part of a product that fits into registers:
//
//	c[i·ldc + j] = alpha · sum over l of a[i·rsa + l·csa] · b[off[l] + j]   + c[i·ldc + j] if add
//
// for all rows i, and j up to the width of the given number of registers. Only n lanes of the
// last register are used. k must be at least 1.
func (v vector) tile(rows, vecs int) {
	name := fmt.Sprintf("Tile%dx%d", rows, vecs)
	v.text(name, "k int, a *F, rsa, csa int, b *F, off *int, c *F, ldc, n int, alpha F, add bool")
	Doc(fmt.Sprintf("%s%s computes c = alpha·a·b, or adds it to c if add is true, for %s of %s each. "+
		"a has strides rsa and csa, row l of b begins at off[l], and rows of c are ldc apart. "+
		"n is the number of columns in the last register. k must be at least 1; see [Tile].", name, v.suffix,
		count(rows, "row"),
		count(vecs, "register")))
	last := v.first(pointer("n"))
	v.prefetch(rows, vecs)
	k, a, csa, b, off := pointer("k"), pointer("a"), v.loadByteCount("csa"), pointer("b"), pointer("off")
	at := places(rows, a, v.loadByteCount("rsa"))
	acc := make([][]reg.VecVirtual, rows)
	for i := range acc {
		for range vecs {
			x := v.fresh()
			v.zero(x)
			acc[i] = append(acc[i], x)
		}
	}

	if v.neon {
		v.tileSums(acc, neon.Tile{K: k, A: a, RSA: v.loadByteCount("rsa"), CSA: csa, B: b, Off: off, N: pointer("n")})
	} else {
		v.tileLoops(rows, vecs, acc, at, k, a, csa, b, off, last)
	}

	alpha := v.scalar("alpha")
	c, ldc := pointer("c"), v.loadByteCount("ldc")
	add := Load(Param("add"), GP8())
	TESTB(add, add)
	JZ(LabelRef("set"))
	v.eachOf(acc, twin(c), ldc, func(x reg.VecVirtual, to Mem, whole bool) {
		old := v.fresh()
		if whole {
			v.move(to, old)
		} else {
			v.load(to, last, old)
		}
		v.fma213(old, alpha, x)
	})
	JMP(LabelRef("store"))
	Label("set")
	for _, sums := range acc {
		for _, x := range sums {
			v.mul(alpha, x, x)
		}
	}
	Label("store")
	v.eachOf(acc, c, ldc, func(x reg.VecVirtual, to Mem, whole bool) {
		if whole {
			v.move(x, to)
		} else {
			v.store(x, last, to)
		}
	})
	v.end()
}

// tileLoops emits the loops over k that compute the sums of a tile in acc. at are the addresses
// of the rows of a, and last is the mask of the last register. It overwrites the registers of
// a, k and off.
func (v vector) tileLoops(rows, vecs int, acc [][]reg.VecVirtual, at []Mem, k, a, csa, b, off reg.GPVirtual,
	last mask) {
	// k counts up to 0 from the end of off, so one register is both index and counter
	LEAQ(Mem{Base: off, Index: k, Scale: 8}, off)
	NEGQ(k)
	sum := func(label string, load func(from Mem, x reg.VecVirtual)) {
		Label(label)
		row := GP64()
		MOVQ(Mem{Base: off, Index: k, Scale: 8}, row)
		bs := make([]reg.VecVirtual, vecs)
		for j := range bs {
			bs[j] = v.fresh()
			from := Mem{Base: b, Index: row, Scale: uint8(v.size), Disp: j * v.bytes()}
			if j == vecs-1 {
				load(from, bs[j])
			} else {
				v.move(from, bs[j])
			}
		}
		if v.tall(rows) {
			v.ahead(rows, vecs, a, b, row)
		}
		for i := range acc {
			factor := v.fresh()
			v.broadcast(at[i], factor)
			for j := range bs {
				v.fma231(factor, bs[j], acc[i][j])
			}
		}
		ADDQ(csa, a)
		INCQ(k)
		JNZ(LabelRef(label))
	}
	if v.tall(rows) { // a masked load costs as much as another multiplication
		n := pointer("n")
		CMPQ(n, I32(int32(v.lanes)))
		JNE(LabelRef("loop"))
		sum("whole", func(from Mem, x reg.VecVirtual) { v.move(from, x) })
		JMP(LabelRef("done"))
	}
	sum("loop", func(from Mem, x reg.VecVirtual) { v.load(from, last, x) })
	Label("done")
}

// prefetch emits requests for the rows of the result before a long sum, because they are
// accessed only at its end.
func (v vector) prefetch(rows, vecs int) {
	k := pointer("k")
	CMPQ(k, Imm(64))
	JL(LabelRef("short"))
	c, ldc := pointer("c"), v.loadByteCount("ldc")
	for i := range rows {
		for j := range vecs {
			PREFETCHT0(Mem{Base: c, Disp: j * v.bytes()})
		}
		if i < rows-1 {
			ADDQ(ldc, c)
		}
	}
	Label("short")
}

// tall reports whether a tile has so many rows that it does most of the work of a large product.
func (v vector) tall(rows int) bool { return 2*rows > v.rows }

// ahead emits prefetches of the packed factors, which are contiguous, from the second-level
// cache a few iterations early. row is the offset of the current row of b.
func (v vector) ahead(rows, vecs int, a, b, row reg.GPVirtual) {
	const line, distance, steps = 64, 1024, 4
	for at := 0; at < rows*v.size; at += line {
		PREFETCHT0(Mem{Base: a, Disp: distance + at})
	}
	width := vecs * v.bytes()
	for at := 0; at < width; at += line {
		PREFETCHT0(Mem{Base: b, Index: row, Scale: uint8(v.size), Disp: steps*width + at})
	}
}

// eachOf calls do for each accumulator with its address in the result. whole reports whether
// all lanes are used. It emits code that overwrites c.
func (v vector) eachOf(acc [][]reg.VecVirtual, c, ldc reg.GPVirtual, do func(x reg.VecVirtual, to Mem, whole bool)) {
	for i, sums := range acc {
		for j, x := range sums {
			do(x, Mem{Base: c, Disp: j * v.bytes()}, j < len(sums)-1)
		}
		if i < len(acc)-1 {
			ADDQ(ldc, c)
		}
	}
}

// places returns the addresses of the rows of a, which are distance bytes apart. It emits odd
// multiples of the distance: a register with one serves the rows at 1, 2, 4 and 8 times this
// multiple.
func places(rows int, a, distance reg.GPVirtual) []Mem {
	odd := map[int]reg.GPVirtual{1: distance}
	at := []Mem{{Base: a}}
	for i := 1; i < rows; i++ {
		factor, scale := i, 1
		for factor%2 == 0 && scale < 8 {
			factor, scale = factor/2, 2*scale
		}
		if odd[factor] == nil {
			odd[factor] = GP64()
			LEAQ(Mem{Base: odd[factor-2], Index: distance, Scale: 2}, odd[factor])
		}
		at = append(at, Mem{Base: a, Index: odd[factor], Scale: uint8(scale)})
	}
	return at
}
