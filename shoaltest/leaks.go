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

// NoLeaks fails t if, when t and the cleanups registered after this call have ended, there are
// blocks of shared memory or child processes that were not there at the call. It waits five seconds
// for garbage to be collected and processes to end. Tests that run beside t must not share memory
// or start processes meanwhile.
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
