package word

import (
	"strings"
	"testing"
)

func TestWord_RefusesWhatItsRulesForbid(t *testing.T) {
	defer func(was bool) { verifying = was }(verifying)
	verifying = true
	var block Of[State]
	var s Of[Slot]
	var lock Of[Lock]
	var p Of[Participant]
	var budget Of[Budget]
	me := Lock(MakeIdentity(7, 1) | 2<<SeatShift)
	defer func() {
		s, _ := recover().(string)
		for _, want := range []string{"word.TestWord_RefusesWhatItsRulesForbid (word_test.go:",
			"the slot word of a ring goes from ",
			"lap 1, EMPTY by lane 0 to lap 1, SKIP by lane 3 (0x100000 to 0x110003)"} {
			if !strings.Contains(s, want) {
				t.Errorf("the panic says %q, want %q", s, want)
			}
		}
	}()
	for _, c := range []struct {
		what   string
		change func()
		says   string
	}{
		{"a put without a stamp", func() { block.CAS(AllocBit, AllocBit+TOne) },
			"generation 0, t 0, ALLOC to generation 0, t 1, ALLOC"},
		{"a put over another stamp",
			func() { block.CAS(AllocBit|MakeStamp(3, KindGrow), AllocBit+TOne|MakeStamp(3, KindPut)) },
			"GROW by lane 3"},
		{"a get of what nobody sent", func() {
			block.CAS(AllocBit|GenOne, (AllocBit|GenOne)-TOne|MakeStamp(3, KindGet))
		}, "GET"},
		{"freed with messages", func() { block.CAS(AllocBit+TOne, AllocBit+TOne|MakeStamp(3, KindFree)) }, "FREE"},
		{"an end that forgets who waits", func() {
			block.CAS(AllocBit|WaitBit|MakeStamp(3, KindFree), AllocBit|WaitBit)
		},
			"WAIT"},
		{"published by another lane",
			func() { s.CAS(MakeSlot(1, SlotWriting, 3), MakeSlot(1, SlotFull, 4)) },
			"lap 1, WRITING by lane 3 to lap 1, FULL by lane 4"},
		{"a slot read twice", func() { s.Store(MakeSlot(1, SlotEmpty, 0)) }, "lap 1, EMPTY"},
		{"a lock twice", func() { lock.CAS(me|LockHeld, me|LockHeld) }, "HELD by process 7 in seat 2"},
		{"a lock that was lost", func() { lock.CAS(me|LockLost, LockFree) }, "LOST"},
		{"alive again", func() { p.CAS(ParticipantDead, ParticipantLive) }, "DEAD in epoch 0 to LIVE in epoch 0"},
		{"pages without a stamp", func() { budget.CAS(0, MakeBudget(5, 0, 0)) }, "0 pages to 5 pages"},
	} {
		t.Run(c.what, func(t *testing.T) {
			defer func() {
				if s, _ := recover().(string); !strings.Contains(s, c.says) {
					t.Errorf("the panic says %q, want %q", s, c.says)
				}
			}()
			c.change()
			t.Error("nobody objects")
		})
	}
	s.v.Store(uint64(MakeSlot(1, SlotEmpty, 0)))
	s.CAS(MakeSlot(1, SlotEmpty, 0), MakeSlot(1, SlotSkip, 3))
}
