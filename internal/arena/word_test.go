//go:build shoalcrash

package arena

import (
	"strings"
	"testing"
)

func TestWord_RefusesWhatItsRulesForbid(t *testing.T) {
	var block block
	var s slot
	var lock wordOf[lockWord]
	var p participant
	var budget wordOf[budgetWord]
	me := lockWord(makeIdentity(7, 1) | 2<<idSeatShift)
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
}
