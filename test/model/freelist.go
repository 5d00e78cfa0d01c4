package model

import "fmt"

// The free list model: a Treiber stack of hints over the blocks. The state words of the blocks are
// authoritative. Three workers allocate and free, or punch: a punch stamps a free block for a
// moment. A worker sweeps if the hints were lost by a death. Participant 3 cannot be killed. It
// sweeps at the end if no worker has done so.
//
// Invariant: in a terminal state, every free block must be in the list exactly once.

const (
	listBlocks  = 2
	listWorkers = 3
)

type listPC uint8

const (
	lBegin listPC = iota
	lEpoch
	lReset
	lSweep
	lPunch
	lHead
	lNext
	lPop
	lUnlist
	lTake
	lFree
	lMark
	lTop
	lLink
	lPush
	lEnd
)

// A mark is the header word next of a block: epoch, listed flag, and the index + 1 of the next
// block.
type mark struct {
	epoch  uint8
	listed bool
	next   uint8
}

// A hints value tells whether free blocks may be missing from the list: none, some, or some
// until the current sweep ends.
type hints uint8

const (
	hintsKept hints = iota
	hintsLost
	hintsSweeping
)

// A top is the head of the list. idx is an index + 1, or 0 for an empty list.
type top struct{ epoch, tag, idx uint8 }

type listThread struct {
	process
	pc       listPC
	left     uint8 // rounds
	b, k     uint8 // current block; position of the sweep, or 0
	e        uint8 // epoch of the sweep
	h        top
	m, wrote mark // the mark as read, and as written by this thread
	holds    bool
}

type listState struct {
	owner [listBlocks]uint8 // participant + 1; 0 means FREE
	marks [listBlocks]mark
	head  top
	epoch uint8 // of the newest sweep
	lost  hints
	p     [listWorkers + 1]listThread
	kills toll
}

// A FreeList configures the free list model: workers allocate blocks from a stack of hints and
// list them again. Rounds is the number of rounds of each worker. Kills limits the kills. Bug is
// a mutation that must be detected, or "".
type FreeList struct {
	Rounds [listWorkers]uint8
	Punch  bool // the last worker punches
	Lost   bool // the hints are lost initially
	Kills  int
	Bug    string
}

// Mutations of the free list model.
const (
	NoEpoch    = "a sweep resets the head under the same epoch"
	OneBitTag  = "the tag of the head is one bit wide"
	UnlistAny  = "a popper clears listed whatever the mark is by now"
	HeadFirst  = "a push reads the head before the mark"
	LinkStore  = "a push stores next without comparing the mark"
	OwnMark    = "a push that has lost the head takes its own mark for another's"
	NoLostFlag = "the reaper does not declare the hints lost"
	ClearLoss  = "the end of a sweep clears the flag of a later loss"
	PunchQuiet = "a participant that has punched a block does not list it"
)

// Model returns the transition system of c, for [Explore]. Initially, all blocks are free and
// listed.
func (c FreeList) Model() Model[listState] {
	s := listState{}
	if c.Lost {
		s.lost = hintsLost
	}
	for b := range uint8(listBlocks) {
		s.marks[b] = mark{listed: true, next: b}
		s.head.idx = b + 1
	}
	for i := range listWorkers {
		s.p[i].left = c.Rounds[i]
	}
	return Model[listState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c FreeList) steps(s listState, emit func(listState)) {
	busy := false
	for i := range listWorkers {
		p := &s.p[i]
		n := s
		if p.life == killed {
			c.reap(&n, i)
			emit(n)
		} else if p.lives() && p.pc != lEnd {
			c.step(&n, i)
			emit(n)
		} else {
			continue
		}
		busy = true
	}
	p := &s.p[listWorkers]
	if p.pc != lBegin && p.pc != lEnd || !busy && s.lost == hintsLost {
		n := s
		c.step(&n, listWorkers)
		emit(n)
	}
}

func (c FreeList) events(s listState, emit func(listState)) {
	for i := range listWorkers {
		if n := s; s.p[i].pc != lEnd && n.kills.kill(&n.p[i].process, c.Kills) {
			n.p[i] = listThread{process: n.p[i].process}
			emit(n)
		}
	}
}

// reap frees the blocks of the dead worker i and its seat, and declares the hints lost, because
// the worker may have been about to list a block.
func (c FreeList) reap(s *listState, i int) {
	for b := range s.owner {
		if s.owner[b] == lane(i) {
			s.owner[b] = 0
		}
	}
	s.p[i].life = reaped
	if c.Bug != NoLostFlag {
		s.lost = hintsLost
	}
}

func (c FreeList) step(s *listState, i int) {
	p := &s.p[i]
	m := &s.marks[p.b]
	switch p.pc {
	case lBegin:
		c.begin(s, i)
	case lEpoch:
		s.epoch++
		p.e, p.pc = s.epoch, lReset
	case lReset:
		if s.head = (top{p.e, c.tag(s), 0}); c.Bug == NoEpoch {
			s.head.epoch = 0
		}
		p.e, p.k, p.pc = 0, 1, lSweep
	case lSweep:
		p.b = p.k - 1
		if p.pc = c.push(); s.owner[p.b] != 0 {
			c.pushed(s, p)
		}
	case lPunch:
		p.left = 0
		if p.pc = lBegin; s.owner[p.b] == 0 {
			s.owner[p.b], p.pc = lane(i), lFree
		}
	case lHead:
		p.h, p.pc = s.head, lNext
		if p.h.idx == 0 { // empty
			p.h, p.pc = top{}, lBegin
		}
	case lNext:
		p.b = p.h.idx - 1
		p.m, p.pc = s.marks[p.b], lPop
	case lPop:
		p.pc = lHead
		if s.head == p.h {
			s.head = top{p.h.epoch, c.tag(s), p.m.next}
			if p.pc = lTake; p.m.listed {
				p.pc = lUnlist
			}
		}
	case lUnlist:
		if p.pc = lTake; *m == p.m || c.Bug == UnlistAny {
			m.listed = false
		}
	case lTake:
		p.pc = lHead
		if s.owner[p.b] == 0 {
			s.owner[p.b] = lane(i)
			p.holds, p.h, p.m, p.pc = true, top{}, mark{}, lFree
		}
	case lFree:
		s.owner[p.b] = 0
		p.holds = false
		if p.pc = c.push(); c.Bug == PunchQuiet && c.punches(i) {
			c.pushed(s, p)
		}
	default:
		c.list(s, i)
	}
}

func (c FreeList) begin(s *listState, i int) {
	p := &s.p[i]
	switch {
	case s.lost == hintsLost:
		s.lost = hintsSweeping
		p.pc = lEpoch
	case p.left == 0:
		*p = listThread{pc: lEnd}
	case c.punches(i):
		p.pc = lPunch
	default:
		p.left--
		p.pc = lHead
	}
}

func (c FreeList) punches(i int) bool { return c.Punch && i == listWorkers-1 }

func (c FreeList) tag(s *listState) uint8 {
	if c.Bug == OneBitTag {
		return s.head.tag ^ 1
	}
	return s.head.tag + 1
}

// push returns the first step of listing a block, which depends on the mutation.
func (c FreeList) push() listPC {
	if c.Bug == HeadFirst {
		return lTop
	}
	return lMark
}

// list performs the next step in s of participant i, which lists block p.b. It must read the
// mark before the head, so that the mark is never from a newer epoch. The participant that
// changes the mark links the block.
func (c FreeList) list(s *listState, i int) {
	p := &s.p[i]
	m := &s.marks[p.b]
	switch p.pc {
	case lMark:
		p.m = *m
		if p.pc = lTop; c.Bug == HeadFirst {
			c.judge(s, p)
		}
	case lTop:
		p.h, p.pc = s.head, lMark
		if c.Bug != HeadFirst {
			c.judge(s, p)
		}
	case lLink:
		if p.pc = c.push(); *m == p.m || c.Bug == LinkStore {
			*m = mark{p.h.epoch, true, p.h.idx}
			p.wrote, p.pc = *m, lPush
		}
	case lPush:
		p.pc = c.push()
		if s.head == p.h {
			s.head = top{p.h.epoch, c.tag(s), p.b + 1}
			c.pushed(s, p)
		}
	}
}

// judge sets the next step of p: it skips the block if another participant has listed it or is
// about to.
func (c FreeList) judge(s *listState, p *listThread) {
	p.pc = lLink
	if p.m.listed && p.m.epoch == p.h.epoch && (p.m != p.wrote || c.Bug == OwnMark) {
		c.pushed(s, p)
	}
}

// pushed sets the next step of p after it has listed a block: it continues with the sweep or
// with the next round.
func (c FreeList) pushed(s *listState, p *listThread) {
	p.h, p.m, p.wrote, p.b = top{}, mark{}, mark{}, 0
	if p.k == 0 {
		p.pc = lBegin
		return
	}
	p.pc = lSweep
	if p.k++; p.k > listBlocks {
		p.k, p.pc = 0, lBegin
		if s.lost == hintsSweeping || c.Bug == ClearLoss {
			s.lost = hintsKept
		}
	}
}

func (c FreeList) check(s *listState) error {
	for i := range s.p {
		if p := &s.p[i]; p.holds && s.owner[p.b] != lane(i) {
			return fmt.Errorf("block %d has two owners", p.b)
		}
	}
	return nil
}

func (c FreeList) done(s *listState) error {
	var seen [listBlocks]bool
	for idx := s.head.idx; idx != 0; idx = s.marks[idx-1].next {
		if seen[idx-1] {
			return fmt.Errorf("the list is a circle")
		}
		seen[idx-1] = true
	}
	for b := range seen {
		if !seen[b] {
			return fmt.Errorf("block %d is free and not in the list", b)
		}
	}
	return nil
}
