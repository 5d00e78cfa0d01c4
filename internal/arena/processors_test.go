package arena

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// Processors beyond the set are folded into it.
func TestAddProcessors_FoldsHighNumbers(t *testing.T) {
	d := testutil.Value(NewLocal(8 << 20))(t)
	defer d.Close()
	for i := range d.mem.Header.Processors {
		d.mem.Header.Processors[i].Store(0)
	}
	d.addProcessors([]int{0, 1025})
	if got := d.mem.Header.Processors[0].Load(); got != 3 {
		t.Errorf("the first word is %#x, want 3", got)
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
