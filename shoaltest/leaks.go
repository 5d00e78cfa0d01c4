package shoaltest

import (
	"slices"
	"strings"

	"github.com/shoal-mp/shoal/internal/leak"
)

// A TB is the part of testing.TB that NoLeaks needs.
type TB interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// NoLeaks fails t for each block of shared memory and each child process that t leaves behind. It
// compares what there is at the call with what there is when t has ended, and all cleanups that t
// registered after the call. It waits at most five seconds for the garbage collector and for
// processes that are ending.
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
			t.Errorf("shoaltest: the test left something behind:\n\t%s", strings.Join(left, "\n\t"))
		}
	})
}
