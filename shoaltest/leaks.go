package shoaltest

import (
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/leak"
)

// A TB is the subset of [testing.TB] used by [NoLeaks].
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// NoLeaks makes t fail for each block of shared memory and each child process that it leaks. It
// compares the state at the call with the state after t and all cleanups that t registers after the
// call. It waits at most five seconds for the garbage collector and for ending processes.
//
// Tests that run in parallel with t must not share memory or start processes.
func NoLeaks(t TB) {
	t.Helper()
	leak.Processes.Rest(false)
	before, children := leak.Take(), leak.Processes.Children()
	t.Cleanup(func() {
		t.Helper()
		left := leak.Settled(func() []string {
			leak.Processes.Rest(false) // one may have been started meanwhile
			now := slices.DeleteFunc(leak.Processes.Children(), func(c string) bool {
				return slices.Contains(children, c)
			})
			return append(now, before.Blocks()...)
		})
		if len(left) > 0 {
			t.Errorf("shoaltest: the test leaked:\n\t%s", strings.Join(left, "\n\t"))
		}
	})
}
