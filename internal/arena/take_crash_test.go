//go:build shoalcrash

package arena

import (
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A block that is punched while somebody takes it has no pages: the taker finds that out.
func TestAlloc_OfABlockThatIsPunchedMeanwhile(t *testing.T) {
	const size = 100 << 10
	d, err := NewLocal(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	alloc := func() Handle {
		h, err := d.Alloc(size)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	again := func(h Handle) {
		if err := d.Release(h); err != nil {
			t.Fatal(err)
		}
	}
	again(alloc())
	hits := word.RecordWrites()
	h := alloc()
	points := hits()
	again(h)
	punched := false
	for point := range points {
		site, phase, _ := strings.Cut(point, " ")
		if strings.HasPrefix(site, "store_refs.go:") && phase == "before" { // its own bit
			word.ArmCrash(site, phase, 1, func() { d.PunchIdle(); punched = true })
		}
	}
	h = alloc()
	if n := d.mem.Blocks[h.Block()].Committed.Load(); n < size {
		t.Errorf("a block of %d bytes with pages for %d", size, n)
	}
	if !punched {
		t.Error("nothing was punched")
	}
	again(h)
	if d.Stats().Blocks != 0 {
		t.Error("a block is left")
	}
}
