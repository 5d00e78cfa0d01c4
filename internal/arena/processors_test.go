package arena

import (
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// joinedBy returns a domain with one participant, which may run on the given processors.
func joinedBy(t *testing.T, cpus ...int) *Domain {
	t.Helper()
	d := testutil.Value(NewLocal(8 << 20))(t)
	t.Cleanup(func() { testutil.NoError(t, d.Close()) })
	for i := range d.mem.Header.Processors {
		d.mem.Header.Processors[i].Store(0)
	}
	d.mem.Header.Quota.Store(math.MaxUint64)
	d.addProcessors(cpus)
	return d
}

// A participant spins if all participants together have a second processor.
func TestSpin_CountsTheProcessorsOfAllParticipants(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  []int
		second []int
		quota  uint64
		want   bool
	}{
		{"one processor", []int{3}, nil, math.MaxUint64, false},
		{"both on one processor", []int{3}, []int{3}, math.MaxUint64, false},
		{"each on its own", []int{3}, []int{4}, math.MaxUint64, true},
		{"far from each other", []int{0}, []int{1023}, math.MaxUint64, true},
		{"beyond the set", []int{0}, []int{1025}, math.MaxUint64, true},
		{"two processors", []int{3, 4}, nil, math.MaxUint64, true},
		{"a quota of one", []int{3, 4}, []int{5}, 1, false},
		{"a quota of two", []int{3, 4}, []int{5}, 2, true},
	} {
		d := joinedBy(t, c.first...)
		d.addProcessors(c.second)
		d.mem.Header.Quota.Store(c.quota)
		got := d.startSpin()
		if got {
			if d.startSpin() {
				t.Errorf("%s: one participant spins twice", c.name)
			}
			d.stopSpin()
		}
		if got != c.want {
			t.Errorf("%s: startSpin is %v, want %v", c.name, got, c.want)
		}
	}
}

// With n processors, n-1 participants may spin.
func TestSpin_LeavesAProcessorToTheOthers(t *testing.T) {
	d := joinedBy(t, 0, 1, 2)
	for other := range 3 {
		want := other < 2
		if got := d.startSpin(); got != want {
			t.Errorf("beside %d spinners startSpin is %v, want %v", other, got, want)
		} else if got {
			d.stopSpin()
		}
		d.mem.Header.Spinners[0].Or(1 << (d.seat + other + 1)) // another participant
	}
}

// Garbage in the hints changes only whether a participant spins.
func TestSpin_GarbageIsHarmless(t *testing.T) {
	d := joinedBy(t)
	for _, v := range []uint64{0, 1, math.MaxUint64} {
		for _, quota := range []uint64{0, 1, math.MaxUint64} {
			for i := range d.mem.Header.Processors {
				d.mem.Header.Processors[i].Store(v)
			}
			d.mem.Header.Quota.Store(quota)
			polls := 0
			found := d.spinUntil(t.Context(), new(adaptiveBackoff), func() bool { polls++; return polls > 10 })
			if !found || polls != 11 {
				t.Errorf("processors %#x, quota %#x: found is %v after %d polls", v, quota, found, polls)
			}
		}
	}
}

// A process that joins a domain adds its processors to the set.
func TestJoin_AddsProcessors(t *testing.T) {
	d := testutil.Value(NewLocal(8 << 20))(t)
	defer d.Close()
	cpus, err := sys.Affinity()
	if err != nil {
		t.Skip(err)
	}
	var got []int
	for c := range 64 * layout.ProcessorWords {
		if d.mem.Header.Processors[c/64].Load()&(1<<(c%64)) != 0 {
			got = append(got, c)
		}
	}
	if !slices.Equal(got, cpus) {
		t.Errorf("the set is %v, want %v", got, cpus)
	}
}
