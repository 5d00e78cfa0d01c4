package arena

import (
	"strings"
	"testing"
)

func TestWord_RefusesWhatItsRulesForbid(t *testing.T) {
	defer func(was bool) { verifying = was }(verifying)
	verifying = true
	var block block
	var s slot
	var lock wordOf[lockWord]
	var p participant
	var budget wordOf[budgetWord]
	me := lockWord(makeIdentity(7, 1) | 2<<idSeatShift)
	defer func() {
		s, _ := recover().(string)
		for _, want := range []string{"arena.TestWord_RefusesWhatItsRulesForbid (word_test.go:", "the slot word of a ring goes from ",
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
		{"a put without a stamp", func() { block.w.CAS(allocBit, allocBit+tOne) },
			"generation 0, t 0, ALLOC to generation 0, t 1, ALLOC"},
		{"a put over another stamp",
			func() { block.w.CAS(allocBit|makeStamp(3, kindGrow), allocBit+tOne|makeStamp(3, kindPut)) },
			"GROW by lane 3"},
		{"a get of what nobody sent", func() { block.w.CAS(allocBit|genOne, (allocBit|genOne)-tOne|makeStamp(3, kindGet)) }, "GET"},
		{"freed with messages", func() { block.w.CAS(allocBit+tOne, allocBit+tOne|makeStamp(3, kindFree)) }, "FREE"},
		{"an end that forgets who waits", func() { block.w.CAS(allocBit|waitBit|makeStamp(3, kindFree), allocBit|waitBit) },
			"WAIT"},
		{"published by another lane",
			func() { s.word.CAS(makeSlotWord(1, slotWriting, 3), makeSlotWord(1, slotFull, 4)) },
			"lap 1, WRITING by lane 3 to lap 1, FULL by lane 4"},
		{"a slot read twice", func() { s.word.Store(makeSlotWord(1, slotEmpty, 0)) }, "lap 1, EMPTY"},
		{"a lock twice", func() { lock.CAS(me|lockHeld, me|lockHeld) }, "HELD by process 7 in seat 2"},
		{"a lock that was lost", func() { lock.CAS(me|lockLost, lockFree) }, "LOST"},
		{"alive again", func() { p.state.CAS(participantDead, participantLive) }, "DEAD in epoch 0 to LIVE in epoch 0"},
		{"pages without a stamp", func() { budget.CAS(0, budgetOf(5, 0, 0)) }, "0 pages to 5 pages"},
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
	s.word.v.Store(uint64(makeSlotWord(1, slotEmpty, 0)))
	s.word.CAS(makeSlotWord(1, slotEmpty, 0), makeSlotWord(1, slotSkip, 3))
}
