package arena

import (
	"cmp"
	"slices"
	"unsafe"
)

// A LockView is a lock, or another object by which processes synchronise.
type LockView struct {
	Block   string   `json:"block"`
	Names   []string `json:"names,omitempty"`
	Kind    string   `json:"kind"`              // mutex, recursive mutex, rwmutex, semaphore, cond, event or barrier
	Owner   int      `json:"owner"`             // process that has the lock; 0: it is free, or there is none
	Dead    bool     `json:"dead,omitempty"`    // the owner has died
	Lost    bool     `json:"lost,omitempty"`    // for ever, by the death of an owner
	Shares  []Share  `json:"shares"`            // readers, permits taken, waiters of a cond, members of a barrier
	Limit   int      `json:"limit,omitempty"`   // permits at first, or parties
	Permits int      `json:"permits,omitempty"` // that are to be had
	Set     bool     `json:"set,omitempty"`     // an event's flag
	Broken  bool     `json:"broken,omitempty"`  // a barrier
	Arrived int      `json:"arrived,omitempty"` // at a barrier, in this turn
	Turn    uint64   `json:"turn,omitempty"`    // a number that changes when a barrier opens, or an event is set
	Waiting []int    `json:"waiting"`           // processes that wait for it
	Drained []int    `json:"drained,omitempty"` // processes that wait for the readers to leave
	PIDs    []int    `json:"pids"`              // that hold it
}

// A Share is what one process has of a lock.
type Share struct {
	PID   int  `json:"pid"`
	Count int  `json:"count"`
	Dead  bool `json:"dead,omitempty"`
}

var formNames = map[Form]string{FormMutex: "mutex", FormRWMutex: "rwmutex", FormSemaphore: "semaphore",
	FormCond: "cond", FormEvent: "event", FormBarrier: "barrier"}

// lockNow reads the cell in a block whose word was w. It reports false if that is none, or not yet,
// or not any more.
func (d *Domain) lockNow(i uint32, b *block, w stateWord) (v LockView, ok bool) {
	p, ok := d.bytesNow(b)
	if !ok || len(p) < int(cellHead) {
		return v, false
	}
	c := (*cell)(unsafe.Pointer(&p[0]))
	form := Form(c.form.Load())
	if formNames[form] == "" || uint64(len(p)) < form.size() {
		return v, false
	}
	v = LockView{
		Block: makeHandle(i, w.generation()).String(), Kind: formNames[form], Shares: []Share{},
		Limit: int(min(c.limit.Load(), countMask)), Waiting: d.pidsIn(&c.waiting), PIDs: d.pidsIn(&b.own),
	}
	if form.size() > uint64(cellHead) {
		v.Shares = d.sharesNow(c)
	}
	state := c.state.Load()
	switch form {
	case FormMutex, FormRWMutex:
		lock := c.lock.Load()
		v.Lost = lock.state() == lockLost
		if lock.held() {
			v.Owner, v.Dead = lock.pid(), d.holderGone(lock)
		}
		if form == FormMutex && c.owner.Load() != 0 && c.depth.Load() != 0 {
			v.Kind = "recursive mutex"
		}
		if form == FormRWMutex {
			v.Drained = d.pidsIn(&c.watching)
		}
	case FormSemaphore:
		v.Permits = int(min(state>>permitShift, countMask))
	case FormCond:
		v.Waiting = d.ticketsNow(c, func(t uint64) bool { return uint32(t>>ticketShift) != uint32(t) })
	case FormEvent:
		v.Set, v.Turn, v.Waiting = state&1 != 0, state>>1, d.pidsIn(&c.watching)
	case FormBarrier:
		v.Broken, v.Arrived, v.Turn = state&barrierBroken != 0, arrived(state), turnOf(state)
		v.Waiting = d.ticketsNow(c, func(t uint64) bool { return t&countMask != 0 })
	}
	return v, w.same(b.w.Load())
}

// sharesNow lists what participants have of a cell.
func (d *Domain) sharesNow(c *cell) []Share {
	all := []Share{}
	for i := range d.seatsNow() {
		if v := c.shares[i].Load(); v&countMask != 0 {
			all = append(all, Share{PID: int(v >> idPIDShift), Count: int(v & countMask), Dead: d.gone(i, v)})
		}
	}
	return all
}

// ticketsNow lists the processes whose ticket word says that they wait, and that have a share.
func (d *Domain) ticketsNow(c *cell, waits func(uint64) bool) []int {
	all := []int{}
	for i := range d.seatsNow() {
		if v := c.shares[i].Load(); v&countMask != 0 && waits(c.tickets[i].Load()) && !d.gone(i, v) {
			all = append(all, int(v>>idPIDShift))
		}
	}
	return all
}

func (d *Domain) seatsNow() int { return int(min(d.hdr.lanes.Load(), maxParticipants)) }

// firstLocks returns those that an observer wants most, and how many it leaves out.
func firstLocks(all []LockView) ([]LockView, int) {
	rank := func(l LockView) int {
		return 2*min(len(l.Waiting)+len(l.Drained), 1) + min(l.Owner+len(l.Shares), 1)
	}
	slices.SortStableFunc(all, func(a, b LockView) int { return cmp.Compare(rank(b), rank(a)) })
	n := min(len(all), maxObserved)
	return all[:n], len(all) - n
}
