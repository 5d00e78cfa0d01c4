package park

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
	p := newLot(0, 1, 2)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const want = 200
	spins, quiet := 0, 0
	for tries := 0; spins < want && tries < 100*want; tries++ {
		polls, before := 0, sleeps(t)
		p.SpinUntil(new(ThreadWait), new(AdaptiveBackoff), func() bool { polls++; return false })
		if polls < 2*spinPolls {
			continue // the thread was preempted, and the time was over before it might yield
		}
		spins++
		if sleeps(t) == before {
			quiet++
		}
	}
	if quiet < want*4/5 { // the garbage collector may stop the goroutine now and then
		t.Errorf("the thread slept in %d of %d spins", spins-quiet, spins)
	}
}
