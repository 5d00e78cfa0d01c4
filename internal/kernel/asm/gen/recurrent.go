package main

import "github.com/mmcloughlin/avo/reg"

// writeRecurrents emits the elementwise part of an LSTM and GRU step, and its gradients. They
// exist in float32 only, because just gradient tests use float64.
func writeRecurrents(vectors []vector) {
	for _, v := range vectors {
		if v.single() {
			v.lstm()
			v.lstmBackward()
			v.gru()
			v.gruBackward()
		}
	}
}

func (v vector) lstm() {
	v.text("LSTM", "n int, in, keep, fresh, out, cell, next, state *F")
	v.doc("LSTM",
		"makes the sigmoids of in, keep and out and the hyperbolic tangent of fresh, in place, next keep·cell + "+
			"in·fresh, and state out·tanh(next).")
	v.flat([]string{"in", "keep", "fresh", "out", "cell", "next", "state"}, func(f *flat) {
		in, fresh := f.activate("in", v.sigmoid), f.activate("fresh", v.tanh)
		f.mul(in, fresh, fresh)
		f.fma231(f.activate("keep", v.sigmoid), f.read("cell"), fresh)
		f.write(fresh, "next")
		state := f.tanh(fresh)
		f.mul(f.activate("out", v.sigmoid), state, state)
		f.write(state, "state")
	})
	v.end()
}

// activate emits do for a parameter at the current position, in place, and returns the register
// of the result.
func (f *flat) activate(name string, do func(x reg.VecVirtual) reg.VecVirtual) reg.VecVirtual {
	x := do(f.read(name))
	f.write(x, name)
	return x
}

func (v vector) lstmBackward() {
	v.text("LSTMBackward", "n int, in, keep, fresh, out, cell, next, dstate, dcell *F")
	v.doc("LSTMBackward",
		"writes the gradients of LSTM's gates over in, keep, fresh and out, and the gradient of cell over dcell, "+
			"the gradient of next.")
	v.flat([]string{"in", "keep", "fresh", "out", "cell", "next", "dstate", "dcell"}, func(f *flat) {
		out, dh, dc := f.read("out"), f.read("dstate"), f.read("dcell")
		squashed := f.tanh(f.read("next"))
		along := f.fresh()
		f.mul(dh, out, along)
		f.mul(f.bend(squashed), along, along)
		f.add(along, dc, dc)
		f.mul(squashed, dh, dh)
		f.mul(f.bow(out), dh, dh)
		f.write(dh, "out")

		in, fresh, part := f.read("in"), f.read("fresh"), f.fresh()
		f.mul(dc, fresh, part)
		f.mul(f.bow(in), part, part)
		f.write(part, "in")
		f.mul(dc, in, in)
		f.mul(f.bend(fresh), in, in)
		f.write(in, "fresh")

		kept, old := f.read("keep"), f.read("cell")
		f.mul(dc, old, old)
		f.mul(f.bow(kept), old, old)
		f.write(old, "keep")
		f.mul(kept, dc, dc)
		f.write(dc, "dcell")
	})
	v.end()
}

// bow emits y·(1-y), the derivative of a sigmoid with the value y, in a new register, and
// returns it.
func (v vector) bow(y reg.VecVirtual) reg.VecVirtual {
	slope := v.fresh()
	v.move(y, slope)
	v.less231(y, y, slope)
	return slope
}

// bend emits 1 - y², the derivative of a hyperbolic tangent with the value y, in a new
// register, and returns it.
func (v vector) bend(y reg.VecVirtual) reg.VecVirtual {
	slope := v.fresh()
	v.move(v.constant(1), slope)
	v.less231(y, y, slope)
	return slope
}

func (v vector) gru() {
	v.text("GRU", "n int, xr, xz, xn, r, z, own, fresh, last, state *F")
	v.doc("GRU",
		"makes the sigmoids of r+xr and z+xz, in place of r and z, fresh tanh(xn + r·own), and state fresh + "+
			"z·(last-fresh).")
	v.flat([]string{"xr", "xz", "xn", "r", "z", "own", "fresh", "last", "state"}, func(f *flat) {
		sum := func(own, given string) reg.VecVirtual {
			x := f.read(own)
			f.add(f.read(given), x, x)
			x = f.sigmoid(x)
			f.write(x, own)
			return x
		}
		inner := f.read("xn")
		f.fma231(sum("r", "xr"), f.read("own"), inner)
		fresh := f.tanh(inner)
		f.write(fresh, "fresh")
		last := f.read("last")
		f.sub(fresh, last, last)
		f.fma231(sum("z", "xz"), last, fresh)
		f.write(fresh, "state")
	})
	v.end()
}

func (v vector) gruBackward() {
	v.text("GRUBackward", "n int, r, z, own, fresh, last, dr, dz, dn, dstate *F")
	v.doc("GRUBackward",
		"writes the gradients of GRU's gates to dr, dz and dn, the first two also over r and z, the gradient of "+
			"own over it, and the gradient of last over dstate, the gradient of state.")
	v.flat([]string{"r", "z", "own", "fresh", "last", "dr", "dz", "dn", "dstate"}, func(f *flat) {
		z, fresh, dh := f.read("z"), f.read("fresh"), f.read("dstate")
		part, rest := f.read("last"), f.fresh()
		f.sub(fresh, part, part)
		f.mul(dh, part, part)
		f.mul(f.bow(z), part, part)
		f.write(part, "dz")
		f.write(part, "z")
		f.move(dh, rest)
		f.less231(z, dh, rest) // dh·(1-z)
		f.mul(z, dh, dh)
		f.write(dh, "dstate")
		f.mul(f.bend(fresh), rest, rest)
		f.write(rest, "dn")

		r, own := f.read("r"), f.read("own")
		f.mul(rest, own, own)
		f.mul(f.bow(r), own, own)
		f.mul(r, rest, rest)
		f.write(rest, "own")
		f.write(own, "dr")
		f.write(own, "r")
	})
	v.end()
}
