package model

import (
	"fmt"
	"math/bits"
)

// The board model: names. Blocks 0 and 1 may become the board. Names are bound to blocks 2 and 3. A
// board has two slots. Three workers bind, look up and unlink. There are two reapers; one of them
// may be killed.
//
// Parts that the lifetime model covers are coarser here: a block is allocated in one step, a get
// does not take over from its sender, and the reaper handles one slot or one block per step.

const (
	boards     = 2
	boardSlots = 2
	boardWords = boards + 2
)

type boardPC uint8

const (
	dBegin boardPC = iota
	dHeader
	dImport
	dImportCheck
	dMake
	dPublish
	dGo
	dStamp
	dScan
	dClaim
	dFull
	dClear
	dUndo
	dDone
	dFind
	dHold
	dCheck
	dHeld
	dTake
	dTakeOwn
	dTakeStamp
	dEmpty
	dTakeClear
	dEnd
	// steps of freeing
	dTry
	dOwn
	dAgain
	// steps of the reaper
	dReapSlots
	dReapWords
	dReapReading
	dReapGets
	dReapWait
	dReapBits
	dReapFree
)

type boardSlot struct {
	state           slotState
	lap, lane       uint8
	from, seq       uint8
	name, data, own uint8 // own: 1 + index of the board if the message carries it
}

type boardWord struct {
	alloc        bool
	gen, t, lane uint8
	kind         kind
	own          uint8
}

func (w *boardWord) stamp(lane uint8, k kind) { w.lane, w.kind = lane, k }
func (w *boardWord) clear()                   { w.lane, w.kind = 0, nobody }

type boardThread struct {
	process
	pc         boardPC
	op, seq    uint8
	board, gen uint8 // 1 + index, generation: as read from the header
	made       uint8 // 1 + index
	k          uint8
	at, lap    uint8
	data       uint8
	count      [boardWords]uint8
	let        uint8   // blocks to release
	free       uint8   // 1 + index of the block that may be free
	fpc        boardPC // step of its freeing
	set, pub   uint8   // reaper: participants to reap, and those with published puts
	waits      bool    // reaper: blocked by a living lane
}

type boardState struct {
	w          [boardWords]boardWord
	q          [boards][boardSlots]boardSlot
	board, gen uint8 // the header word
	bad        bool
	p          [threads]boardThread
	kills      toll
}

// A NameVerb is an operation of the board model: bind, look up or unlink a name.
type NameVerb uint8

// Verbs of the board model.
const (
	BindName   NameVerb = iota // binds a new block, which is released afterwards
	LookUp                     // looks a name up and holds the block for a while
	UnlinkName                 // unlinks a name and releases the block
)

// A NameOp is one line of a worker's program: the operation, and the numbers of the name and of
// the block.
type NameOp struct {
	Do         NameVerb
	Name, Data uint8 // Data: 0 or 1, the block to bind
}

// A Board configures the board model: workers bind names, look them up and unlink them. Kills
// limits the kills. Bug is a mutation that must be detected, or "".
type Board struct {
	Programs  [workers][]NameOp
	DataFirst bool // the board has a higher index than the data blocks
	Kills     int
	Bug       string
}

// Mutations of the board model.
const (
	NoSelf      = "a name's message does not carry the board"
	ScanFirst   = "bind looks for the name before its stamp stands on the board"
	PeekBlind   = "look up does not look at the slot again after it has set its bit"
	NoLap       = "look up compares the state of the slot and not its lap"
	HeaderStore = "a new board is stored in the header, whatever stands there"
	NoBoardGen  = "the board's generation is not compared"
	BoardUnheld = "bind does not hold the board"
	BoardNoSkip = "the reaper leaves slots that the dead were writing"
)

// Model returns the transition system of c, for [Explore].
func (c Board) Model() Model[boardState] {
	return Model[boardState]{Steps: c.steps, Events: c.events, Check: c.check, Done: c.done}
}

func (c Board) steps(s boardState, emit func(boardState)) {
	for i := range threads {
		if n := s; c.enabled(&s, i) && c.step(&n, i) {
			emit(n)
		}
	}
}

func (c Board) events(s boardState, emit func(boardState)) {
	for i := range closer {
		if n := s; c.enabled(&s, i) && n.kills.kill(&n.p[i].process, c.Kills) {
			n.p[i] = boardThread{process: n.p[i].process, seq: s.p[i].seq}
			emit(n)
		}
	}
}

func (c Board) enabled(s *boardState, i int) bool {
	switch p := &s.p[i]; {
	case !p.lives():
		return false
	case i < workers:
		return int(p.op) < len(c.Programs[i])
	case i == closer && s.p[second].lives():
		return false
	default:
		return p.pc != dBegin || s.unreaped() != 0
	}
}

func (s *boardState) unreaped() uint8 {
	return withLife(s.p[:], killed)
}

func (c Board) step(s *boardState, i int) bool {
	p := &s.p[i]
	switch {
	case p.free != 0:
		return c.tryFree(s, i)
	case p.let != 0:
		b := bits.TrailingZeros8(p.let)
		p.let &^= 1 << b
		if p.count[b]--; p.count[b] == 0 {
			s.w[b].own &^= 1 << i
			p.free, p.fpc = uint8(b)+1, dTry
		}
		return true
	case i >= workers:
		return c.reap(s, i)
	case p.pc < dFind || p.pc == dEnd:
		return c.bind(s, i)
	}
	return c.lookUpName(s, i)
}

// order returns the blocks of a message in the order of stamping. board is the index + 1 of the
// board, data the index of the block that the message binds.
func (c Board) order(board, data uint8) []uint8 {
	switch {
	case c.Bug == NoSelf:
		return []uint8{data}
	case c.DataFirst:
		return []uint8{data, board - 1}
	}
	return []uint8{board - 1, data}
}

// bind performs a step in s of worker i that is common to all operations, or a step of a bind.
// It returns false if the step is not enabled.
func (c Board) bind(s *boardState, i int) bool {
	p, me := &s.p[i], uint8(1)<<i
	op := c.Programs[i][p.op]
	data := op.Data + boards
	goTo := func(pc boardPC) { p.k, p.pc = 0, pc }
	var q *[boardSlots]boardSlot
	if p.board != 0 {
		q = &s.q[p.board-1]
	}
	switch p.pc {
	case dBegin:
		goTo(dHeader)
		if w := &s.w[data]; op.Do == BindName {
			if w.alloc || w.kind != nobody {
				goTo(dEnd) // the block still has a name
				break
			}
			w.alloc = true
			w.own |= me
			p.count[data]++
		}
	case dHeader:
		p.board, p.gen = s.board, s.gen
		switch {
		case p.board != 0:
			goTo(dImport)
		case op.Do == BindName:
			goTo(dMake)
		default:
			goTo(dEnd)
		}
	case dImport:
		p.count[p.board-1]++
		s.w[p.board-1].own |= me
		goTo(dImportCheck)
	case dImportCheck:
		w := &s.w[p.board-1]
		switch {
		case w.kind == kFree:
			return false
		case w.alloc && (w.gen == p.gen || c.Bug == NoBoardGen):
			p.gen = 0
			goTo(dGo)
		default:
			p.let = 1 << (p.board - 1)
			if goTo(dEnd); op.Do == BindName {
				goTo(dMake)
			}
		}
	case dMake:
		for b := range boards {
			if w := &s.w[b]; !w.alloc && w.kind == nobody {
				w.alloc = true
				w.own |= me
				p.count[b]++
				p.made = uint8(b) + 1
				goTo(dPublish)
				return true
			}
		}
		return false
	case dPublish:
		if s.board == p.board && s.gen == p.gen || c.Bug == HeaderStore {
			p.board, p.gen = p.made, s.w[p.made-1].gen
			s.board, s.gen = p.board, p.gen
			p.gen = 0
			goTo(dGo)
		} else {
			p.let = 1 << (p.made - 1)
			goTo(dHeader)
		}
		p.made = 0
	case dGo:
		if op.Do != BindName {
			goTo(dFind)
			break
		}
		p.seq++
		if goTo(dStamp); c.Bug == ScanFirst {
			goTo(dScan)
		}
		if c.Bug == BoardUnheld {
			p.let = 1 << (p.board - 1)
		}
	case dStamp:
		order := c.order(p.board, data)
		w := &s.w[order[p.k]]
		if w.kind != nobody {
			return false
		}
		s.bad = s.bad || !w.alloc
		w.t++
		w.stamp(lane(i), kPut)
		if p.k++; int(p.k) == len(order) {
			if goTo(dScan); c.Bug == ScanFirst {
				goTo(dClaim)
			}
		}
	case dScan:
		if sl := q[p.k]; sl.state == full && sl.name == op.Name {
			if goTo(dUndo); c.Bug == ScanFirst {
				goTo(dDone)
			}
			break
		}
		if p.k++; p.k == boardSlots {
			if goTo(dClaim); c.Bug == ScanFirst {
				goTo(dStamp)
			}
		}
	case dClaim:
		if sl := &q[p.k]; sl.state == empty || sl.state == skip {
			*sl = boardSlot{state: writing, lap: sl.lap, lane: lane(i)}
			p.at = p.k
			goTo(dFull)
			break
		}
		if p.k++; p.k == boardSlots {
			goTo(dUndo)
		}
	case dFull:
		q[p.at] = boardSlot{state: full, lap: q[p.at].lap, from: lane(i), seq: p.seq, name: op.Name,
			data: data, own: p.board}
		p.at = 0
		goTo(dClear)
	case dClear, dUndo:
		order := c.order(p.board, data)
		w := &s.w[order[p.k]]
		if p.pc == dUndo {
			w.t--
		}
		if p.pc == dUndo || w.kind == kPut && w.lane == lane(i) {
			w.clear()
		}
		if p.k++; int(p.k) == len(order) {
			goTo(dDone)
		}
	case dDone:
		p.let = 1 << data
		if c.Bug != BoardUnheld {
			p.let |= 1 << (p.board - 1)
		}
		goTo(dEnd)
	case dEnd: // unused fields must be 0, so that states are equal
		*p = boardThread{op: p.op + 1, seq: p.seq, count: p.count}
	}
	return true
}

// lookUpName performs a step in s of worker i that looks up or unlinks a name. It returns false if
// the step is not enabled.
func (c Board) lookUpName(s *boardState, i int) bool {
	p, me := &s.p[i], uint8(1)<<i
	op := c.Programs[i][p.op]
	sl := &s.q[p.board-1][p.at]
	goTo := func(pc boardPC) { p.k, p.pc = 0, pc }
	switch p.pc {
	case dFind:
		if f := s.q[p.board-1][p.k]; f.state == full && f.name == op.Name {
			p.at, p.lap, p.data = p.k, f.lap, f.data
			if goTo(dHold); op.Do == UnlinkName {
				goTo(dTake)
			}
			break
		}
		if p.k++; p.k == boardSlots {
			p.let = 1 << (p.board - 1)
			goTo(dEnd)
		}
	case dHold:
		p.count[p.data]++
		s.w[p.data].own |= me
		if goTo(dCheck); c.Bug == PeekBlind {
			goTo(dHeld)
		}
	case dCheck:
		if sl.state == full && (sl.lap == p.lap || c.Bug == NoLap) {
			goTo(dHeld)
			break
		}
		p.let = 1 << p.data
		p.at, p.lap, p.data = 0, 0, 0
		goTo(dFind)
	case dHeld:
		p.let = 1<<p.data | 1<<(p.board-1)
		p.at, p.lap, p.data = 0, 0, 0
		goTo(dEnd)
	case dTake:
		if goTo(dTakeOwn); sl.state == full && sl.lap == p.lap {
			sl.state, sl.lane, sl.name = reading, lane(i), 0
		} else {
			p.at, p.data = 0, 0
			goTo(dFind)
		}
		p.lap = 0
	case dTakeOwn:
		for _, b := range c.order(p.board, p.data) {
			p.count[b]++
			s.w[b].own |= me
		}
		goTo(dTakeStamp)
	case dTakeStamp:
		order := c.order(p.board, p.data)
		w := &s.w[order[p.k]]
		if w.kind != nobody {
			return false
		}
		w.t--
		w.stamp(lane(i), kGet)
		if p.k++; int(p.k) == len(order) {
			goTo(dEmpty)
		}
	case dEmpty:
		*sl = boardSlot{lap: sl.lap + 1}
		p.at = 0
		goTo(dTakeClear)
	case dTakeClear:
		order := c.order(p.board, p.data)
		s.w[order[p.k]].clear()
		if p.k++; int(p.k) == len(order) {
			if c.Bug != NoSelf {
				p.count[p.board-1]-- // held twice
			}
			p.let = 1<<p.data | 1<<(p.board-1)
			p.data = 0
			goTo(dEnd)
		}
	}
	return true
}

func (c Board) tryFree(s *boardState, i int) bool {
	p := &s.p[i]
	w := &s.w[p.free-1]
	switch p.fpc {
	case dTry:
		if !w.alloc || w.t != 0 || w.kind != nobody || w.own != 0 {
			p.free = 0
			break
		}
		w.stamp(lane(i), kFree)
		p.fpc = dOwn
	case dOwn:
		if w.own != 0 {
			w.clear()
			p.fpc = dAgain
			break
		}
		s.release(p.free - 1)
		p.free = 0
	case dAgain:
		if p.fpc = dTry; w.own != 0 {
			p.free = 0
		}
	}
	return true
}

// release is the CAS that frees block b. It sets s.bad if b is a board with a message left.
func (s *boardState) release(b uint8) {
	s.w[b] = boardWord{gen: s.w[b].gen + 1}
	if b >= boards {
		return
	}
	for _, sl := range s.q[b] {
		s.bad = s.bad || sl.state == full || sl.state == writing || sl.state == reading
	}
	s.q[b] = [boardSlots]boardSlot{}
}

// check requires that a name is bound at most once, on the board that the header names, and to an
// allocated block.
func (c Board) check(s *boardState) error {
	if s.bad {
		return fmt.Errorf("a board was freed with a name on it, or written after it was freed")
	}
	var bound [2]bool
	for b := range s.q {
		for _, sl := range s.q[b] {
			if sl.state != full {
				continue
			}
			switch w := &s.w[sl.data]; {
			case bound[sl.name]:
				return fmt.Errorf("name %d is bound twice", sl.name)
			case !w.alloc || w.t == 0:
				return fmt.Errorf("use after free: name %d stands for block %d", sl.name, sl.data)
			case int(s.board) != b+1:
				return fmt.Errorf("name %d is on a board that nobody finds", sl.name)
			}
			bound[sl.name] = true
		}
	}
	for b := range s.w {
		if s.w[b].t > 100 {
			return fmt.Errorf("transit count of block %d below 0", b)
		}
	}
	for i := range workers {
		if p := &s.p[i]; p.lives() && p.pc == dHeld && p.let == 0 && !s.w[p.data].alloc {
			return fmt.Errorf("use after free: worker %d holds block %d", i, p.data)
		}
	}
	return nil
}

// done returns an error unless nothing but the names is left in s, and no participant is stuck.
func (c Board) done(s *boardState) error {
	for i := range threads {
		if s.p[i].life == killed || s.p[i].lives() && c.enabled(s, i) {
			return fmt.Errorf("stuck: participant %d", i)
		}
	}
	var t [boardWords]uint8
	for b := range s.q {
		for _, sl := range s.q[b] {
			switch sl.state {
			case full:
				for _, x := range c.order(sl.own, sl.data) {
					t[x]++
				}
			case writing, reading:
				return fmt.Errorf("leak: a slot of board %d in state %d", b, sl.state)
			}
		}
	}
	for b, w := range s.w {
		if w.own != 0 || w.kind != nobody || w.t != t[b] || w.alloc != (t[b] > 0) {
			return fmt.Errorf("leak: block %d is %+v, in %d messages", b, w, t[b])
		}
	}
	return nil
}
