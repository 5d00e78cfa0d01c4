package arena

import (
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/observe"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// formNames has the kinds of a [LockView].
var formNames = map[Form]string{FormMutex: "mutex", FormRWMutex: "rwmutex", FormSemaphore: "semaphore",
	FormCond: "cond", FormEvent: "event", FormBarrier: "barrier"}

// viewLock reads the cell in block i. w is the state word that the caller has read. viewLock
// returns false if the block has no valid cell, or if it changed meanwhile.
func (d *Domain) viewLock(i uint32, b *block, w word.State) (v observe.LockView, ok bool) {
	p, ok := d.peekBytes(b)
	if !ok || len(p) < int(cellHead) {
		return v, false
	}
	c := (*cell)(unsafe.Pointer(&p[0]))
	form := Form(c.form.Load())
	if formNames[form] == "" || uint64(len(p)) < form.size() {
		return v, false
	}
	v = observe.LockView{
		Block: word.MakeHandle(i, w.Generation()).String(), Kind: formNames[form], Shares: []observe.Share{},
		Limit: int(min(c.limit.Load(), word.CountMask)), Waiting: d.pidsIn(&c.waiting), PIDs: d.pidsIn(&b.own),
	}
	if form.size() > uint64(cellHead) {
		v.Shares = d.listShares(c)
	}
	state := c.state.Load()
	switch form {
	case FormMutex, FormRWMutex:
		lock := c.lock.Load()
		v.Lost = lock.State() == word.LockLost
		if lock.IsHeld() {
			v.Owner, v.Dead = lock.PID(), d.isHolderGone(lock)
		}
		if form == FormMutex && c.owner.Load() != 0 && c.depth.Load() != 0 {
			v.Kind = "recursive mutex"
		}
		if form == FormRWMutex {
			v.Drained = d.pidsIn(&c.watching)
		}
	case FormSemaphore:
		v.Permits = int(min(state>>permitShift, word.CountMask))
	case FormCond:
		v.Waiting = d.listWaiters(c, func(t uint64) bool { return uint32(t>>ticketShift) != uint32(t) })
	case FormEvent:
		v.Set, v.Turn, v.Waiting = state&1 != 0, state>>1, d.pidsIn(&c.watching)
	case FormBarrier:
		v.Broken, v.Arrived, v.Turn = state&barrierBroken != 0, arrivedCount(state), turnOf(state)
		v.Waiting = d.listWaiters(c, func(t uint64) bool { return t&word.CountMask != 0 })
	}
	return v, w.IsSameUse(b.w.Load())
}

// listShares lists the shares of a cell in the order of seats.
func (d *Domain) listShares(c *cell) []observe.Share {
	all := []observe.Share{}
	for i := range d.usedSeats() {
		if v := c.shares[i].Load(); v&word.CountMask != 0 {
			all = append(all, observe.Share{PID: int(v >> word.PIDShift), Count: int(v & word.CountMask),
				Dead: d.isGone(i, v)})
		}
	}
	return all
}

// listWaiters lists the living processes that have a share and a ticket word that satisfies waits.
func (d *Domain) listWaiters(c *cell, waits func(uint64) bool) []int {
	all := []int{}
	for i := range d.usedSeats() {
		if v := c.shares[i].Load(); v&word.CountMask != 0 && waits(c.tickets[i].Load()) && !d.isGone(i, v) {
			all = append(all, int(v>>word.PIDShift))
		}
	}
	return all
}

// usedSeats returns an upper bound of the seats ever taken, exclusive.
func (d *Domain) usedSeats() int { return int(min(d.hdr.lanes.Load(), word.MaxParticipants)) }
