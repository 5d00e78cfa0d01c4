package word

import "fmt"

// Note [Legal transitions] A table lists the legal changes of a word, by the operation that makes
// the change. Crash builds check each change of these words against its table. So a table must list
// every change of the protocol in docs/memory.md, and no others. A release build keeps only the
// names.

var StampNames = [8]string{"", "ALLOC", "PUT", "GET", "FREE", "PUNCH", "GROW", "?"}

// String formats the state word, such as "generation 3, t 1, ALLOC, PUT by lane 64".
func (w State) String() string {
	s := fmt.Sprintf("generation %d, t %d", w.Generation(), w.TransitCount())
	for _, f := range []struct {
		bit  State
		name string
	}{{AllocBit, "ALLOC"}, {WaitBit, "WAIT"}, {GoneBit, "GONE"}} {
		if w&f.bit != 0 {
			s += ", " + f.name
		}
	}
	if w.Kind() != KindNone {
		s += fmt.Sprintf(", %s by lane %d", StampNames[w.Kind()], w.Lane())
	}
	return s
}

// stateRules lists the transitions of a block's state word (docs/memory.md, "Words, stamps,
// evidence" and "Operations"). t and ALLOC change only when a stamp is installed on a word without
// one, or when a stamp is cleared.
var stateRules = []rule[State]{
	{"alloc", func(o, n State) bool {
		return !o.IsStamped() && !o.IsAllocated() && n == o|AllocBit|MakeStamp(n.Lane(), KindAlloc)
	}},
	{"take", func(o, n State) bool { return !o.IsStamped() && !o.IsAllocated() && n == o|AllocBit }},
	{"put", func(o, n State) bool {
		return !o.IsStamped() && o.IsAllocated() && o.TransitCount() < MaxTransit &&
			n == o+TOne|MakeStamp(n.Lane(), KindPut)
	}},
	{"get", func(o, n State) bool { // the reader's stamp may replace the sender's
		return o.IsAllocated() && o.TransitCount() > 0 && (!o.IsStamped() || o.Kind() == KindPut) &&
			n == o&^StampMask-TOne|MakeStamp(n.Lane(), KindGet)
	}},
	{"free", func(o, n State) bool {
		return !o.IsStamped() && o.IsAllocated() && o.TransitCount() == 0 && n == o|MakeStamp(n.Lane(), KindFree)
	}},
	{"punch", func(o, n State) bool {
		return !o.IsStamped() && !o.IsAllocated() && n == o|MakeStamp(n.Lane(), KindPunch)
	}},
	{"grow", func(o, n State) bool {
		return !o.IsStamped() && o.IsAllocated() && n == o|MakeStamp(n.Lane(), KindGrow)
	}},
	{"wait", func(o, n State) bool { return o.IsStamped() && n == o|WaitBit }},
	{"gone", func(o, n State) bool { return o.Kind() == KindFree && n == o|GoneBit }},
	{"end", func(o, n State) bool { return o.IsStamped() && n == o&^(StampMask|WaitBit) }},
	{"unput", func(o, n State) bool { return o.Kind() == KindPut && n == o&^(StampMask|WaitBit)-TOne }},
	{"freed", func(o, n State) bool { // also after an allocation that failed
		return (o.Kind() == KindFree || o.Kind() == KindAlloc) && o.TransitCount() == 0 &&
			n == o&^(AllocBit|StampMask|WaitBit)+GenOne
	}},
}

func (w State) transitionName(next State) string { return ruleName(stateRules, w, next) }

// String formats the slot word, such as "lap 2, WRITING by lane 64".
func (w Slot) String() string {
	names := [...]string{"EMPTY", "WRITING", "FULL", "READING", "SKIP", "LEASED"}
	name := "?"
	if w.State() < uint64(len(names)) {
		name = names[w.State()]
	}
	if n := w.Span(); n > 1 {
		name += fmt.Sprintf(" of %d", n)
	}
	return fmt.Sprintf("lap %d, %s by lane %d", w.Lap(), name, w.Lane())
}

// slotRules lists the transitions of a slot's word (docs/memory.md, "Operations"). Laps only
// increase, and a message is written once and taken once. Only the first slot of a span becomes
// WRITING or READING.
var slotRules = []rule[Slot]{
	{"claim", func(o, n Slot) bool {
		// a board claims any free slot, including a hole
		return (o.State() == SlotEmpty || o.State() == SlotSkip) &&
			n == MakeSlot(o.Lap(), SlotWriting, n.Lane()).WithSpan(n.Span())
	}},
	{"publish", func(o, n Slot) bool {
		return o.State() == SlotWriting && n == MakeSlot(o.Lap(), SlotFull, o.Lane())
	}},
	{"fill", func(o, n Slot) bool {
		return o.State() == SlotEmpty && n == MakeSlot(o.Lap(), SlotFull, n.Lane())
	}},
	{"skip", func(o, n Slot) bool {
		return (o.State() == SlotWriting || o.State() == SlotEmpty || o.State() == SlotFull) &&
			n == MakeSlot(o.Lap(), SlotSkip, 0)
	}},
	{"read", func(o, n Slot) bool {
		return o.State() == SlotFull && n == MakeSlot(o.Lap(), SlotReading, n.Lane()).WithSpan(n.Span())
	}},
	{"lease", func(o, n Slot) bool {
		return o.State() == SlotFull && n == MakeSlot(o.Lap(), SlotLeased, n.Lane())
	}},
	{"acknowledge", func(o, n Slot) bool {
		return o.State() == SlotLeased && n == MakeSlot(o.Lap(), SlotReading, n.Lane())
	}},
	{"return", func(o, n Slot) bool {
		return o.State() == SlotLeased && n == MakeSlot(o.Lap(), SlotFull, o.Lane())
	}},
	{"give back", func(o, n Slot) bool {
		return (o.State() == SlotReading || o.State() == SlotSkip || o.State() == SlotFull) &&
			n == MakeSlot(o.Lap()+1, SlotEmpty, 0)
	}},
}

func (w Slot) transitionName(next Slot) string { return ruleName(slotRules, w, next) }

// String formats the lock word, such as "HELD by process 7 in seat 2".
func (w Lock) String() string {
	return fmt.Sprintf("%s by process %d in seat %d", [...]string{"FREE", "HELD", "DIRTY", "LOST"}[w.State()], w.PID(),
		w.Seat())
}

// lockRules lists the transitions of a lock word (docs/memory.md, "Cells"). Only the holder may
// unlock the word, and a participant may take it over only from another one.
var lockRules = []rule[Lock]{
	{"lock", func(o, n Lock) bool { return o == LockFree && n.State() == LockHeld }},
	{"unlock", func(o, n Lock) bool { return o.State() == LockHeld && n == LockFree }},
	{"take over", func(o, n Lock) bool {
		return o.IsHeld() && n.IsHeld() && o.holderWord() != n.holderWord()
	}},
	{"mark consistent", func(o, n Lock) bool {
		return o.State() == LockDirty && n.State() == LockHeld && o.holderWord() == n.holderWord()
	}},
	{"give up", func(o, n Lock) bool { return o.State() == LockDirty && n.State() == LockLost }},
}

func (w Lock) transitionName(next Lock) string { return ruleName(lockRules, w, next) }

// String formats the participant word, such as "LIVE in epoch 3".
func (w Participant) String() string {
	return fmt.Sprintf("%s in epoch %d", [...]string{"FREE", "LIVE", "DEAD", "JOINING"}[w.State()&3], w.Epoch())
}

// participantRules lists the transitions of a participant's word (docs/memory.md, "The reaper" and
// "Notice"). A seat that becomes free gets a new epoch.
var participantRules = []rule[Participant]{
	{"join", func(o, n Participant) bool {
		return o.HasState(ParticipantFree) && n == o.WithState(ParticipantJoining)
	}},
	{"begin", func(o, n Participant) bool {
		return o.HasState(ParticipantJoining) && n == o.WithState(ParticipantLive)
	}},
	{"die", func(o, n Participant) bool {
		return (o.HasState(ParticipantJoining) || o.HasState(ParticipantLive)) && n == o.WithState(ParticipantDead)
	}},
	{"be free", func(o, n Participant) bool { return o.HasState(ParticipantDead) && n == o.NextEpoch() }},
}

func (w Participant) transitionName(next Participant) string {
	return ruleName(participantRules, w, next)
}

// String formats the budget word, such as "12 pages, ADD by lane 64".
func (w Budget) String() string {
	s := fmt.Sprintf("%d pages", w.Pages())
	if w&BudgetWait != 0 {
		s += ", WAIT"
	}
	if w.IsStamped() {
		s += fmt.Sprintf(", %s by lane %d", [...]string{"?", "ADD", "SUB", "?"}[w.Kind()], w.Lane())
	}
	return s
}

// budgetRules lists the transitions of the budget word (docs/memory.md, "Budget and commit").
var budgetRules = []rule[Budget]{
	{"add", func(o, n Budget) bool {
		return !o.IsStamped() && n.Pages() >= o.Pages() && n == MakeBudget(n.Pages(), BudgetAdd, n.Lane())
	}},
	{"sub", func(o, n Budget) bool {
		return !o.IsStamped() && n.Pages() <= o.Pages() && n == MakeBudget(n.Pages(), BudgetSub, n.Lane())
	}},
	{"wait", func(o, n Budget) bool { return o.IsStamped() && n == o|BudgetWait }},
	{"end", func(o, n Budget) bool { return o.IsStamped() && n == MakeBudget(o.Pages(), 0, 0) }},
}

func (w Budget) transitionName(next Budget) string { return ruleName(budgetRules, w, next) }
