package arena

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/test/testutil"
)

// sleeps returns how often the thread has slept.
func sleeps(t *testing.T) int64 {
	t.Helper()
	const thread = 1 // RUSAGE_THREAD, see getrusage(2)
	var u syscall.Rusage
	testutil.NoError(t, syscall.Getrusage(thread, &u))
	return u.Nvcsw
}

// A wait with a ThreadWait spins on its thread. A goroutine that is locked to its thread and yields
// would hand over to another thread and sleep until it is handed back.
func TestSpin_OfAThreadWaitDoesNotSleep(t *testing.T) {
	d := joinedBy(t, 0, 1, 2)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const spins = 200
	quiet := 0
	for range spins {
		polls, before := 0, sleeps(t)
		d.spinUntil(new(ThreadWait), new(adaptiveBackoff), func() bool { polls++; return false })
		if polls < 2*spinPolls {
			t.Fatalf("%d polls, want at least %d", polls, 2*spinPolls)
		}
		if sleeps(t) == before {
			quiet++
		}
	}
	if quiet < spins*4/5 { // the garbage collector may stop the goroutine now and then
		t.Errorf("the thread slept in %d of %d spins", spins-quiet, spins)
	}
}
