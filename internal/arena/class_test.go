package arena_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

// sizes yields every size up to 64 KiB and then samples, with the neighbours of each class, up to
// 64 MiB.
func sizes(yield func(uint64) bool) {
	for n := range uint64(64 << 10) {
		if !yield(n) {
			return
		}
	}
	for c := range arena.ClassCount {
		for _, n := range []uint64{arena.ClassSize(c) - 1, arena.ClassSize(c), arena.ClassSize(c) + 1} {
			if n <= 1<<40 && !yield(n) {
				return
			}
		}
	}
	for range 100_000 {
		if !yield(rand.Uint64N(64<<20 + 1)) {
			return
		}
	}
}

func TestClass_HoldsItsSizesAndWastesAQuarterAtMost(t *testing.T) {
	for n := range sizes {
		got := arena.ClassSize(arena.ClassOf(n))
		if got < n {
			t.Fatalf("%d bytes get a block of %d", n, got)
		}
		if n > 256 && got-n > n/4 || got-n >= 64 && n <= 256 {
			t.Fatalf("%d bytes get a block of %d: more than a quarter is waste", n, got)
		}
	}
}

func TestClass_IsMonotoneAndItsOwnInverse(t *testing.T) {
	for c := range arena.ClassCount {
		if got := arena.ClassOf(arena.ClassSize(c)); got != c {
			t.Errorf("class %d of %d bytes is found as class %d", c, arena.ClassSize(c), got)
		}
		if c > 0 && arena.ClassSize(c) <= arena.ClassSize(c-1) {
			t.Errorf("class %d is not larger than the one before", c)
		}
	}
	if last := arena.ClassSize(arena.ClassCount - 1); last < 1<<40 {
		t.Errorf("the last class has %d bytes, the largest domain 1 TiB", last)
	}
}

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
		if align := min(arena.ExtentAlign(arena.ClassOf(uint64(size))), n&-n); off%align != 0 {
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
