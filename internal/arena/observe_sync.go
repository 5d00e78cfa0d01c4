package arena

import (
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// viewLock reads the cell in block i. w is the state word that the caller has read. viewLock
// returns false if the block has no valid cell, or if it changed meanwhile.
func (d *Domain) viewLock(i uint32, b *layout.Block, w word.State) (v observe.LockView, ok bool) {
	p, ok := d.mem.BlockBytes(b)
	if !ok || len(p) < int(layout.CellHeadSize) {
		return v, false
	}
	c := (*layout.Cell)(unsafe.Pointer(&p[0]))
	form := Form(c.Form.Load())
	if layout.FormNames[form] == "" || uint64(len(p)) < form.Size() {
		return v, false
	}
	v = observe.LockView{
		Block: word.MakeHandle(i, w.Generation()).String(), Kind: layout.FormNames[form], Shares: []observe.Share{},
		Limit: int(min(c.Limit.Load(), word.CountMask)), Waiting: d.pidsIn(&c.Waiting), PIDs: d.pidsIn(&b.Own),
	}
	if form.Size() > uint64(layout.CellHeadSize) {
		v.Shares = d.listShares(c)
	}
	state := c.State.Load()
	switch form {
	case FormMutex, FormRWMutex:
		lock := c.Lock.Load()
		v.Lost = lock.State() == word.LockLost
		if lock.IsHeld() {
			v.Owner, v.Dead = lock.PID(), d.isHolderGone(lock)
		}
		if form == FormMutex && c.Owner.Load() != 0 && c.Depth.Load() != 0 {
			v.Kind = "recursive mutex"
		}
		if form == FormRWMutex {
			v.Drained = d.pidsIn(&c.Watching)
		}
	case FormSemaphore:
		v.Permits = int(min(state>>permitShift, word.CountMask))
	case FormCond:
		v.Waiting = d.listWaiters(c, func(t uint64) bool { return uint32(t>>ticketShift) != uint32(t) })
	case FormEvent:
		v.Set, v.Turn, v.Waiting = state&1 != 0, state>>1, d.pidsIn(&c.Watching)
	case FormBarrier:
		v.Broken, v.Arrived, v.Turn = state&barrierBroken != 0, arrivedCount(state), turnOf(state)
		v.Waiting = d.listWaiters(c, func(t uint64) bool { return t&word.CountMask != 0 })
	}
	return v, w.IsSameUse(b.State.Load())
}

// listShares lists the shares of a cell in the order of seats.
func (d *Domain) listShares(c *layout.Cell) []observe.Share {
	all := []observe.Share{}
	for i := range d.mem.CountSeats() {
		if v := c.Shares[i].Load(); v&word.CountMask != 0 {
			all = append(all, observe.Share{PID: int(v >> word.PIDShift), Count: int(v & word.CountMask),
				Dead: d.isGone(i, v)})
		}
	}
	return all
}

// listWaiters lists the living processes that have a share and a ticket word that satisfies waits.
func (d *Domain) listWaiters(c *layout.Cell, waits func(uint64) bool) []int {
	all := []int{}
	for i := range d.mem.CountSeats() {
		if v := c.Shares[i].Load(); v&word.CountMask != 0 && waits(c.Tickets[i].Load()) && !d.isGone(i, v) {
			all = append(all, int(v>>word.PIDShift))
		}
	}
	return all
}
