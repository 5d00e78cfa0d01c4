package arena

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Note [Audit] An auditor compares the words of a domain with the invariants of docs/memory.md. It
// reads only, and takes no lane and no lock. It has two uses. At rest, when no operation is in
// progress and every death has been reaped, each finding is a fault: so crash builds search for the
// traces of a death. [Check] audits a domain while its processes work. There an invariant of
// several words may look violated for a moment, so Check reports only findings that stay; see
// [checker].
//
// The memory may be corrupt. So every index, extent, length and seat must be compared with its
// bounds, no list may be followed for more steps than there are blocks, and nothing is logged.

// A Violation is a broken invariant of a domain.
type Violation struct {
	Part      string `json:"part"`  // the structure, such as "block 17" or "ring 5, slot 3"
	Found     string `json:"found"` // the words
	Invariant string `json:"invariant"`
	Section   string `json:"section"` // of docs/memory.md
	Remedy    string `json:"remedy"`
}

// String formats the violation in one line, without the remedy.
func (v Violation) String() string {
	return fmt.Sprintf("%s: %s; want: %s (docs/memory.md, %q)", v.Part, v.Found, v.Invariant, v.Section)
}

const (
	remedyCorrupt = "a process wrote outside of its memory: end all processes of this domain and start them again; " +
		"SHOAL_DEBUG=lifetime finds slices that are used too late, SHOAL_DEBUG=verify the write of a wrong state"
	remedyReap = "the memory or the message of a dead process was not released: " +
		"end all processes of this domain and start them again, and report a fault of Shoal"
)

// An invariant is a rule of docs/memory.md.
type invariant struct {
	text    string
	section string
	remedy  string
	// brief means that an operation that is in progress may violate the invariant. Such findings
	// count only while no process is stopped or dead.
	brief bool
}

var (
	ruleSeat = &invariant{"a seat is FREE, LIVE, DEAD or JOINING, and has a process", "Layouts of words",
		remedyCorrupt, false}
	ruleAlive = &invariant{"a taken seat has a living participant", "The reaper", remedyReap, true}
	ruleBits  = &invariant{"only participants set bits, and a reaper clears those of the dead", "The reaper",
		remedyReap, false}
	ruleLane   = &invariant{"a stamp or a claim names a lane of a participant", "The reaper", remedyReap, false}
	ruleCounts = &invariant{"counts are within their bounds", "Garbage", remedyCorrupt, false}
	ruleBudget = &invariant{"the budget word has a stamp of ADD or SUB, or none, and WAIT only with a stamp",
		"Budget and commit", remedyCorrupt, false}
	ruleRest  = &invariant{"no operation is in progress", "Words, stamps, evidence", remedyReap, true}
	rulePhase = &invariant{"a lane's phase is 0, 1 or 2, and its record names a block and bytes of its extent",
		"Budget and commit", remedyCorrupt, false}
	ruleLeft  = &invariant{"a lane of a free seat has no commit in progress", "The reaper", remedyReap, false}
	ruleNames = &invariant{"the handle of the board is stale, or is a ring that is a board", "Names",
		remedyCorrupt, false}
	ruleList   = &invariant{"a free list has indices of blocks and ends", "Free lists", remedyCorrupt, false}
	ruleListed = &invariant{"a free block is on a list", "Free hints", remedyReap, true}
	ruleState  = &invariant{"a state word is one that the table of transitions leads to", "Transitions of words",
		remedyCorrupt, false}
	ruleTransit = &invariant{"t is the number of messages that hold the block", "Why the evidence stays",
		remedyReap, true}
	ruleHolder = &invariant{"a block is ALLOC while a participant or a message holds it, and only then",
		"Release and try-free", remedyReap, true}
	ruleExtent = &invariant{"an extent has a known class and kind, and is within the addresses handed out",
		"Garbage", remedyCorrupt, false}
	ruleOverlap = &invariant{"no two blocks overlap", "Block header", remedyCorrupt, false}
	rulePages   = &invariant{"the committed length is whole pages, at most the extent's length", "Garbage",
		remedyCorrupt, false}
	ruleCharge = &invariant{"pages are charged before they are committed and until they are punched",
		"Budget and commit", remedyReap, true}
	ruleRing = &invariant{"a ring has a power of two of slots within its block, and a limit of at most as many",
		"Capacity and limit", remedyCorrupt, false}
	rulePosition = &invariant{"the tail is at most the slots ahead of the head", "Tickets", remedyCorrupt, false}
	ruleEnd      = &invariant{"a ring has the tokens of its ends until they are gone", "Ends", remedyReap, true}
	ruleSlot     = &invariant{"a slot word is one that the table of transitions leads to", "Transitions of words",
		remedyCorrupt, false}
	ruleLap     = &invariant{"a slot is at the lap of a ticket near the head", "Tickets", remedyCorrupt, false}
	ruleMessage = &invariant{"a message has the handles of blocks that messages hold, each once",
		"Why the evidence stays", remedyCorrupt, false}
	rulePut = &invariant{"a message was put by a lane, with a number that the lane has used", "Lanes",
		remedyCorrupt, false}
	ruleCell = &invariant{"a cell has a known form and fits into its block", "Cells", remedyCorrupt, false}
	ruleLock = &invariant{"a lock is FREE, or names a participant that has been in its seat", "Identities",
		remedyCorrupt, false}
	ruleShare = &invariant{"a share names a participant that has been in its seat", "Identities",
		remedyCorrupt, false}
)

// A seen is the value that some bits of a word had when the auditor read it.
type seen struct {
	w    *word.Word
	mask uint64
	v    uint64
}

// seenWord returns the evidence of a whole word.
func seenWord(w *word.Word, v uint64) seen { return seen{w, ^uint64(0), v} }

// isUnchanged reports whether the word still has the value.
func (s seen) isUnchanged() bool { return s.w.Load()&s.mask == s.v&s.mask }

// An auditFinding is a possible violation and the words that show it.
type auditFinding struct {
	rule  *invariant
	part  string
	found string
	words []seen
}

func (f auditFinding) violation() Violation {
	return Violation{f.part, f.found, f.rule.text, f.rule.section, f.rule.remedy}
}

// maxFindings limits the findings of one pass.
const maxFindings = 1000

// An auditor collects the findings of one pass over a domain; see Note [Audit].
type auditor struct {
	d    *Domain
	ctx  context.Context
	rest bool // no operation is in progress

	count  uint32                                 // end of the block indices
	seats  [word.MaxParticipants]word.Participant // as read first
	living [ownWords]uint64                       // seats that have a participant, as a bitmap
	before []word.State                           // state words before the rings are read
	sure   []uint32                               // messages that hold a block, by block
	maybe  []uint32                               // messages that may hold it: they are being put or got
	found  []auditFinding
	more   int // findings that were left out
	steps  uint64
	counts CheckCounts
}

// CheckCounts are the numbers of structures that a pass has read.
type CheckCounts struct {
	Participants int `json:"participants"`
	Blocks       int `json:"blocks"`
	Rings        int `json:"rings"`
	Slots        int `json:"slots"`
	Locks        int `json:"locks"`
}

// newAuditor returns an auditor. ctx bounds its time.
func newAuditor(ctx context.Context, d *Domain, rest bool) *auditor {
	a := &auditor{d: d, ctx: ctx, rest: rest, count: uint32(d.blockCount())}
	if s, ok := d.store.(*examined); ok {
		a.count = uint32(min(d.blockCount(), s.countHeaders()))
	}
	a.count = max(a.count, 1)
	a.before = make([]word.State, a.count)
	a.sure, a.maybe = make([]uint32, a.count), make([]uint32, a.count)
	return a
}

// runPass makes one pass. It returns the cause of ctx's end if that came first.
func (a *auditor) runPass() error {
	a.readSeats()
	a.checkHeader()
	a.checkLanes()
	a.eachBlock(func(i uint32, _ *block, w word.State) { a.before[i] = w })
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

// timeoutError returns the reason why the pass must stop, or nil.
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

// addFinding adds a finding about one structure. words is its evidence.
func (a *auditor) addFinding(rule *invariant, part string, words []seen, format string, args ...any) {
	if len(a.found) == maxFindings {
		a.more++
		return
	}
	a.found = append(a.found, auditFinding{rule, part, fmt.Sprintf(format, args...), words})
}

// eachBlock calls f with each block.
func (a *auditor) eachBlock(f func(uint32, *block, word.State)) {
	for i := uint32(1); i < a.count && a.hasTime(); i++ {
		f(i, &a.d.blocks[i], a.d.blocks[i].w.Load())
	}
}

// blockName names a block in a finding.
func blockName(i uint32) string { return fmt.Sprintf("block %d", i) }

// readSeats reads and checks the participant words, and fills seats and living.
func (a *auditor) readSeats() {
	for s := range a.d.parts {
		p := &a.d.parts[s]
		w := p.state.Load()
		a.seats[s] = w
		if w.HasState(word.ParticipantFree) && uint32(w) == 0 {
			continue
		}
		a.counts.Participants++
		a.living[s/64] |= 1 << (s % 64)
		pid, part := p.pid.Load(), fmt.Sprintf("participant %d", s)
		if uint32(w) > word.ParticipantJoining || pid == 0 || pid > maxPID {
			a.addFinding(ruleSeat, part, []seen{seenWord(p.state.Untyped(), uint64(w)), seenWord(&p.pid, pid)},
				"state word %#x, process %d", uint64(w), pid)
		}
		if !a.rest {
			continue
		}
		alive, err := a.d.store.isAlive(s)
		if s != a.d.seat && (err != nil || !alive || !w.HasState(word.ParticipantLive)) {
			a.living[s/64] &^= 1 << (s % 64)
			a.addFinding(ruleAlive, part, nil, "%v, alive %v %v", w, alive, err)
		}
	}
}

// maxPID is the greatest process number of Linux: PID_MAX_LIMIT,
// https://github.com/torvalds/linux/blob/v6.12/include/linux/threads.h.
const maxPID = 1 << 22

// isVacant reports whether seat s has no participant, and returns the evidence. At rest this is
// also so for a participant that has died.
func (a *auditor) isVacant(s int) (seen, bool) {
	p := &a.d.parts[s].state
	w := p.Load()
	if a.rest {
		return seen{}, a.living[s/64]>>(s%64)&1 == 0
	}
	return seenWord(p.Untyped(), uint64(w)), w == a.seats[s] && w.HasState(word.ParticipantFree)
}

// checkBits checks that a bitmap of participants has no bit of a vacant seat.
func (a *auditor) checkBits(bitmap *[ownWords]word.Word, what, part string) {
	for i := range bitmap {
		v := bitmap[i].Load()
		for left := v &^ a.living[i]; left != 0; left &= left - 1 {
			k := bits.TrailingZeros64(left)
			if seat, vacant := a.isVacant(i*64 + k); vacant {
				words := []seen{{&bitmap[i], 1 << k, v}}
				if seat.w != nil {
					words = append(words, seat)
				}
				a.addFinding(ruleBits, part, words, "%s has the bit of seat %d, which has no participant", what, i*64+k)
			}
		}
	}
}

// checkStamper checks that the lane in a stamp or a claim belongs to a participant. word is the
// evidence.
func (a *auditor) checkStamper(lane uint32, observed seen, part string, text fmt.Stringer) {
	if seat, vacant := a.isVacant(int(lane / lanesPerSeat)); vacant {
		words := []seen{observed}
		if seat.w != nil {
			words = append(words, seat)
		}
		a.addFinding(ruleLane, part, words, "%v, and seat %d has no participant", text, lane/lanesPerSeat)
	}
}

// checkHeader checks the words and bitmaps of the header.
func (a *auditor) checkHeader() {
	h := a.d.hdr
	a.checkCounts()
	w := h.budget.Load()
	observed := seenWord(h.budget.Untyped(), uint64(w))
	if w.Kind() > word.BudgetSub || w.Kind() == 0 && w&(word.BudgetStamp|word.BudgetWait) != 0 ||
		w&(1<<word.BudgetPageShift-1)>>17 != 0 {
		a.addFinding(ruleBudget, "the budget", []seen{observed}, "budget word %#x", uint64(w))
	} else if w.IsStamped() {
		a.checkStamper(w.Lane(), observed, "the budget", w)
	}
	if a.rest && w.IsStamped() {
		a.addFinding(ruleRest, "the budget", nil, "%v", w)
	}
	v := h.recovery.Load()
	seat := v & recoverySeat
	if seat > word.MaxParticipants || v != 0 && seat == 0 || uint32(v)&^(recoverySeat|recoveryWait) != 0 {
		a.addFinding(ruleCounts, "the recovery lock", []seen{seenWord(&h.recovery, v)}, "word %#x", v)
	} else if a.rest && v != 0 {
		a.addFinding(ruleRest, "the recovery lock", nil, "held: %#x", v)
	}
	a.checkBits(&h.spinners, "spinners", "the header")
	a.checkBits(&h.xowait, "xowait", "the header")
	a.checkBits(&h.memwait, "memwait", "the header")
	a.checkBoard()
}

// checkCounts checks the counts of the header. Each is read before the one that bounds it, because
// counts only grow.
func (a *auditor) checkCounts() {
	h := a.d.hdr
	for _, c := range []struct {
		what    string
		w       *word.Word
		illegal func(v uint64) bool
	}{
		{"count of blocks", &h.blocks, func(v uint64) bool { return v == 0 || v > h.ready.Load() && v != 1 }},
		{"headers with pages", &h.ready, func(v uint64) bool {
			return v > uint64(len(a.d.blocks)) || v%(commitStep/blockSize) != 0
		}},
		{"end of the addresses handed out", &h.brk, func(v uint64) bool { return v > uint64(len(a.d.bytes)) }},
		{"seats with lanes", &h.lanes, func(v uint64) bool { return v > word.MaxParticipants }},
		{"lost", &h.lost, func(v uint64) bool { return v > hintsSweeping }},
	} {
		if v := c.w.Load(); c.illegal(v) {
			a.addFinding(ruleCounts, "the header", []seen{seenWord(c.w, v)}, "%s is %d", c.what, v)
		}
	}
}

// checkBoard checks the handle of the board of names.
func (a *auditor) checkBoard() {
	v := a.d.hdr.names.Load()
	h := Handle(v)
	if h == 0 || h.IsWellFormed() && !a.isAllocated(h) {
		return
	}
	if h.IsWellFormed() {
		b := &a.d.blocks[h.Block()]
		_, r, _ := a.readRing(b)
		if extKind(b.ext.Load()) == objectRing && (r == nil || r.hasFlags(ringBoard)) || !a.isAllocated(h) {
			return // a ring that cannot be read has a finding of its own
		}
	}
	a.addFinding(ruleNames, "the header", []seen{seenWord(&a.d.hdr.names, v)}, "names is %v", h)
}

// IsAllocated reports whether h is a block in use.
func (a *auditor) isAllocated(h Handle) bool {
	if !h.IsWellFormed() || h.Block() >= a.count {
		return false
	}
	w := a.d.blocks[h.Block()].w.Load()
	return w.IsAllocated() && w.Generation() == h.Generation()
}

// checkLanes checks the lane records.
func (a *auditor) checkLanes() {
	for i := range uint32(a.countLanes()) {
		rec := &a.d.recs[i]
		phase := rec.phase.Load()
		if phase == phaseIdle {
			continue
		}
		index, part := rec.block.Load(), fmt.Sprintf("lane %d", i)
		words := []seen{seenWord(&rec.phase, phase), seenWord(&rec.block, index)}
		if a.rest {
			a.addFinding(ruleRest, part, nil, "phase %d of block %d", phase, index)
			continue
		}
		if seat, vacant := a.isVacant(int(i / lanesPerSeat)); vacant {
			a.addFinding(ruleLeft, part, append(words, seat),
				"phase %d of block %d, and seat %d has no participant", phase,
				index, i/lanesPerSeat)
			continue
		}
		from, target := rec.from.Load(), rec.target.Load()
		words = append(words, seenWord(&rec.from, from), seenWord(&rec.target, target))
		if phase <= phaseShrink && index > 0 && index < a.d.blockCount() {
			if index >= uint64(a.count) {
				continue // made since the pass began
			}
			if _, n, ok := a.d.peekRange(a.d.blocks[index].ext.Load()); !ok || max(from, target) <= n {
				continue // an illegal extent has a finding of its own
			}
		}
		a.addFinding(rulePhase, part, words, "phase %d of block %d, from %d to %d bytes", phase, index, from, target)
	}
}
