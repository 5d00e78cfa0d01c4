package arena_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestExtent_IsAlignedAndApart(t *testing.T) {
	d := newDomain(t, 64<<20)
	type extent struct{ off, size uint64 }
	var all []extent
	for range 3000 {
		size := 1 + rand.IntN(1<<(4+rand.IntN(14)))
		h, err := d.Alloc(size)
		testutil.NoError(t, err)
		off, n := d.Extent(h)
		all = append(all, extent{off, n})
		if align := min(layout.ExtentAlign(layout.ClassOf(uint64(size))), n&-n); off%align != 0 {
			t.Fatalf("a block of %d bytes lies at %#x, want a multiple of %#x", size, off, align)
		}
	}
	slices.SortFunc(all, func(a, b extent) int { return cmp.Compare(a.off, b.off) })
	for i := 1; i < len(all); i++ {
		if all[i-1].off+all[i-1].size > all[i].off {
			t.Fatalf("blocks at %#x with %d bytes and at %#x overlap", all[i-1].off, all[i-1].size, all[i].off)
		}
	}
}

func TestExtent_OfAHugeBlockBeginsAtAHugePage(t *testing.T) {
	d := newDomain(t, 64<<20)
	alloc(t, d, 100, "small")
	for _, size := range []int{2 << 20, 5 << 20} {
		if off, _ := d.Extent(alloc(t, d, size, "")); off%(2<<20) != 0 {
			t.Errorf("a block of %d bytes lies at %#x", size, off)
		}
	}
}
