package sys_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestALockedRangeIsHeldAsLongAsAMappingOfItsDescription(t *testing.T) {
	f, err := sys.Memfd("ranges")
	testutil.NoError(t, err)
	defer f.Close()
	testutil.NoError(t, sys.Resize(f, 1<<20))
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDWR, 0)
	testutil.NoError(t, err)
	got, err := sys.LockRange(again, 8192, 4096)
	testutil.NoError(t, err)
	if !got {
		t.Fatal("a free range is not ours")
	}
	mem, err := sys.MapRange(again, 8192, 4096)
	testutil.NoError(t, err)
	testutil.NoError(t, again.Close())
	if start, n, err := sys.LockedRange(f, 0, 1<<20); start != 8192 || n != 4096 || err != nil {
		t.Errorf("%d bytes at %d are locked, %v; want 4096 at 8192", n, start, err)
	}
	if got, err := sys.LockRange(f, 10000, 1); got || err != nil {
		t.Errorf("what another description has: %v, %v", got, err)
	}
	testutil.NoError(t, sys.Unmap(mem))
	if _, n, err := sys.LockedRange(f, 0, 1<<20); n != 0 || err != nil {
		t.Errorf("%d bytes are locked when nobody has the description, %v", n, err)
	}
}
