package neon

import (
	"fmt"

	"github.com/mmcloughlin/avo/reg"
)

// Tile is a part of a product that fits into registers: Rows rows of Pairs pairs of registers.
type Tile struct {
	Size, Rows, Pairs int // size of a number in bytes

	// registers of avo: the parameters of asm.Tile, the strides in bytes
	K, A, RSA, CSA, B, Off, N reg.Register
	// Sums is the pair of registers for the sums of each row and column.
	Sums [][]reg.Register
}

// factorLoader emits the loads of the numbers of a column of A, and calls multiply with each:
// the number is in the given lane of factor.
type factorLoader func(c *Code, multiply func(row int, factor Value, lane int))

// Sum emits the loops over K that compute the sums. The code before it must have set the sums
// to zero. If the rows of A are adjacent, they are loaded together, and an instruction
// multiplies by one lane. Otherwise each number is loaded by itself. N is the number of columns
// of B in the last pair of registers. If they fill the pair, the loop loads it without a mask.
func (t *Tile) Sum(c *Code) {
	size := fmt.Sprint(t.Size)
	lanes := fmt.Sprint(32 / t.Size)
	apart, done, some, apartSome := c.local("apart"), c.local("done"), c.local("some"), c.local("apartsome")
	rsa, n := c.Register(t.RSA), c.Register(t.N)
	c.effect("CMP $"+size+", R@0", rsa)
	c.Branch("BNE", apart)
	c.effect("CMP $"+lanes+", R@0", n)
	c.Branch("BNE", some)
	t.loop(c, done, t.loadAdjacent, false)
	c.Label(some)
	t.loop(c, done, t.loadAdjacent, true)
	c.Label(apart)
	places := t.rowStrides(c)
	distant := func(c *Code, multiply func(row int, factor Value, lane int)) { t.loadDistant(c, places, multiply) }
	c.effect("CMP $"+lanes+", R@0", n)
	c.Branch("BNE", apartSome)
	t.loop(c, done, distant, false)
	c.Label(apartSome)
	t.loop(c, done, distant, true)
	c.Label(done)
}

// loop emits one loop, and a jump to the label done. factors emits the loads of the numbers of
// A, and calls multiply for each row. If some is set, the last pair of B is loaded with the
// mask N.
func (t *Tile) loop(c *Code, done string, factors factorLoader, some bool) {
	again := c.local("sum")
	k, a, off := c.Register(t.K), c.Register(t.A), c.Register(t.Off)
	c.Label(again)
	row, at := c.General(), c.General()
	c.access("MOVD @m, R@0", off, 1, 0, 8, []Value{row, off}, 1, 0)
	c.set("ADD $8, R@1, R@0", off, off)
	c.addScaled(at, c.Register(t.B), row, t.Size)
	load := func(j int) (low, high Value) {
		if some && j == t.Pairs-1 {
			return c.loadFirst(t.Size, at, 32*j, c.Register(t.N))
		}
		return c.LoadPair(at, 32*j)
	}
	if t.Rows <= 4 { // the registers can hold the numbers of A, but not of B
		t.byColumn(c, factors, load)
	} else {
		t.byRow(c, factors, load)
	}
	c.set("ADD R@2, R@1, R@0", a, a, c.Register(t.CSA))
	c.set("SUBS $1, R@1, R@0", k, k).effect = true
	c.Branch("BNE", again)
	c.Branch("B", done)
}

// byRow emits the multiplications row by row, with all numbers of B in registers. load must
// emit the load of pair j of B.
func (t *Tile) byRow(c *Code, factors factorLoader, load func(j int) (low, high Value)) {
	b := make([]Value, 2*t.Pairs)
	for j := range t.Pairs {
		b[2*j], b[2*j+1] = load(j)
	}
	factors(c, func(row int, factor Value, lane int) {
		for j, sum := range t.Sums[row] {
			c.fusedLane(t.Size, lane, c.Low(sum), b[2*j], factor)
			c.fusedLane(t.Size, lane, c.High(sum), b[2*j+1], factor)
		}
	})
}

// byColumn emits the multiplications pair by pair of B, with all numbers of A in registers.
// load must emit the load of pair j of B.
func (t *Tile) byColumn(c *Code, factors factorLoader, load func(j int) (low, high Value)) {
	type number struct {
		factor Value
		lane   int
	}
	var all []number
	factors(c, func(_ int, factor Value, lane int) { all = append(all, number{factor, lane}) })
	for j := range t.Pairs {
		low, high := load(j)
		for row, n := range all {
			sum := t.Sums[row][j]
			c.fusedLane(t.Size, n.lane, c.Low(sum), low, n.factor)
			c.fusedLane(t.Size, n.lane, c.High(sum), high, n.factor)
		}
	}
}

// loadAdjacent is the [factorLoader] that loads the numbers of a column of A as whole
// registers.
func (t *Tile) loadAdjacent(c *Code, multiply func(row int, factor Value, lane int)) {
	a := c.Register(t.A)
	for done := 0; done < t.Rows; {
		var factors []Value
		bytes := (t.Rows - done) * t.Size
		step := 4
		switch {
		case bytes >= 32:
			low, high := c.LoadPair(a, done*t.Size)
			factors, step = []Value{low, high}, 32
		case bytes >= 16:
			factors, step = []Value{c.Load(a, done*t.Size, 16)}, 16
		case bytes >= 8:
			factors, step = []Value{c.Load(a, done*t.Size, 8)}, 8
		default:
			factors = []Value{c.Load(a, done*t.Size, 4)}
		}
		lanes := 16 / t.Size
		for i := range step / t.Size {
			multiply(done+i, factors[i/lanes], i%lanes)
		}
		done += step / t.Size
	}
}

// rowStrides emits the distances of the rows of A but the first from the first one, in bytes,
// and returns the registers.
func (t *Tile) rowStrides(c *Code) (all []Value) {
	rsa := c.Register(t.RSA)
	for i := 1; i < t.Rows; i++ {
		at := rsa
		if i > 1 {
			at = c.General()
			c.set("ADD R@2, R@1, R@0", at, all[i-2], rsa)
		}
		all = append(all, at)
	}
	return all
}

// loadDistant emits the loads of the numbers of a column of A one by one. places are the
// registers of [Tile.rowStrides].
func (t *Tile) loadDistant(c *Code, places []Value, multiply func(row int, factor Value, lane int)) {
	a := c.Register(t.A)
	name := map[int]string{4: "FMOVS", 8: "FMOVD"}[t.Size]
	for i := range t.Rows {
		v := c.Vector()
		if i == 0 {
			c.LoadTo(v, a, 0, t.Size)
		} else {
			c.set(name+" (R@1)(R@2), F@0", v, a, places[i-1])
		}
		multiply(i, v, 0)
	}
}
