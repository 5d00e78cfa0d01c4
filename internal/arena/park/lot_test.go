package park

import (
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// newLot returns the lot of the participant in seat 0 of a domain on the Go heap. The participants
// of the domain may run on the given processors.
func newLot(cpus ...int) *Lot {
	mem := layout.OverlayMemory(make([]byte, layout.OffBlocks+layout.BlockSize), make([]byte, layout.PageSize))
	mem.Header.Quota.Store(math.MaxUint64)
	for _, c := range cpus {
		mem.Header.Processors[c/64].Or(1 << (c % 64))
	}
	p := new(Lot)
	p.Init(nil, nil, &mem)
	p.TakeSeat(0)
	return p
}

// A participant spins if all participants together have a second processor.
func TestSpin_CountsTheProcessorsOfAllParticipants(t *testing.T) {
	for _, c := range []struct {
		name  string
		cpus  []int
		quota uint64
		want  bool
	}{
		{"no processor", nil, math.MaxUint64, false},
		{"one processor", []int{3}, math.MaxUint64, false},
		{"both on one processor", []int{3, 3}, math.MaxUint64, false},
		{"two processors", []int{3, 4}, math.MaxUint64, true},
		{"far from each other", []int{0, 1023}, math.MaxUint64, true},
		{"a quota of one", []int{3, 4, 5}, 1, false},
		{"a quota of two", []int{3, 4, 5}, 2, true},
	} {
		p := newLot(c.cpus...)
		p.mem.Header.Quota.Store(c.quota)
		got := p.startSpin()
		if got {
			if p.startSpin() {
				t.Errorf("%s: one participant spins twice", c.name)
			}
			p.stopSpin()
		}
		if got != c.want {
			t.Errorf("%s: startSpin is %v, want %v", c.name, got, c.want)
		}
	}
}

// With n processors, n-1 participants may spin.
func TestSpin_LeavesAProcessorToTheOthers(t *testing.T) {
	p := newLot(0, 1, 2)
	for other := range 3 {
		want := other < 2
		if got := p.startSpin(); got != want {
			t.Errorf("beside %d spinners startSpin is %v, want %v", other, got, want)
		} else if got {
			p.stopSpin()
		}
		p.mem.Header.Spinners[0].Or(1 << (other + 1)) // another participant
	}
}

// Garbage in the hints changes only whether a participant spins.
func TestSpin_GarbageIsHarmless(t *testing.T) {
	p := newLot()
	for _, v := range []uint64{0, 1, math.MaxUint64} {
		for _, quota := range []uint64{0, 1, math.MaxUint64} {
			for i := range p.mem.Header.Processors {
				p.mem.Header.Processors[i].Store(v)
			}
			p.mem.Header.Quota.Store(quota)
			polls := 0
			found := p.SpinUntil(t.Context(), new(AdaptiveBackoff), func() bool { polls++; return polls > 10 })
			if !found || polls != 11 {
				t.Errorf("processors %#x, quota %#x: found is %v after %d polls", v, quota, found, polls)
			}
		}
	}
}

// A backoff skips a try that fails for longer each time.
func TestBackoff_SkipsFailingTries(t *testing.T) {
	var h AdaptiveBackoff
	countSkipped := func() (n int) {
		for !h.IsDue() {
			n++
		}
		return n
	}
	for i, want := range []int{0, 0, 1, 3, 7, 15, 31, 63, 63} {
		if got := countSkipped(); got != want {
			t.Errorf("skipped %d times after %d failures, want %d", got, i, want)
		}
		h.RecordResult(false)
	}
	countSkipped()
	h.RecordResult(true)
	if got := countSkipped(); got != 0 {
		t.Errorf("skipped %d times after a success", got)
	}
}

// A spin that is skipped does not test the condition: with both sides on one processor even the
// first tests disturb the other side.
func TestBackoff_SkippedSpinDoesNotTest(t *testing.T) {
	p := newLot(0, 1)
	var h AdaptiveBackoff
	h.RecordResult(false)
	h.RecordResult(false)
	if p.SpinUntil(t.Context(), &h, func() bool { t.Error("tested"); return true }) {
		t.Error("a skipped spin has succeeded")
	}
	if !p.SpinUntil(t.Context(), &h, func() bool { return true }) {
		t.Error("a spin that is due has not tested the condition")
	}
	h.RecordResult(false)
	if !h.IsDue() {
		t.Error("the success was not recorded")
	}
}

// A rungBells records the seats of the doorbells that were rung.
type rungBells struct{ seats []int }

func (b *rungBells) RingBell(seat int, _ uint64, _ Topic) bool {
	b.seats = append(b.seats, seat)
	return false
}

// A newcomer to a full domain has no seat, and wakes the participants in all of them.
func TestWakeAll_ReachesSeat0BeforeASeatIsTaken(t *testing.T) {
	p, bells := newLot(), new(rungBells)
	for _, seat := range []int{0, 7} {
		w := &p.mem.Participants[seat].State
		w.CAS(w.Load(), w.Load().WithState(word.ParticipantJoining))
	}
	for _, c := range []struct {
		seated bool
		want   []int
	}{{false, []int{0, 7}}, {true, []int{7}}} {
		p.Init(nil, bells, &p.mem)
		if c.seated {
			p.TakeSeat(0)
		}
		bells.seats = nil
		p.WakeAll(NoTopic)
		if !slices.Equal(bells.seats, c.want) {
			t.Errorf("seated %v: woke seats %v, want %v", c.seated, bells.seats, c.want)
		}
	}
}
