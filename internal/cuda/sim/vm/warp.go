package vm

import "math/bits"

const lanes = 32

// A mask is a set of lanes.
type mask uint32

// A row holds a register of all lanes.
type row [lanes]uint64

// A warp is a group of up to 32 threads that run in lockstep where possible. A thread is a lane
// of it.
type warp struct {
	*block
	rows   []row
	pc     [lanes]int
	all    mask // the last warp of a block may have fewer lanes
	live   mask // lanes that have not exited
	parked mask // lanes that wait at a barrier
	recent Region
}

func (w *warp) registerRow(i, lane int) uint64 {
	if i < 0 {
		return 0
	}
	return w.rows[i][lane]
}

// run executes instructions until each lane has exited or waits at a barrier. It panics with a
// [*Fault] after an illegal operation.
func (w *warp) run() {
	for w.live&^w.parked != 0 {
		w.runGroup()
	}
}

// runGroup executes the lanes with the lowest program counter, up to the next branch or up to the
// program counter of other lanes. It panics with a [*Fault] after an illegal operation.
func (w *warp) runGroup() {
	pc, end, at := len(w.entry.code), len(w.entry.code), mask(0)
	for left := w.live &^ w.parked; left != 0; left &= left - 1 {
		lane := bits.TrailingZeros32(uint32(left))
		switch here := w.pc[lane]; {
		case here < pc:
			pc, end, at = here, pc, 1<<lane
		case here == pc:
			at |= 1 << lane
		default:
			end = min(end, here)
		}
	}
	for ; pc < end; pc++ {
		in := &w.entry.code[pc]
		on := at
		if in.guard >= 0 {
			on &= w.activeLanes(in)
		}
		switch in.kind {
		case computes:
			w.executeCompute(in, on)
		case loads:
			for left := on; left != 0; left &= left - 1 {
				w.load(in, bits.TrailingZeros32(uint32(left)))
			}
		case stores:
			for left := on; left != 0; left &= left - 1 {
				w.store(in, bits.TrailingZeros32(uint32(left)))
			}
		case updates:
			for left := on; left != 0; left &= left - 1 {
				w.update(in, bits.TrailingZeros32(uint32(left)))
			}
		case jumps:
			w.moveLanes(at&^on, pc+1)
			w.moveLanes(on, in.target)
			return
		case exits:
			w.live &^= on
		case waits:
			if on != w.live {
				panic(&Fault{Entry: w.entry.Name, Line: in.line, Kind: PartedBarrier})
			}
			w.parked |= on
		}
		if in.kind >= exits {
			w.moveLanes(at, pc+1)
			return
		}
	}
	w.moveLanes(at, pc)
}

func (w *warp) moveLanes(who mask, to int) {
	for ; who != 0; who &= who - 1 {
		w.pc[bits.TrailingZeros32(uint32(who))] = to
	}
}

// activeLanes returns the lanes for which the guard of in permits the instruction.
func (w *warp) activeLanes(in *instruction) (m mask) {
	for lane, v := range &w.rows[in.guard] {
		m |= mask(v&1) << lane
	}
	if in.unless {
		m = ^m
	}
	return m
}

// executeCompute executes an instruction on registers for the lanes in on. Unused operands may
// refer to any row.
func (w *warp) executeCompute(in *instruction, on mask) {
	d, a, b, c := &w.rows[in.d], &w.rows[in.a], &w.rows[max(in.b, 0)], &w.rows[max(in.c, 0)]
	f := in.f
	if on == ^mask(0) {
		for lane := range d {
			d[lane] = f(a[lane], b[lane], c[lane])
		}
		return
	}
	for ; on != 0; on &= on - 1 {
		lane := bits.TrailingZeros32(uint32(on))
		d[lane] = f(a[lane], b[lane], c[lane])
	}
}
