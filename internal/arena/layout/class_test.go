package layout_test

import (
	"math/rand/v2"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena/layout"
)

// sizes yields every size up to 64 KiB and then samples, with the neighbours of each class, up to
// 64 MiB.
func sizes(yield func(uint64) bool) {
	for n := range uint64(64 << 10) {
		if !yield(n) {
			return
		}
	}
	for c := range layout.ClassCount {
		for _, n := range []uint64{layout.ClassSize(c) - 1, layout.ClassSize(c), layout.ClassSize(c) + 1} {
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
		got := layout.ClassSize(layout.ClassOf(n))
		if got < n {
			t.Fatalf("%d bytes get a block of %d", n, got)
		}
		if n > 256 && got-n > n/4 || got-n >= 64 && n <= 256 {
			t.Fatalf("%d bytes get a block of %d: more than a quarter is waste", n, got)
		}
	}
}

func TestClass_IsMonotoneAndItsOwnInverse(t *testing.T) {
	for c := range layout.ClassCount {
		if got := layout.ClassOf(layout.ClassSize(c)); got != c {
			t.Errorf("class %d of %d bytes is found as class %d", c, layout.ClassSize(c), got)
		}
		if c > 0 && layout.ClassSize(c) <= layout.ClassSize(c-1) {
			t.Errorf("class %d is not larger than the one before", c)
		}
	}
	if last := layout.ClassSize(layout.ClassCount - 1); last < 1<<40 {
		t.Errorf("the last class has %d bytes, the largest domain 1 TiB", last)
	}
}
