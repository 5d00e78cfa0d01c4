package arena_test

import (
	"flag"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/test/testutil"
)

var domains = flag.Int("shm.domains", 1000, "how many domains are made one after the other")

// mapped returns how many mappings of domains this process has.
func mapped(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	testutil.NoError(t, err)
	return strings.Count(string(maps), "/memfd:shoal-data")
}

// The 699th domain of a process had no address space while nothing was ever unmapped.
func TestClose_GivesTheAddressesBack(t *testing.T) {
	before, most := mapped(t), 0
	for i := range *domains {
		d, err := arena.New(arena.Options{Budget: 64 << 20})
		if err != nil {
			t.Fatalf("domain %d: %v", i, err)
		}
		h := alloc(t, d, 4096, "x")
		testutil.NoError(t, d.Release(h))
		testutil.NoError(t, d.Close())
		if i%100 == 0 {
			most = max(most, mapped(t))
		}
	}
	t.Logf("at most %d domains were mapped", most)
	testutil.Eventually(t, func() bool { runtime.GC(); return mapped(t) <= before }, "a closed domain is still mapped")
}
