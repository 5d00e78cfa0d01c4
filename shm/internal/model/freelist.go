package model

import "fmt"

// The free list model: a Treiber stack of hints over the blocks, whose state words are the truth. Three workers allocate and free; whoever finds the hints lost
// after a death sweeps. Participant 3 cannot be killed: it frees what the dead held, declares the hints lost, and sweeps at the end if nobody has.
// What must be true when nothing moves: every free block is in the list, once.

const (
	listBlocks  = 2
	listWorkers = 3
)

type listPC uint8

const (
	lBegin listPC = iota
	lReset
	lSweep
	lHead
	lNext
	lPop
	lUnlist
	lTake
	lFree
	lEpoch
	lMark
	lTop
	lLink
	lPush
	lEnd
)

// mark is a block's header word next: epoch, listed and the index + 1 of the next block.
type mark struct {
	epoch  uint8
	listed bool
	next   uint8
}

// top is the head of the list: idx is an index + 1.
type top struct{ epoch, tag, idx uint8 }

type listThread struct {
	life  life
	pc    listPC
	left  uint8 // rounds
	b, k  uint8 // the block at hand; the sweep's position, 0 outside
	e     uint8
	h     top
	holds bool
}

type listState struct {
	owner [listBlocks]uint8 // participant + 1, 0 is FREE
	marks [listBlocks]mark
	head  top
	lost  bool
	p     [listWorkers + 1]listThread
	kills uint8
}

// FreeList is a configuration of the free list model.
type FreeList struct {
	Rounds int // of each worker
	Kills  int
	Bug    string
}

// The mutations of the free list model.
const (
	NoEpoch    = "a sweep resets the head under the same epoch"
	OneBitTag  = "the tag of the head is one bit wide"
	UnlistAny  = "a popper clears listed whatever the epoch"
	MarkBack   = "a push marks a block with an epoch older than the mark's"
	LinkStore  = "a push stores next without comparing the mark"
	NoLostFlag = "the reaper does not declare the hints lost"
)

// Model returns the transition system of c: all blocks are free and listed.
func (c FreeList) Model() Model[listState] {
	var s listState
	for b := range uint8(listBlocks) {
		s.marks[b] = mark{listed: true, next: b}
		s.head.idx = b + 1
	}
	for i := range listWorkers {
		s.p[i].left = uint8(c.Rounds)
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
		} else if p.life == alive && p.pc != lEnd {
			c.step(&n, i)
			emit(n)
		} else {
			continue
		}
		busy = true
	}
	p := &s.p[listWorkers]
	if p.pc != lBegin && p.pc != lEnd || !busy && s.lost {
		n := s
		c.step(&n, listWorkers)
		emit(n)
	}
}

func (c FreeList) events(s listState, emit func(listState)) {
	for i := range listWorkers {
		if n := s; s.p[i].life == alive && s.p[i].pc != lEnd && int(s.kills) < c.Kills {
			n.p[i] = listThread{life: killed}
			n.kills++
			emit(n)
		}
	}
}

// reap frees what the dead worker held. Whether it was about to list it nobody knows.
func (c FreeList) reap(s *listState, i int) {
	for b := range s.owner {
		if s.owner[b] == lane(i) {
			s.owner[b] = 0
		}
	}
	s.p[i].life = reaped
	s.lost = c.Bug != NoLostFlag
}

func (c FreeList) step(s *listState, i int) {
	p := &s.p[i]
	m := &s.marks[p.b]
	switch p.pc {
	case lBegin:
		c.begin(s, i)
	case lReset:
		if s.head = (top{s.head.epoch + 1, c.tag(s), 0}); c.Bug == NoEpoch {
			s.head.epoch--
		}
		p.k = 1
		p.pc = lSweep
	case lSweep:
		p.b = p.k - 1
		if p.pc = lEpoch; s.owner[p.b] != 0 {
			p.pushed()
		}
	case lHead:
		p.h = s.head
		p.pc = lNext
		if p.h.idx == 0 { // dry
			p.h, p.pc = top{}, lBegin
		}
	case lNext:
		p.b = p.h.idx - 1
		p.e = s.marks[p.b].next
		p.pc = lPop
	case lPop:
		p.pc = lHead
		if s.head == p.h {
			s.head = top{p.h.epoch, c.tag(s), p.e}
			p.pc = lUnlist
		}
	case lUnlist:
		p.pc = lHead
		if m.listed && (m.epoch == p.h.epoch || c.Bug == UnlistAny) {
			m.listed, m.next = false, 0
			p.pc = lTake
		}
	case lTake:
		p.pc = lHead
		if s.owner[p.b] == 0 {
			s.owner[p.b] = lane(i)
			p.holds, p.h, p.e, p.pc = true, top{}, 0, lFree
		}
	case lFree:
		s.owner[p.b] = 0
		p.holds = false
		p.pc = lEpoch
	default:
		c.push(s, i)
	}
}

func (c FreeList) begin(s *listState, i int) {
	p := &s.p[i]
	switch {
	case s.lost:
		s.lost = false
		p.pc = lReset
	case p.left == 0:
		*p = listThread{pc: lEnd}
	default:
		p.left--
		p.pc = lHead
	}
}

func (c FreeList) tag(s *listState) uint8 {
	if c.Bug == OneBitTag {
		return s.head.tag ^ 1
	}
	return s.head.tag + 1
}

// push does a step of listing block p.b: who changes the mark links the block.
func (c FreeList) push(s *listState, i int) {
	p := &s.p[i]
	m := &s.marks[p.b]
	switch p.pc {
	case lEpoch:
		p.e = s.head.epoch
		p.pc = lMark
	case lMark:
		switch {
		case m.epoch == p.e && m.listed: // somebody else has listed it or is about to
			p.pushed()
		case int8(m.epoch-p.e) > 0 && c.Bug != MarkBack:
			p.pc = lEpoch
		default:
			*m = mark{epoch: p.e, listed: true}
			p.pc = lTop
		}
	case lTop:
		p.h = s.head
		if p.pc = lLink; p.h.epoch != p.e {
			p.h, p.pc = top{}, lEpoch
		}
	case lLink:
		p.pc = lPush
		switch {
		case m.epoch == p.e && m.listed || c.Bug == LinkStore:
			m.next = p.h.idx
		default:
			p.h, p.pc = top{}, lEpoch
		}
	case lPush:
		p.pc = lTop
		if s.head == p.h {
			s.head = top{p.e, c.tag(s), p.b + 1}
			p.pushed()
		}
	}
}

// pushed goes on with the sweep or with the next round.
func (p *listThread) pushed() {
	p.h, p.e, p.b = top{}, 0, 0
	if p.k == 0 {
		p.pc = lBegin
		return
	}
	p.pc = lSweep
	if p.k++; p.k > listBlocks {
		p.k, p.pc = 0, lBegin
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
