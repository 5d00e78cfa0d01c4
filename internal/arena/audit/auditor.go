package audit

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Note [Audit] An auditor compares the words of a domain with the invariants of docs/memory.md. It
// reads only, and takes no lane and no lock. It has two uses. At rest, when no operation is in
// progress and every death has been reaped, each finding is a fault: so crash builds search for the
// traces of a death by [Inspect]. [Check] audits a domain while its processes work. There an
// invariant of several words may look violated for a moment, so Check reports only findings that
// stay; see [checker].
//
// The memory may be corrupt. So every index, extent, length and seat must be compared with its
// bounds, no list may be followed for more steps than there are blocks, and nothing is logged.

// An evidence is the value that some bits of a word had when the auditor read it.
type evidence struct {
	w    *word.Word
	mask uint64
	v    uint64
}

// evidenceOf returns the evidence of a whole word.
func evidenceOf(w *word.Word, v uint64) evidence { return evidence{w, ^uint64(0), v} }

// isUnchanged reports whether the word still has the value.
func (s evidence) isUnchanged() bool { return s.w.Load()&s.mask == s.v&s.mask }

// A finding is a possible violation and the words that show it.
type finding struct {
	rule  *invariant
	part  string
	found string
	words []evidence
}

func (f finding) violation() Violation {
	return Violation{f.rule.name, f.part, f.found, f.rule.text, f.rule.section, f.rule.remedy}
}

// maxFindings limits the findings of one pass.
const maxFindings = 1000

// An auditor collects the findings of one pass over a domain; see Note [Audit].
type auditor struct {
	src  Source
	mem  *layout.Memory
	ctx  context.Context
	rest bool  // no operation is in progress
	self *Self // the participant that audits; nil if it is none

	count  uint32                                 // end of the block indices
	seats  [word.MaxParticipants]word.Participant // as read first
	living [layout.BitmapWords]uint64             // seats that have a participant, as a bitmap
	before []word.State                           // state words before the rings are read
	sure   []uint32                               // messages that hold a block, by block
	maybe  []uint32                               // messages that may hold it: they are being put or got
	found  []finding
	more   int // findings that were left out
	steps  uint64
	counts Counts
}

// Counts are the numbers of structures that a pass has read.
type Counts struct {
	Participants int `json:"participants"`
	Blocks       int `json:"blocks"`
	Rings        int `json:"rings"`
	Slots        int `json:"slots"`
	Locks        int `json:"locks"`
}

// newAuditor returns an auditor. ctx bounds its time. rest selects the rules of a domain at rest;
// see [Inspect]. self is then the participant that audits, or nil.
func newAuditor(ctx context.Context, src Source, rest bool, self *Self) *auditor {
	a := &auditor{src: src, mem: src.Memory(), ctx: ctx, rest: rest, self: self}
	headers, _ := src.Backed()
	a.count = max(uint32(min(a.mem.CountBlocks(), headers)), 1)
	a.before = make([]word.State, a.count)
	a.sure, a.maybe = make([]uint32, a.count), make([]uint32, a.count)
	return a
}

// runPass makes one pass. It returns the cause of ctx's end if that came first.
func (a *auditor) runPass() error {
	a.readSeats()
	a.checkHeader()
	a.checkLanes()
	a.eachBlock(func(i uint32, _ *layout.Block, w word.State) { a.before[i] = w })
	a.eachBlock(a.checkObject)
	a.eachBlock(a.checkState)
	a.eachBlock(a.checkExtent)
	a.checkOverlaps()
	a.checkCharge()
	a.checkLists()
	if a.rest {
		a.checkListed()
	}
	return a.timeoutError()
}

// timeoutError returns the cause of ctx if ctx has ended, so that the pass must stop, or nil.
func (a *auditor) timeoutError() error {
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	return nil
}

// hasTime reports whether the pass has time left. It looks at the context now and then.
func (a *auditor) hasTime() bool {
	a.steps++
	return a.steps%1024 != 0 || a.ctx.Err() == nil
}

// addFinding adds a finding about one structure, which part names. words is its evidence. Beyond
// [maxFindings] it only counts.
func (a *auditor) addFinding(rule *invariant, part string, words []evidence, format string, args ...any) {
	if len(a.found) == maxFindings {
		a.more++
		return
	}
	a.found = append(a.found, finding{rule, part, fmt.Sprintf(format, args...), words})
}

// eachBlock calls f with the index, the header and the state word of each block, as long as the
// pass has time left.
func (a *auditor) eachBlock(f func(uint32, *layout.Block, word.State)) {
	for i := uint32(1); i < a.count && a.hasTime(); i++ {
		f(i, &a.mem.Blocks[i], a.mem.Blocks[i].State.Load())
	}
}

// blockName names a block in a finding.
func blockName(i uint32) string { return fmt.Sprintf("block %d", i) }

// readSeats reads and checks the participant words, and fills seats and living.
func (a *auditor) readSeats() {
	for s := range a.mem.Participants {
		p := &a.mem.Participants[s]
		w := p.State.Load()
		a.seats[s] = w
		if w.HasState(word.ParticipantFree) && uint32(w) == 0 {
			continue
		}
		a.counts.Participants++
		a.living[s/64] |= 1 << (s % 64)
		pid, part := p.PID.Load(), fmt.Sprintf("participant %d", s)
		if uint32(w) > word.ParticipantJoining || pid == 0 || pid > maxPID {
			a.addFinding(ruleSeat, part, []evidence{evidenceOf(p.State.Untyped(), uint64(w)), evidenceOf(&p.PID, pid)},
				"state word %#x, process %d", uint64(w), pid)
		}
		if !a.rest {
			continue
		}
		alive, err := a.src.IsAlive(s)
		if !a.isSelf(s) && (err != nil || !alive || !w.HasState(word.ParticipantLive)) {
			a.living[s/64] &^= 1 << (s % 64)
			a.addFinding(ruleAlive, part, nil, "%v, alive %v %v", w, alive, err)
		}
	}
}

// isSelf reports whether the participant that audits is in seat s.
func (a *auditor) isSelf(s int) bool { return a.self != nil && a.self.Seat == s }

// maxPID is the greatest process number of Linux: PID_MAX_LIMIT,
// https://github.com/torvalds/linux/blob/v6.12/include/linux/threads.h.
const maxPID = 1 << 22

// isVacant reports whether seat s has no participant, and returns the evidence. At rest this is
// also so for a participant that has died, and the evidence is zero.
func (a *auditor) isVacant(s int) (evidence, bool) {
	p := &a.mem.Participants[s].State
	w := p.Load()
	if a.rest {
		return evidence{}, a.living[s/64]>>(s%64)&1 == 0
	}
	return evidenceOf(p.Untyped(), uint64(w)), w == a.seats[s] && w.HasState(word.ParticipantFree)
}

// checkBits checks that a bitmap of participants has no bit of a vacant seat. what names the
// bitmap in a finding, and part its structure.
func (a *auditor) checkBits(bitmap *layout.Bitmap, what, part string) {
	for i := range bitmap {
		v := bitmap[i].Load()
		for left := v &^ a.living[i]; left != 0; left &= left - 1 {
			k := bits.TrailingZeros64(left)
			if seat, vacant := a.isVacant(i*64 + k); vacant {
				words := []evidence{{&bitmap[i], 1 << k, v}}
				if seat.w != nil {
					words = append(words, seat)
				}
				a.addFinding(ruleBits, part, words, "%s has the bit of seat %d, which has no participant", what, i*64+k)
			}
		}
	}
}

// checkStamper checks that the lane in a stamp or a claim belongs to a participant. observed is
// the evidence of the word with the stamp, text formats that word, and part names its structure.
func (a *auditor) checkStamper(lane uint32, observed evidence, part string, text fmt.Stringer) {
	if seat, vacant := a.isVacant(int(lane / layout.LanesPerSeat)); vacant {
		words := []evidence{observed}
		if seat.w != nil {
			words = append(words, seat)
		}
		a.addFinding(ruleLane, part, words, "%v, and seat %d has no participant", text, lane/layout.LanesPerSeat)
	}
}

// checkHeader checks the words and bitmaps of the header.
func (a *auditor) checkHeader() {
	h := a.mem.Header
	a.checkCounts()
	w := h.Budget.Load()
	observed := evidenceOf(h.Budget.Untyped(), uint64(w))
	if w.Kind() > word.BudgetSub || w.Kind() == 0 && w&(word.BudgetStamp|word.BudgetWait) != 0 ||
		w&(1<<word.BudgetPageShift-1)>>17 != 0 {
		a.addFinding(ruleBudget, "the budget", []evidence{observed}, "budget word %#x", uint64(w))
	} else if w.IsStamped() {
		a.checkStamper(w.Lane(), observed, "the budget", w)
	}
	if a.rest && w.IsStamped() {
		a.addFinding(ruleRest, "the budget", nil, "%v", w)
	}
	v := h.Recovery.Load()
	seat := v & layout.RecoverySeat
	if seat > word.MaxParticipants || v != 0 && seat == 0 || uint32(v)&^(layout.RecoverySeat|layout.RecoveryWait) != 0 {
		a.addFinding(ruleCounts, "the recovery lock", []evidence{evidenceOf(&h.Recovery, v)}, "word %#x", v)
	} else if a.rest && v != 0 {
		a.addFinding(ruleRest, "the recovery lock", nil, "held: %#x", v)
	}
	a.checkHeaderBits()
	a.checkBoard()
}

// checkHeaderBits checks the bitmaps of the header.
func (a *auditor) checkHeaderBits() {
	h := a.mem.Header
	a.checkBits(&h.Spinners, "spinners", "the header")
	a.checkBits(&h.XOWait, "xowait", "the header")
	a.checkBits(&h.MemWait, "memwait", "the header")
}

// checkCounts checks the counts of the header. Each is read before the one that bounds it, because
// counts only grow.
func (a *auditor) checkCounts() {
	h := a.mem.Header
	for _, c := range []struct {
		what    string
		w       *word.Word
		illegal func(v uint64) bool
	}{
		{"count of blocks", &h.Blocks, func(v uint64) bool { return v == 0 || v > h.Ready.Load() && v != 1 }},
		{"headers with pages", &h.Ready, func(v uint64) bool {
			return v > uint64(len(a.mem.Blocks)) || v%(layout.CommitStep/layout.BlockSize) != 0
		}},
		{"end of the addresses handed out", &h.Brk, func(v uint64) bool { return v > uint64(len(a.mem.Data)) }},
		{"seats with lanes", &h.Lanes, func(v uint64) bool { return v > word.MaxParticipants }},
		{"lost", &h.Lost, func(v uint64) bool { return v > layout.HintsSweeping }},
	} {
		if v := c.w.Load(); c.illegal(v) {
			a.addFinding(ruleCounts, "the header", []evidence{evidenceOf(c.w, v)}, "%s is %d", c.what, v)
		}
	}
}

// checkBoard checks the handle of the board of names.
func (a *auditor) checkBoard() {
	v := a.mem.Header.Names.Load()
	h := word.Handle(v)
	if h == 0 || h.IsWellFormed() && !a.isAllocated(h) {
		return
	}
	if h.IsWellFormed() {
		b := &a.mem.Blocks[h.Block()]
		_, r, _ := a.readRing(b)
		isBoard := r == nil || r.hdr.Flags.Load()&layout.RingBoard != 0
		if layout.ExtentKind(b.Extent.Load()) == layout.ObjectRing && isBoard || !a.isAllocated(h) {
			return // a ring that cannot be read has a finding of its own
		}
	}
	a.addFinding(ruleNames, "the header", []evidence{evidenceOf(&a.mem.Header.Names, v)}, "names is %v", h)
}

// isAllocated reports whether h is an allocated block that the pass covers.
func (a *auditor) isAllocated(h word.Handle) bool { return h.Block() < a.count && a.mem.IsAllocated(h) }

// checkLanes checks the lane records.
func (a *auditor) checkLanes() {
	for i := range uint32(a.countLanes()) {
		rec := &a.mem.Lanes[i]
		phase := rec.Phase.Load()
		if phase == layout.PhaseIdle {
			continue
		}
		index, part := rec.Block.Load(), fmt.Sprintf("lane %d", i)
		words := []evidence{evidenceOf(&rec.Phase, phase), evidenceOf(&rec.Block, index)}
		if a.rest {
			a.addFinding(ruleRest, part, nil, "phase %d of block %d", phase, index)
			continue
		}
		if seat, vacant := a.isVacant(int(i / layout.LanesPerSeat)); vacant {
			a.addFinding(ruleLeft, part, append(words, seat),
				"phase %d of block %d, and seat %d has no participant", phase,
				index, i/layout.LanesPerSeat)
			continue
		}
		from, target := rec.From.Load(), rec.Target.Load()
		words = append(words, evidenceOf(&rec.From, from), evidenceOf(&rec.Target, target))
		if phase <= layout.PhaseShrink && index > 0 && index < a.mem.CountBlocks() {
			if index >= uint64(a.count) {
				continue // made since the pass began
			}
			if _, n, ok := a.mem.ExtentRange(a.mem.Blocks[index].Extent.Load()); !ok || max(from, target) <= n {
				continue // an illegal extent has a finding of its own
			}
		}
		a.addFinding(rulePhase, part, words, "phase %d of block %d, from %d to %d bytes", phase, index, from, target)
	}
}
