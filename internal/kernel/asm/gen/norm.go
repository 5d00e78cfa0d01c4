package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"
)

// writeNorms emits the forward and backward loops over rows of a layer norm.
func writeNorms(vectors []vector) {
	for _, v := range vectors {
		v.centre()
		v.affine()
		v.normSums()
		v.normSlope()
	}
}

func (v vector) centre() {
	v.sums("Centre", "n int, shift F, x, y *F")
	v.doc("Centre", "writes x - shift to y, and returns its sum and the sum of its squares.")
	shift, sum, squares := v.scalar("shift"), v.fresh(), v.fresh()
	v.zero(sum)
	v.zero(squares)
	v.flat([]string{"x", "y"}, func(f *flat) {
		x := f.read("x")
		f.sub(shift, x, x)
		f.write(x, "y")
		if !f.whole {
			x = f.where(f.rest, x)
		}
		f.add(x, sum, sum)
		f.fma231(x, x, squares)
	})
	v.results(sum, squares)
	v.end()
}

// sums begins a function that returns two sums. params are as for text.
func (v vector) sums(name, params string) {
	TEXT(name+v.suffix, NOSPLIT, strings.ReplaceAll("func("+params+") (sum, other F)", "F", v.goType))
	Pragma("noescape")
}

// results emits the return of two sums, each over the lanes of a register.
func (v vector) results(sum, other reg.VecVirtual) {
	Store(v.added(sum), Return("sum"))
	Store(v.added(other), Return("other"))
}

func (v vector) affine() {
	v.text("Affine", "n int, alpha, beta F, w, b, y *F")
	v.doc("Affine", "makes y (alpha·y + beta)·w + b.")
	alpha, beta := v.scalar("alpha"), v.scalar("beta")
	v.flat([]string{"w", "b", "y"}, func(f *flat) {
		y, b := f.read("y"), f.read("b")
		f.fma213(beta, alpha, y)
		f.fma231(f.read("w"), y, b)
		f.write(b, "y")
	})
	v.end()
}

// readStandardized emits (x - shift)·scale + left for the parameter x at the current position,
// and returns its register.
func (f *flat) readStandardized(shift, scale, left reg.VecVirtual) reg.VecVirtual {
	x := f.read("x")
	f.sub(shift, x, x)
	f.fma213(left, scale, x)
	return x
}

func (v vector) normSums() {
	v.sums("NormSums", "n int, shift, scale, left F, x, dy, w, dw, db *F")
	v.doc("NormSums",
		"adds dy·y to dw, where y is (x - shift)·scale + left, and dy to db, and returns the sums of dy·w and "+
			"of dy·w·y.")
	shift, scale, left, sum, along := v.scalar("shift"), v.scalar("scale"), v.scalar("left"), v.fresh(), v.fresh()
	v.zero(sum)
	v.zero(along)
	v.flat([]string{"x", "dy", "w", "dw", "db"}, func(f *flat) {
		y, dy := f.readStandardized(shift, scale, left), f.read("dy")
		dw, db := f.read("dw"), f.read("db")
		f.fma231(y, dy, dw)
		f.write(dw, "dw")
		f.add(dy, db, db)
		f.write(db, "db")
		f.mul(f.read("w"), dy, dy) // 0 in unused lanes
		f.add(dy, sum, sum)
		if !f.whole {
			y = f.where(f.rest, y)
		}
		f.fma231(dy, y, along)
	})
	v.results(sum, along)
	v.end()
}

func (v vector) normSlope() {
	v.text("NormSlope", "n int, shift, scale, left, mean, along F, x, dy, w, dx *F")
	v.doc("NormSlope", "writes (dy·w - mean - along·y)·scale to dx, where y is (x - shift)·scale + left.")
	c := v.scalars([]string{"shift", "scale", "left", "mean", "along"})
	v.flat([]string{"x", "dy", "w", "dx"}, func(f *flat) {
		y, d := f.readStandardized(c["shift"], c["scale"], c["left"]), f.read("dy")
		f.mul(f.read("w"), d, d)
		f.sub(c["mean"], d, d)
		f.less231(c["along"], y, d)
		f.mul(c["scale"], d, d)
		f.write(d, "dx")
	})
	v.end()
}
