package arena

import "fmt"

// Note [Legal transitions] A table lists the legal changes of a word, by the operation that makes
// the change. Crash builds check each change of these words against its table. So a table must list
// every change of the protocol in docs/memory.md, and no others. A release build keeps only the
// names.

var stampNames = [8]string{"", "ALLOC", "PUT", "GET", "FREE", "PUNCH", "GROW", "?"}

// String formats the state word, such as "generation 3, t 1, ALLOC, PUT by lane 64".
func (w stateWord) String() string {
	s := fmt.Sprintf("generation %d, t %d", w.generation(), w.transitCount())
	for _, f := range []struct {
		bit  stateWord
		name string
	}{{allocBit, "ALLOC"}, {waitBit, "WAIT"}, {goneBit, "GONE"}} {
		if w&f.bit != 0 {
			s += ", " + f.name
		}
	}
	if w.kind() != kindNone {
		s += fmt.Sprintf(", %s by lane %d", stampNames[w.kind()], w.lane())
	}
	return s
}

// stateRules lists the transitions of a block's state word (docs/memory.md, "Words, stamps,
// evidence" and "Operations"). t and ALLOC change only when a stamp is installed on a word without
// one, or when a stamp is cleared.
var stateRules = []rule[stateWord]{
	{"alloc", func(o, n stateWord) bool {
		return !o.isStamped() && !o.isAllocated() && n == o|allocBit|makeStamp(n.lane(), kindAlloc)
	}},
	{"take", func(o, n stateWord) bool { return !o.isStamped() && !o.isAllocated() && n == o|allocBit }},
	{"put", func(o, n stateWord) bool {
		return !o.isStamped() && o.isAllocated() && o.transitCount() < maxTransit &&
			n == o+tOne|makeStamp(n.lane(), kindPut)
	}},
	{"get", func(o, n stateWord) bool { // the reader's stamp may replace the sender's
		return o.isAllocated() && o.transitCount() > 0 && (!o.isStamped() || o.kind() == kindPut) &&
			n == o&^xoMask-tOne|makeStamp(n.lane(), kindGet)
	}},
	{"free", func(o, n stateWord) bool {
		return !o.isStamped() && o.isAllocated() && o.transitCount() == 0 && n == o|makeStamp(n.lane(), kindFree)
	}},
	{"punch", func(o, n stateWord) bool {
		return !o.isStamped() && !o.isAllocated() && n == o|makeStamp(n.lane(), kindPunch)
	}},
	{"grow", func(o, n stateWord) bool {
		return !o.isStamped() && o.isAllocated() && n == o|makeStamp(n.lane(), kindGrow)
	}},
	{"wait", func(o, n stateWord) bool { return o.isStamped() && n == o|waitBit }},
	{"gone", func(o, n stateWord) bool { return o.kind() == kindFree && n == o|goneBit }},
	{"end", func(o, n stateWord) bool { return o.isStamped() && n == o&^(xoMask|waitBit) }},
	{"unput", func(o, n stateWord) bool { return o.kind() == kindPut && n == o&^(xoMask|waitBit)-tOne }},
	{"freed", func(o, n stateWord) bool { // also after an allocation that failed
		return (o.kind() == kindFree || o.kind() == kindAlloc) && o.transitCount() == 0 &&
			n == o&^(allocBit|xoMask|waitBit)+genOne
	}},
}

func (w stateWord) transitionName(next stateWord) string { return ruleName(stateRules, w, next) }

// String formats the slot word, such as "lap 2, WRITING by lane 64".
func (w slotWord) String() string {
	names := [...]string{"EMPTY", "WRITING", "FULL", "READING", "SKIP", "LEASED"}
	name := "?"
	if w.state() < uint64(len(names)) {
		name = names[w.state()]
	}
	if n := w.span(); n > 1 {
		name += fmt.Sprintf(" of %d", n)
	}
	return fmt.Sprintf("lap %d, %s by lane %d", w.lap(), name, w.lane())
}

// slotRules lists the transitions of a slot's word (docs/memory.md, "Operations"). Laps only
// increase, and a message is written once and taken once. Only the first slot of a span becomes
// WRITING or READING.
var slotRules = []rule[slotWord]{
	{"claim", func(o, n slotWord) bool {
		// a board claims any free slot, including a hole
		return (o.state() == slotEmpty || o.state() == slotSkip) &&
			n == makeSlotWord(o.lap(), slotWriting, n.lane()).withSpan(n.span())
	}},
	{"publish", func(o, n slotWord) bool {
		return o.state() == slotWriting && n == makeSlotWord(o.lap(), slotFull, o.lane())
	}},
	{"fill", func(o, n slotWord) bool {
		return o.state() == slotEmpty && n == makeSlotWord(o.lap(), slotFull, n.lane())
	}},
	{"skip", func(o, n slotWord) bool {
		return (o.state() == slotWriting || o.state() == slotEmpty || o.state() == slotFull) &&
			n == makeSlotWord(o.lap(), slotSkip, 0)
	}},
	{"read", func(o, n slotWord) bool {
		return o.state() == slotFull && n == makeSlotWord(o.lap(), slotReading, n.lane()).withSpan(n.span())
	}},
	{"lease", func(o, n slotWord) bool {
		return o.state() == slotFull && n == makeSlotWord(o.lap(), slotLeased, n.lane())
	}},
	{"acknowledge", func(o, n slotWord) bool {
		return o.state() == slotLeased && n == makeSlotWord(o.lap(), slotReading, n.lane())
	}},
	{"return", func(o, n slotWord) bool {
		return o.state() == slotLeased && n == makeSlotWord(o.lap(), slotFull, o.lane())
	}},
	{"give back", func(o, n slotWord) bool {
		return (o.state() == slotReading || o.state() == slotSkip || o.state() == slotFull) &&
			n == makeSlotWord(o.lap()+1, slotEmpty, 0)
	}},
}

func (w slotWord) transitionName(next slotWord) string { return ruleName(slotRules, w, next) }

// String formats the lock word, such as "HELD by process 7 in seat 2".
func (w lockWord) String() string {
	return fmt.Sprintf("%s by process %d in seat %d", [...]string{"FREE", "HELD", "DIRTY", "LOST"}[w.state()], w.pid(),
		w.seat())
}

// lockRules lists the transitions of a lock word (docs/memory.md, "Cells"). Only the holder may
// unlock the word, and a participant may take it over only from another one.
var lockRules = []rule[lockWord]{
	{"lock", func(o, n lockWord) bool { return o == lockFree && n.state() == lockHeld }},
	{"unlock", func(o, n lockWord) bool { return o.state() == lockHeld && n == lockFree }},
	{"take over", func(o, n lockWord) bool {
		return o.isHeld() && n.isHeld() && o.holderWord() != n.holderWord()
	}},
	{"mark consistent", func(o, n lockWord) bool {
		return o.state() == lockDirty && n.state() == lockHeld && o.holderWord() == n.holderWord()
	}},
	{"give up", func(o, n lockWord) bool { return o.state() == lockDirty && n.state() == lockLost }},
}

func (w lockWord) transitionName(next lockWord) string { return ruleName(lockRules, w, next) }

// String formats the participant word, such as "LIVE in epoch 3".
func (w participantWord) String() string {
	return fmt.Sprintf("%s in epoch %d", [...]string{"FREE", "LIVE", "DEAD", "JOINING"}[w.state()&3], w.epoch())
}

// participantRules lists the transitions of a participant's word (docs/memory.md, "The reaper" and
// "Notice"). A seat that becomes free gets a new epoch.
var participantRules = []rule[participantWord]{
	{"join", func(o, n participantWord) bool {
		return o.hasState(participantFree) && n == o.withState(participantJoining)
	}},
	{"begin", func(o, n participantWord) bool {
		return o.hasState(participantJoining) && n == o.withState(participantLive)
	}},
	{"die", func(o, n participantWord) bool {
		return (o.hasState(participantJoining) || o.hasState(participantLive)) && n == o.withState(participantDead)
	}},
	{"be free", func(o, n participantWord) bool { return o.hasState(participantDead) && n == o.nextEpoch() }},
}

func (w participantWord) transitionName(next participantWord) string {
	return ruleName(participantRules, w, next)
}

// String formats the budget word, such as "12 pages, ADD by lane 64".
func (w budgetWord) String() string {
	s := fmt.Sprintf("%d pages", w.pages())
	if w&budgetWait != 0 {
		s += ", WAIT"
	}
	if w.isStamped() {
		s += fmt.Sprintf(", %s by lane %d", [...]string{"?", "ADD", "SUB", "?"}[w.kind()], w.lane())
	}
	return s
}

// budgetRules lists the transitions of the budget word (docs/memory.md, "Budget and commit").
var budgetRules = []rule[budgetWord]{
	{"add", func(o, n budgetWord) bool {
		return !o.isStamped() && n.pages() >= o.pages() && n == budgetOf(n.pages(), budgetAdd, n.lane())
	}},
	{"sub", func(o, n budgetWord) bool {
		return !o.isStamped() && n.pages() <= o.pages() && n == budgetOf(n.pages(), budgetSub, n.lane())
	}},
	{"wait", func(o, n budgetWord) bool { return o.isStamped() && n == o|budgetWait }},
	{"end", func(o, n budgetWord) bool { return o.isStamped() && n == budgetOf(o.pages(), 0, 0) }},
}

func (w budgetWord) transitionName(next budgetWord) string { return ruleName(budgetRules, w, next) }
