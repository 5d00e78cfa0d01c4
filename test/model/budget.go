package model

import "fmt"

// The budget model: two blocks, two workers that grow and punch them, and two reapers; one reaper
// may be killed. A reaped worker is replaced by another one in the same lane, which continues with
// the program. The record of the dead lane must not harm its successor. Every fallocate of a page
// may fail.
//
// A worker that cannot uncharge because of another lane's stamp may owe the pages instead. A second
// lane of its process, the payer, uncharges them later. The debt dies with the process, and its
// pages stay charged. A reaper that finds the stamp of a living lane aborts its pass and starts
// again.

const (
	budgetLimit = 3 // pages
	lanes       = 4 // two workers, two reapers
	payers      = 2 // the lanes after those
)

type budgetPC uint8

const (
	bBegin budgetPC = iota
	bRecord
	bFrom
	bTarget
	bAdd
	bPhase
	bUnstamp
	bAllocate
	bCommitted
	bPhaseDone
	bUndo
	bPunch
	bPunchCommitted
	bSub
	bSubPhase
	bSubUnstamp
	bOwe
	bOweMore
	bUnlock
	bLimit
	bReapStamp
	bReapUnstamp
	bReapBlock
	bReapPunch
	bReapCommitted
	bReapSub
	bReapSubPhase
	bReapSubUnstamp
	bReapDone
	bReapUnlock
	bReapEnd
)

type budgetBlock struct {
	lane      uint8 // the lane of xo
	committed uint8
	backed    uint8 // ghost: pages allocated by the kernel
}

type record struct{ block, from, target, phase uint8 }

type budgetThread struct {
	process
	pc     budgetPC
	op     uint8
	set, k uint8 // of a reaper
	debt   uint8
	pays   uint8 // pages that its payer has uncharged
	payer  payerPC
}

// A payerPC is the program counter of a payer, the second lane of a worker, which uncharges its
// debts.
type payerPC uint8

const (
	yIdle payerPC = iota
	yUnstamp
	yPaid
)

type budgetState struct {
	pages, lane uint8
	sub         bool // the stamp is (lane, SUB), otherwise (lane, ADD)
	b           [2]budgetBlock
	rec         [lanes + payers]record
	p           [lanes]budgetThread
	lost        uint8 // ghost: debts of dead processes
	kills       toll
}

// A Resize is one line of a worker's program: it sets the number of pages of a block by growing or
// punching it.
type Resize struct{ Block, Pages uint8 }

// A Budget configures the budget model: workers grow and punch blocks within a limit of pages.
// Kills limits the kills. Bug is a mutation that must be detected, or "".
type Budget struct {
	Programs [2][]Resize
	Kills    int
	Bug      string
}

// Mutations of the budget model.
const (
	PhaseEarly     = "phase = 1 before the budget is stamped"
	CommittedLate  = "committed is stored after phase is cleared"
	NoUndoPunch    = "the reaper takes back the charge without punching"
	SubUnstamped   = "uncharge without a stamp"
	PhaseLeft      = "the reaper leaves phase = 1 where committed = target"
	ReaperStamp    = "the reaper stamps the budget in its own name"
	PhaseLate      = "a lane clears its stamp before it writes the phase"
	AddForgotten   = "the reaper clears the stamp of an addition without phase = 1"
	SubForgotten   = "the reaper clears the stamp of a subtraction without phase = 0"
	TwoReapers     = "two reap at once"
	CommitUnbacked = "punch sets phase = 2 after the hole is there"
	OweFirst       = "a lane owes before it clears its phase"
	PayerForgotten = "the reaper leaves the stamp of a dead payer"
	PaidTwice      = "a payer clears its stamp, and begins anew before it has less debt"
	PassUncharged  = "a reaper that meets a stamp clears the phase all the same"
)

// Model returns the transition system of c, for [Explore].
func (c Budget) Model() Model[budgetState] {
	return Model[budgetState]{Steps: c.steps, Events: c.kills, Check: c.check, Done: c.done}
}

func (c Budget) steps(s budgetState, emit func(budgetState)) {
	for i := range payers {
		if n := s; n.p[i].lives() && c.pay(&n, i) {
			emit(n)
		}
	}
	for i := range lanes {
		if !c.enabled(&s, i) {
			continue
		}
		n := s
		if i < 2 {
			if c.work(&n, i, false) {
				emit(n)
			}
			if n := s; s.p[i].pc == bAllocate && c.work(&n, i, true) {
				emit(n)
			}
			if n := s; s.p[i].pc == bSub && s.lane != 0 {
				n.p[i].pc = bOwe
				emit(n)
			}
		} else if c.reap(&n, i) {
			emit(n)
		}
	}
}

func (c Budget) kills(s budgetState, emit func(budgetState)) {
	for i := range lanes - 1 {
		if n := s; c.enabled(&s, i) && n.kills.kill(&n.p[i].process, c.Kills) {
			n.p[i] = budgetThread{process: n.p[i].process, op: s.p[i].op}
			n.lost += s.p[i].debt - s.p[i].pays
			if s.p[i].pc == bOweMore {
				n.lost += s.rec[i].delta()
			}
			emit(n)
		}
	}
}

func (c Budget) enabled(s *budgetState, i int) bool {
	p := &s.p[i]
	switch {
	case !p.lives():
		return false
	case i < 2:
		return int(p.op) < len(c.Programs[i]) || p.debt > 0
	case i == 3 && s.p[2].lives() && c.Bug != TwoReapers:
		return false
	}
	return p.pc != 0 || s.dead() != 0
}

func (s *budgetState) dead() uint8 {
	return withLife(s.p[:], killed)
}

// charge performs one CAS of the budget word in s for lane i: it adds pages, or subtracts them
// if sub is true, and stamps the word. It returns false if the word is stamped.
func (c Budget) charge(s *budgetState, i int, pages uint8, sub bool) bool {
	if s.lane != 0 {
		return false
	}
	if s.sub = sub; sub {
		s.pages -= pages
	} else {
		s.pages += pages
	}
	if s.lane = lane(i); sub && c.Bug == SubUnstamped {
		s.lane = 0
	}
	return true
}

// work performs the next step in s of worker i. It returns false if the worker must wait or its
// program has ended. fail makes the fallocate of this step fail.
func (c Budget) work(s *budgetState, i int, fail bool) bool {
	p, r := &s.p[i], &s.rec[i]
	if int(p.op) == len(c.Programs[i]) {
		return false // only the payer runs
	}
	op := c.Programs[i][p.op]
	b := &s.b[op.Block]
	grow := r.target > r.from
	switch p.pc {
	case bBegin:
		if b.lane != 0 {
			return false
		}
		b.lane = lane(i)
		p.pc = bRecord
	case bRecord:
		if r.block, p.pc = op.Block, bFrom; op.Pages == b.committed {
			p.pc = bUnlock
		}
	case bFrom:
		r.from, p.pc = b.committed, bTarget
	case bTarget:
		r.target = op.Pages
		switch {
		case op.Pages < b.committed:
			p.pc = bPhase
		case c.Bug == PhaseEarly:
			r.phase = 1
			p.pc = bAdd
		default:
			p.pc = bAdd
		}
		if p.pc == bPhase && c.Bug == CommitUnbacked {
			p.pc = bPunch
		}
	case bAdd:
		if s.lane == 0 && s.pages+r.target-r.from > budgetLimit {
			r.phase = 0
			p.pc = bUnlock
			return true
		}
		if p.pc = bPhase; c.Bug == PhaseLate {
			p.pc = bUnstamp
		}
		return c.charge(s, i, r.target-r.from, false)
	case bPhase:
		if r.phase, p.pc = 1, bUnstamp; !grow {
			r.phase, p.pc = 2, bPunch
		}
		switch {
		case !grow && c.Bug == CommitUnbacked:
			p.pc = bPunchCommitted
		case grow && c.Bug == PhaseLate:
			p.pc = bAllocate
		}
	case bUnstamp:
		s.lane = 0
		if p.pc = bAllocate; c.Bug == PhaseLate {
			p.pc = bPhase
		}
	case bAllocate:
		c.allocate(s, i, fail)
	case bCommitted:
		b.committed = r.target
		if p.pc = bPhaseDone; c.Bug == CommittedLate {
			p.pc = bUnlock
		}
	case bPhaseDone:
		r.phase = 0
		if p.pc = bUnlock; c.Bug == CommittedLate {
			p.pc = bCommitted
		}
	case bUndo, bPunch:
		b.backed = min(r.from, r.target)
		switch {
		case p.pc == bUndo:
			p.pc = bSub
		case c.Bug == CommitUnbacked:
			p.pc = bPhase
		default:
			p.pc = bPunchCommitted
		}
	case bPunchCommitted:
		b.committed = r.target
		p.pc = bSub
	case bSub:
		if p.pc = bSubPhase; c.Bug == PhaseLate {
			p.pc = bSubUnstamp
		}
		return c.charge(s, i, r.delta(), true)
	case bSubPhase:
		r.phase = 0
		if p.pc = bSubUnstamp; c.Bug == PhaseLate {
			p.pc = bUnlock
		}
	case bSubUnstamp:
		if s.lane == lane(i) {
			s.lane = 0
		}
		if p.pc = bUnlock; c.Bug == PhaseLate {
			p.pc = bSubPhase
		}
	case bOwe:
		if p.pc = bOweMore; c.Bug == OweFirst {
			p.debt += r.delta()
			break
		}
		r.phase = 0
	case bOweMore:
		if p.pc = bUnlock; c.Bug == OweFirst {
			r.phase = 0
			break
		}
		p.debt += r.delta()
	case bUnlock:
		b.lane = 0
		p.pc = bBegin
		p.op++
	}
	return true
}

// pay performs the next step in s of the payer of worker i. It returns false if there is no debt
// or the budget word is stamped.
func (c Budget) pay(s *budgetState, i int) bool {
	p := &s.p[i]
	switch p.payer {
	case yIdle:
		if p.debt == 0 || !c.charge(s, lanes+i, p.debt, true) {
			return false
		}
		p.pays, p.payer = p.debt, yUnstamp
	case yUnstamp:
		if s.lane == lane(lanes+i) {
			s.lane = 0
		}
		if p.payer = yPaid; c.Bug == PaidTwice {
			p.pays, p.payer = 0, yIdle
		}
	case yPaid:
		p.debt -= p.pays
		p.pays, p.payer = 0, yIdle
	}
	return true
}

// owner returns the first lane of the thread that has the lane. A payer's lane lives and dies
// with its worker.
func owner(lane uint8) uint8 {
	if lane > lanes {
		return lane - lanes
	}
	return lane
}

func (r *record) delta() uint8 { return max(r.from, r.target) - min(r.from, r.target) }

func (c Budget) allocate(s *budgetState, i int, fail bool) {
	p, r := &s.p[i], &s.rec[i]
	b := &s.b[r.block]
	if fail {
		p.pc = bUndo
		return
	}
	b.backed++
	if b.backed < r.target {
		return
	}
	if p.pc = bCommitted; c.Bug == CommittedLate {
		p.pc = bPhaseDone
	}
}

func (c Budget) reap(s *budgetState, i int) bool {
	p := &s.p[i]
	b := &s.b[p.k%2]
	r := &s.rec[max(b.lane, 1)-1] // record of the lane with its xo on the block
	name := int(max(b.lane, 1)) - 1
	if c.Bug == ReaperStamp {
		name = i
	}
	dead := func(lane uint8) bool { return lane != 0 && p.set>>(owner(lane)-1)&1 == 1 }
	switch p.pc {
	case bBegin:
		p.set = s.dead()
		p.k = 0
		if p.pc = bReapBlock; dead(s.lane) && (s.lane <= lanes || c.Bug != PayerForgotten) {
			p.pc = bReapStamp
		}
	case bReapStamp:
		if s.lane == 0 { // another reaper has been here
			p.pc = bReapBlock
			break
		}
		switch phase := &s.rec[s.lane-1].phase; {
		case !s.sub && c.Bug != AddForgotten:
			*phase = 1
		case s.sub && c.Bug != SubForgotten:
			*phase = 0
		}
		p.pc = bReapUnstamp
	case bReapUnstamp:
		if dead(s.lane) { // another reaper may have been here
			s.lane = 0
		}
		p.pc = bReapBlock
	case bReapBlock:
		switch {
		case !dead(b.lane):
			p.nextBlock()
		case r.phase == 0 || r.block != p.k:
			p.pc = bReapUnlock
		case r.phase == 1 && b.committed == r.target:
			if p.pc = bReapDone; c.Bug == PhaseLeft {
				p.pc = bReapUnlock
			}
		case r.phase == 1 && c.Bug == NoUndoPunch:
			p.pc = bReapSub
		default:
			p.pc = bReapPunch
		}
	case bReapPunch:
		b.backed = min(r.from, r.target)
		if p.pc = bReapSub; r.phase == 2 {
			p.pc = bReapCommitted
		}
	case bReapCommitted:
		b.committed = r.target
		p.pc = bReapSub
	case bReapSub:
		if s.lane != 0 { // stamped by a living lane, or by one that died since: new pass
			if p.pc = bBegin; c.Bug == PassUncharged {
				r.phase = 0
			}
			return true
		}
		p.pc = bReapSubPhase
		return c.charge(s, name, r.delta(), true)
	case bReapSubPhase:
		r.phase = 0
		p.pc = bReapSubUnstamp
	case bReapSubUnstamp:
		if s.lane == lane(name) {
			s.lane = 0
		}
		p.pc = bReapUnlock
	case bReapDone:
		r.phase = 0
		p.pc = bReapUnlock
	case bReapUnlock:
		b.lane = 0
		p.nextBlock()
	case bReapEnd:
		for j := range lanes {
			if p.set>>j&1 == 0 {
				continue
			}
			s.p[j].life = reaped
			if j < 2 { // the seat is reused
				s.p[j] = budgetThread{op: s.p[j].op + 1}
			}
		}
		*p = budgetThread{}
	}
	return true
}

func (p *budgetThread) nextBlock() {
	p.pc = bReapBlock
	if p.k++; p.k == 2 {
		p.pc = bReapEnd
	}
}

// check requires that every allocated page is charged.
func (c Budget) check(s *budgetState) error {
	if backed := s.b[0].backed + s.b[1].backed; backed > s.pages || s.pages > budgetLimit {
		return fmt.Errorf("%d pages are backed, %d are charged", backed, s.pages)
	}
	return nil
}

// done requires that the charged, committed and allocated pages are equal.
func (c Budget) done(s *budgetState) error {
	for i := range 2 {
		if b := s.b[i]; b.lane != 0 || b.committed != b.backed {
			return fmt.Errorf("block %d is %+v", i, b)
		}
		if int(s.p[i].op) < len(c.Programs[i]) {
			return fmt.Errorf("stuck: worker %d", i)
		}
	}
	if sum := s.b[0].committed + s.b[1].committed; sum+s.lost != s.pages || s.lane != 0 {
		return fmt.Errorf("%d pages are committed and %d were owed by the dead, %d are charged, stamp of lane %d",
			sum, s.lost, s.pages, s.lane)
	}
	if s.dead() != 0 {
		return fmt.Errorf("stuck: not all are reaped")
	}
	return nil
}
