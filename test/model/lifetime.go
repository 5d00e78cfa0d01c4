package model

import "fmt"

// The lifetime model: two blocks with two owner words, a ring of two slots, three workers, and two
// reapers.
//
// Workers 0–2 each run a program and may be killed between any two steps. Participant 3 reaps and
// may be killed as well. Then participant 4, which cannot be killed, reaps all dead ones. At the
// end, participant 4 drains the ring. After that, nothing may be left.
//
// A load and a CAS that depends on that word alone are one step, because a failed CAS changes
// nothing and is retried. Ticket hints are read in a separate step, because the following CAS does
// not check them.

const (
	workers = 3
	second  = workers     // the reaper that may be killed
	closer  = workers + 1 // the reaper that cannot be killed, and that drains the ring at the end
	threads = workers + 2
	slots   = 2
	blocks  = 2
)

type kind uint8

const (
	nobody kind = iota
	kAlloc
	kPut
	kGet
	kFree
)

// A word is the state word of a block. lane is the participant + 1: each participant has one
// lane.
type word struct {
	alloc      bool
	gen, t     uint8
	lane       uint8
	kind       kind
	generation uint8 // ghost: increments when gen wraps
}

func (w *word) stamp(lane uint8, k kind) { w.lane, w.kind = lane, k }
func (w *word) clear()                   { w.lane, w.kind = 0, nobody }

type slotState uint8

const (
	empty slotState = iota
	writing
	full
	reading
	skip
)

type slot struct {
	state     slotState
	lap       uint8
	lane      uint8 // the lane in the word
	from, seq uint8 // the evidence in the body
	mask      uint8 // the blocks
	gens      [blocks]uint8
}

type thread struct {
	process
	op    uint8
	pc    pc
	block uint8
	mask  uint8 // remaining blocks
	h     uint8 // ticket
	seq   uint8 // opseq of the lane
	own   bool  // an owner word read under a FREE stamp was not 0
	saw   uint8 // the t beside the stamp that the get must replace
	count [blocks]uint8
	gens  [blocks]uint8 // generations of the counted blocks
}

// A recovery is the local state of the running reaper. It is lost when the reaper is killed.
type recovery struct {
	set   uint8 // participants of this run
	pub   uint8 // lanes with a published current put
	pass  uint8 // lanes that were skipped
	waits uint8 // blocks on which the reaper waits
	views uint8 // ends model: the rings that the dead keep
	k     uint8
}

type lifeState struct {
	w          [blocks]word
	own        [blocks][2]uint8 // participant p has its bit in word p%2
	q          [slots]slot
	head, tail uint8
	p          [threads]thread
	r          recovery
	side       uint8 // side channel: 0 empty, 1 handle sent, 2 confirmed, 3 refused
	sideGen    uint8
	kills      toll
	ends       uint8 // canceled puts
}

// An Op is one line of a worker's program. Blocks is a bit mask.
type Op struct {
	Do     Verb
	Blocks uint8
}

// A Verb is an operation of the lifetime model, such as [Put] or [Release].
type Verb uint8

// Verbs of a worker's program. An operation on a block that the worker does not hold is skipped.
const (
	Alloc   Verb = iota // a block by number, if it is free
	Take                // the same without a stamp: own bit first
	Put                 // puts a copy of the reference
	Move                // puts and gives up the reference
	Get                 // gets, or continues if the ring is empty
	Release             // releases all references to the blocks
	Send                // sends a handle by a side channel and holds it until it is confirmed
	Import              // imports a handle from the side channel
	drain               // gets and releases until the ring is empty
)

// Programs are the programs of the three workers.
type Programs [workers][]Op

// A Lifetime configures the lifetime model: the reference counts of blocks, and messages that
// carry blocks. Kills limits the kills.
type Lifetime struct {
	Programs Programs
	Kills    int
	Peek     bool   // release reads own first and stops if the block has another holder
	NoSkip   bool   // the reaper turns WRITING(dead) into EMPTY of the next lap, not into SKIP
	AnySeq   bool   // get replaces its sender's stamp without a check of the sender's opseq
	Ends     int    // puts canceled while they wait for a stamp; gets then release their blocks
	Reuse    bool   // a reaped seat gets a new participant, which continues with the program
	Bug      string // a mutation, or ""
}

// Mutations of the lifetime model. Each removes one rule.
const (
	AcquireAfter    = "get sets the own bit after t-1"
	NoRecheck       = "try-free does not read own again after clearing its stamp"
	NoFreeze        = "try-free reads own before it stamps, and frees without reading again"
	AlwaysUndo      = "the reaper takes back every put, published or not"
	NeverUndo       = "the reaper takes back no put"
	NarrowOpseq     = "opseq is one bit wide"
	NoPutWait       = "get does not wait for the xo of the producer"
	ClearBeforeFull = "put clears xo before FULL"
	NoDrop          = "the reaper empties a slot READING(dead) without t-1"
	ClearPassed     = "step 6 clears the GET stamps of a lane that step 5 passed over"
	WaitInStep5     = "step 5 waits for an xo instead of passing over"
	DeafReaper      = "a reaper that waits does not look at the death epoch"
	BitsFirst       = "step 7 runs before step 4"
	NoReaperFree    = "step 7 does not try-free"
	ImportBlind     = "import does not look for a FREE stamp"
	DropAll         = "the reaper takes t-1 also for blocks that the dead reader had done"
	OpseqReset      = "a new participant begins with opseq 0"
	ReuseEarly      = "a seat is reused before step 7 is done for it"
	HelpAnyLap      = "get passes a slot in READING that is of the lap before"
	TakeCounted     = "get takes the place of its sender's stamp at any t"
	ClearTaken      = "put clears xo after the reader has taken its place"
	ReapTaken       = "the reaper clears xo of a put after the reader has taken its place"
	DropEarly       = "a move drops the own bit before it claims a slot, and a full ring does not bring it back"
	AnyOrder        = "a worker stamps blocks in descending order"
	EndStamped      = "a put that gives up leaves the count of what it has stamped"
	LateUnheld      = "a get that has let go of a block takes t-1 without holding it again"
	TakeUnowned     = "a block is taken without a stamp before the own bit is set"
	TakeForgets     = "a lane that has not got the block it wanted takes its bit back without try-free"
)

// Model returns the transition system of c, for [Explore].
func (c Lifetime) Model() Model[lifeState] {
	var s lifeState
	for i := range workers {
		s.p[i].op = 255
		c.advance(&s, i)
	}
	return Model[lifeState]{Init: s, Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c Lifetime) steps(s lifeState, emit func(lifeState)) {
	for i := range threads {
		if !s.p[i].lives() || !c.enabled(&s, i) {
			continue
		}
		n := s
		if c.step(&n, i) {
			emit(n)
		}
	}
}

// events emits the states after a death, a canceled context, and a release of a block by the
// caller of a get that still waits for the block.
func (c Lifetime) events(s lifeState, emit func(lifeState)) {
	c.kills(s, emit)
	for i := range workers {
		if n := s; c.Ends > 0 && s.p[i].lives() && c.enabled(&s, i) && c.giveUp(&n, i) {
			emit(n)
		}
	}
}

func (c Lifetime) kills(s lifeState, emit func(lifeState)) {
	for i := range closer {
		if n := s; c.enabled(&s, i) && n.kills.kill(&n.p[i].process, c.Kills) {
			n.lose(i)
			emit(n)
		}
	}
}

// lose discards the local state of participant i when it is killed.
func (s *lifeState) lose(i int) {
	s.p[i] = thread{process: s.p[i].process, seq: s.p[i].seq, op: s.p[i].op}
	if i == second {
		s.r = recovery{}
	}
}

// enabled reports whether participant i has work to do in s.
func (c Lifetime) enabled(s *lifeState, i int) bool {
	p := &s.p[i]
	switch {
	case i < workers:
		return int(p.op) < len(c.Programs[i])
	case p.pc != 0:
		return true
	case s.unreaped() != 0:
		return i == second || !s.p[second].lives()
	case i == second:
		return false
	}
	return p.op == 0 && c.workersDone(s)
}

func (c Lifetime) workersDone(s *lifeState) bool {
	for i := range workers {
		if s.p[i].lives() && int(s.p[i].op) < len(c.Programs[i]) {
			return false
		}
	}
	return s.p[second].pc == 0
}

// unreaped returns the dead participants that are not reaped, as a bit set.
func (s *lifeState) unreaped() uint8 {
	return withLife(s.p[:], killed)
}

// advance ends the operation of participant i and moves to the next one that it can perform with
// its blocks.
func (c Lifetime) advance(s *lifeState, i int) {
	p := &s.p[i]
	p.pc, p.block, p.mask, p.h, p.own, p.saw = 0, 0, 0, 0, false, 0
	if i >= workers {
		return
	}
	for p.op++; int(p.op) < len(c.Programs[i]); p.op++ {
		op := c.Programs[i][p.op]
		p.mask = op.Blocks
		p.pc = begin[op.Do]
		switch op.Do {
		case Put, Move, Send:
			if p.held()&op.Blocks == op.Blocks {
				return
			}
		case Take:
			if p.mask &^= p.held(); p.mask != 0 {
				return
			}
		case Release:
			if p.mask = p.held() & op.Blocks; p.mask != 0 {
				return
			}
		default:
			return
		}
	}
	p.pc, p.mask = 0, 0
}

func (p *thread) held() (mask uint8) {
	for b := range blocks {
		if p.count[b] > 0 {
			mask |= 1 << b
		}
	}
	return mask
}

// check requires that every block that a participant counts as held, or that a full slot carries,
// is allocated and has the same generation.
func (c Lifetime) check(s *lifeState) error {
	for i := range threads {
		for b := range blocks {
			p := &s.p[i]
			if p.lives() && p.count[b] > 0 && p.gens[b] != tentative && !s.w[b].is(p.gens[b]) {
				return fmt.Errorf("use after free: participant %d holds block %d", i, b)
			}
		}
	}
	for i := range slots {
		for b := range blocks {
			q := &s.q[i]
			if q.state == full && q.mask>>b&1 == 1 && (!s.w[b].is(q.gens[b]) || s.w[b].t == 0) {
				return fmt.Errorf("use after free: slot %d carries block %d", i, b)
			}
		}
	}
	for b := range blocks {
		if s.w[b].t > 100 {
			return fmt.Errorf("transit count of block %d below 0", b)
		}
	}
	return nil
}

// tentative is the generation of a block that is counted but not confirmed.
const tentative = 255

func (w *word) is(generation uint8) bool { return w.alloc && w.generation == generation }

// done requires that no participant waits, all dead ones are reaped, and nothing is left.
func (c Lifetime) done(s *lifeState) error {
	if !c.workersDone(s) || s.p[closer].op == 0 || s.unreaped() != 0 {
		return fmt.Errorf("stuck")
	}
	for b := range blocks {
		if w := s.w[b]; w.alloc || w.t != 0 || w.kind != nobody {
			return fmt.Errorf("leak: block %d is %+v", b, w)
		}
	}
	for i := range slots {
		if st := s.q[i].state; st != empty && st != skip {
			return fmt.Errorf("leak: slot %d", i)
		}
	}
	if s.own != [blocks][2]uint8{} {
		return fmt.Errorf("leak: owner bits %b", s.own)
	}
	return nil
}
