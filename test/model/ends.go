package model

import (
	"fmt"
	"math/bits"
)

// The ends model: objects. Block 0 belongs to a message, 1 is a ring, 2 the token of the ring's
// sending end, and 3 a second ring, through which an end of the first may be sent. There are three
// workers and two reapers; one reaper may be killed. A lane does one thing at a time, but
// finalising nests: a freed ring drops its messages, a dropped message may free a token, and the
// token's finaliser notifies another ring.
//
// Parts that the lifetime model shows for a single message are coarser here: the blocks of a
// message are stamped, counted and cleared in one step each, a ring has one slot, and the owner
// bits of a block are read at once.

// Masks of the blocks of the ends model.
const (
	Msg = 1 << iota
	Ring
	Token
	Queue
)

const (
	endBlocks = 4
	depth     = 8 // maximum nesting of releases
	ringBlock = 1
	token     = 2
)

type endPC uint8

const (
	eIdle endPC = iota
	ePut
	ePutStamp
	ePutClaim
	ePutFull
	ePutClear
	ePutUndo
	eRecv
	eRecvWait
	eRecvAgain
	eGet
	eDrop
	eReapLook
	eReapSlots
	eReapWords
	eReapReading
	eReapStamps
	eReapWait
	eReapBits
	eReapEnd
	// steps of frames
	fRelease
	fTry
	fOwn
	fGone
	fHold
	fDrain
	fUnhold
	fImport
	fImportCheck
	fTell
	fFree
	fClear
	fAgain
	fTake
	fAcquire
	fStamp
	fEmpty
	fGot
)

// A frame is one level of a nested release in a thread's stack: the release of some blocks, the
// finalising of one, or a get from a ring.
type frame struct {
	pc   endPC
	b    uint8
	mask uint8
	keep bool // the get keeps its blocks
}

type endThread struct {
	process
	pc    endPC
	op    uint8
	seq   uint8
	sp    uint8
	count [endBlocks]uint8
	stack [depth]frame
}

type endSlot struct {
	state           slotState
	lane, from, seq uint8
	mask            uint8
}

type endWord struct {
	alloc   bool
	t, lane uint8
	kind    kind
	gone    bool // beside a FREE stamp: no holder is left, and finalising may take long
	own     uint8
}

type endState struct {
	w         [endBlocks]endWord
	q         [2]endSlot // of blocks 1 and 3
	noSenders bool       // in block 1
	bad       bool       // closed was reported too early, or a freed ring was written
	p         [threads]endThread
	r         recovery
	outer     recovery // the run that a nested pass interrupts
	nested    bool
	kills     toll
}

// An EndVerb is an operation of the ends model, such as a put into a ring.
type EndVerb uint8

// Verbs of the ends model. An operation on a block that the worker does not hold is skipped.
const (
	PutIn     EndVerb = iota // moves the blocks as one message into the ring
	CopyIn                   // the same, and keeps the blocks
	Receive                  // takes and drops messages until the ring has no sender
	TakeFrom                 // takes one message, if one may come, and keeps its blocks
	LetGo                    // releases the blocks
	endVerbsN = iota
)

// An EndOp is one line of a worker's program. Blocks is a bit mask of the blocks to put or
// release.
type EndOp struct {
	Do     EndVerb
	Ring   uint8 // mask of one ring
	Blocks uint8
}

// An Ends configures the ends model: freed blocks hold references to others. Kills limits the
// kills. Bug is a mutation that must be detected, or "".
type Ends struct {
	Holds    [workers]uint8 // blocks held at the start
	Programs [workers][]EndOp
	Kills    int
	Bug      string
}

// Mutations of the ends model.
const (
	NoHold       = "a finaliser does not hold the ring that it drains"
	NoSecondLook = "get does not look at the ring again after it saw NO_SENDERS"
	NoRefinal    = "the reaper frees a token without finalising it again"
	NoDrain      = "a ring is freed with its messages"
	TokenBlind   = "a token's finaliser does not import the ring"
	NoGone       = "a token's finaliser waits for the end of a ring that is gone"
	GoneEarly    = "GONE is set before it is known that nobody holds the block"
	FreeStays    = "a reaper takes a ring that somebody has stamped FREE for one that stays"
	FreeIsGone   = "a reaper takes a ring that somebody has stamped FREE for one that is gone"
	NoNestedPass = "a reaper that waits in a finaliser does not reap who has died meanwhile"
)

// Model returns the transition system of c, for [Explore].
func (c Ends) Model() Model[endState] {
	var s endState
	for b := range endBlocks {
		for i := range workers {
			if c.Holds[i]>>b&1 == 1 {
				s.w[b].alloc = true
				s.w[b].own |= 1 << i
				s.p[i].count[b] = 1
			}
		}
	}
	return Model[endState]{Init: s, Steps: c.steps, Events: c.kills, Check: c.check, Done: c.done}
}

func (c Ends) steps(s endState, emit func(endState)) {
	for i := range threads {
		if !c.enabled(&s, i) {
			continue
		}
		n := s
		if c.step(&n, i) {
			emit(n)
		}
	}
}

func (c Ends) kills(s endState, emit func(endState)) {
	for i := range closer {
		if n := s; c.enabled(&s, i) && n.kills.kill(&n.p[i].process, c.Kills) {
			n.lose(i)
			emit(n)
		}
	}
}

// lose discards the local state of participant i when it is killed.
func (s *endState) lose(i int) {
	s.p[i] = endThread{process: s.p[i].process, seq: s.p[i].seq}
	if i == second {
		s.r, s.outer, s.nested = recovery{}, recovery{}, false
	}
}

func (c Ends) enabled(s *endState, i int) bool {
	p := &s.p[i]
	switch {
	case !p.lives():
		return false
	case i < workers:
		return p.sp > 0 || int(p.op) < len(c.Programs[i])
	case i == closer && s.p[second].lives():
		return false
	}
	return p.pc != eIdle || s.unreaped() != 0
}

func (s *endState) unreaped() uint8 {
	return withLife(s.p[:], killed)
}

func (c Ends) step(s *endState, i int) bool {
	p := &s.p[i]
	switch {
	case p.sp > 0 && !(s.nested && i >= workers):
		return c.stepFrame(s, i)
	case i < workers:
		return c.work(s, i)
	}
	return c.reap(s, i)
}

// slotOf returns the slot of a ring, given the ring's block: 1 or 3.
func (s *endState) slotOf(ring uint8) *endSlot { return &s.q[ring>>1] }

// all reports whether f returns true for all blocks in mask.
func (s *endState) all(mask uint8, f func(*endWord) bool) bool {
	for ; mask != 0; mask &= mask - 1 {
		if !f(&s.w[bits.TrailingZeros8(mask)]) {
			return false
		}
	}
	return true
}

func unstamped(w *endWord) bool { return w.kind == nobody }

// each calls f for all blocks in mask.
func (s *endState) each(mask uint8, f func(*endWord)) {
	for ; mask != 0; mask &= mask - 1 {
		f(&s.w[bits.TrailingZeros8(mask)])
	}
}

func (w *endWord) clear()                   { w.lane, w.kind, w.gone = 0, nobody, false }
func (w *endWord) stamp(lane uint8, k kind) { w.lane, w.kind = lane, k }

func (p *endThread) holds(mask uint8) bool {
	for ; mask != 0; mask &= mask - 1 {
		if p.count[bits.TrailingZeros8(mask)] == 0 {
			return false
		}
	}
	return true
}

// work performs the next step in s of worker i's operation. It returns false if the step is not
// enabled.
func (c Ends) work(s *endState, i int) bool {
	p := &s.p[i]
	op := c.Programs[i][p.op]
	ring := uint8(bits.TrailingZeros8(op.Ring | 128))
	next := func() { p.op++; p.pc = eIdle }
	var sl *endSlot
	if op.Ring != 0 {
		sl = s.slotOf(ring)
	}
	switch p.pc {
	case eIdle:
		p.pc = [endVerbsN]endPC{ePut, ePut, eRecv, eGet, eDrop}[op.Do]
		if op.Do != LetGo && !p.holds(op.Ring|op.Blocks) {
			next()
		}
	case ePut:
		p.seq++
		p.pc = ePutStamp
	case ePutStamp:
		if !s.all(op.Blocks, unstamped) {
			return false
		}
		s.each(op.Blocks, func(w *endWord) { w.t++; w.stamp(lane(i), kPut) })
		p.pc = ePutClaim
	case ePutClaim:
		if sl.state != empty {
			p.pc = ePutUndo
			break
		}
		*sl = endSlot{state: writing, lane: lane(i)}
		p.pc = ePutFull
	case ePutFull:
		*sl = endSlot{state: full, lane: lane(i), from: lane(i), seq: p.seq, mask: op.Blocks}
		p.pc = ePutClear
	case ePutClear:
		s.each(op.Blocks, (*endWord).clear)
		next()
		if op.Do == PutIn {
			p.push(frame{pc: fRelease, mask: op.Blocks})
		}
	case ePutUndo:
		s.each(op.Blocks, func(w *endWord) { w.t--; w.clear() })
		next()
	case eRecv:
		switch sl.state {
		case full:
			p.push(frame{pc: fTake, b: ring})
		case empty:
			p.pc = eRecvWait
		default:
			return false
		}
	case eRecvWait: // the ring was empty: wait for a message or the end of all senders
		switch {
		case s.noSenders && c.Bug == NoSecondLook:
			c.closed(s)
			next()
		case s.noSenders:
			p.pc = eRecvAgain
		case sl.state == full:
			p.pc = eRecv
		default:
			return false
		}
	case eRecvAgain:
		if sl.state == full {
			p.pc = eRecv
			break
		}
		c.closed(s)
		next()
	case eGet:
		if sl.state == full {
			next()
			p.push(frame{pc: fTake, b: ring, keep: true})
			break
		}
		if c.coming(s, op.Ring) {
			return false
		}
		next()
	case eDrop:
		mask := op.Blocks
		for b := range endBlocks {
			if p.count[b] == 0 {
				mask &^= 1 << b
			}
		}
		next()
		p.push(frame{pc: fRelease, mask: mask})
	}
	return true
}

// closed is called when a receiver reports that the ring is closed. It sets s.bad if a message
// or a sender is left.
func (c Ends) closed(s *endState) {
	s.bad = s.bad || s.q[0].state == full || s.w[token].own != 0 || s.w[token].t != 0
}

// coming reports whether a message may still be put into the ring with this mask: a put is in
// progress, or the program of a living worker has one ahead.
func (c Ends) coming(s *endState, ring uint8) bool {
	if st := s.q[bits.TrailingZeros8(ring)>>1].state; st == writing || st == reading {
		return true
	}
	for i := range workers {
		for op := int(s.p[i].op); s.p[i].lives() && op < len(c.Programs[i]); op++ {
			if o := c.Programs[i][op]; (o.Do == PutIn || o.Do == CopyIn) && o.Ring == ring {
				return true
			}
		}
	}
	return false
}

// check requires that every block that is held or in a message is allocated.
func (c Ends) check(s *endState) error {
	if s.bad {
		return fmt.Errorf("closed was reported too early, or a freed ring was written")
	}
	for b := range endBlocks {
		w := &s.w[b]
		if w.t > 100 {
			return fmt.Errorf("transit count of block %d below 0", b)
		}
		for i := range s.q {
			if s.q[i].state == full && s.q[i].mask>>b&1 == 1 && (!w.alloc || w.t == 0) {
				return fmt.Errorf("use after free: ring %d carries block %d", i, b)
			}
		}
		for i := range workers {
			if s.p[i].lives() && s.p[i].sp == 0 && s.p[i].count[b] > 0 && !w.alloc {
				return fmt.Errorf("use after free: worker %d holds block %d", i, b)
			}
		}
	}
	return nil
}

func (c Ends) done(s *endState) error {
	for i := range threads {
		if s.p[i].life == killed || s.p[i].lives() && c.enabled(s, i) {
			return fmt.Errorf("stuck: participant %d", i)
		}
	}
	for b := range endBlocks {
		if s.w[b] != (endWord{}) {
			return fmt.Errorf("leak: block %d is %+v", b, s.w[b])
		}
	}
	return nil
}
