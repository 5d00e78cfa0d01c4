//go:build shoalcrash

package word

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Crashing is true in binaries that `make crashpoints` builds.
const Crashing = true

// crash configures the behavior of this process when it writes shared words.
var crash struct {
	active atomic.Bool
	mu     sync.Mutex
	armed  map[string]*armed // by "file.go:line phase"
	hits   map[string]int    // nil unless writes are recorded

	disabled   string
	heldReaper atomic.Bool
	failing    atomic.Bool
	fullBells  atomic.Bool
}

type armed struct {
	left int // hits before act is called
	act  func()
}

// ArmCrash makes the nth write from now on at site, counted from 1, call act. phase is "before"
// or "after", for a call before or after the write. site is the "file.go:line" where a method of
// [Word] is called. If act is nil, [sys.KillSelf] is called.
func ArmCrash(site, phase string, nth int, act func()) {
	if act == nil {
		act = sys.KillSelf
	}
	crash.mu.Lock()
	defer crash.mu.Unlock()
	if crash.armed == nil {
		crash.armed = make(map[string]*armed)
	}
	crash.armed[site+" "+phase] = &armed{nth, act}
	crash.active.Store(true)
}

// RecordWrites starts to count writes. The returned function stops counting and returns the counts
// by "file.go:line phase".
func RecordWrites() func() map[string]int {
	crash.mu.Lock()
	defer crash.mu.Unlock()
	crash.hits = make(map[string]int)
	crash.active.Store(true)
	return func() map[string]int {
		crash.mu.Lock()
		defer crash.mu.Unlock()
		hits := crash.hits
		crash.hits = nil
		return hits
	}
}

// crashPoint counts a write and calls the function that [ArmCrash] has armed for its site and
// phase. Every method that writes a [Word] must call it with "before" and with "after".
func crashPoint(phase string) {
	if crash.active.Load() {
		reachPoint(phase)
	}
}

func reachPoint(phase string) {
	var pcs [8]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])])
	f, more := frames.Next()
	for more && wordFiles[filepath.Base(f.File)] {
		f, more = frames.Next()
	}
	point := fmt.Sprintf("%s:%d %s", filepath.Base(f.File), f.Line, phase)
	crash.mu.Lock()
	if crash.hits != nil {
		crash.hits[point]++
	}
	act := func() {}
	if a := crash.armed[point]; a != nil {
		if a.left--; a.left == 0 {
			act = a.act
		}
	}
	crash.mu.Unlock()
	act()
}

// DisableBranch disables one named branch of the code, so that a test can prove that the audit
// fails without it. It enables the branch that an earlier call has disabled. It must be called
// while no other goroutine uses the domain.
func DisableBranch(name string) { crash.disabled = name }

// IsDisabled reports whether [DisableBranch] has disabled the branch.
func IsDisabled(name string) bool { return crash.disabled == name }

// HoldReaper stops this process from reaping other participants until it is called with false.
func HoldReaper(hold bool) { crash.heldReaper.Store(hold) }

// IsReaperHeld reports whether [HoldReaper] stops the reaper.
func IsReaperHeld() bool { return crash.heldReaper.Load() }

// FailCommits makes every commit of pages fail halfway while fail is true.
func FailCommits(fail bool) { crash.failing.Store(fail) }

// CommitFails reports whether a commit must fail; see [FailCommits].
func CommitFails() bool { return crash.failing.Load() }

// FillBells makes this process find every doorbell full when it rings for the first time, while
// full is true.
func FillBells(full bool) { crash.fullBells.Store(full) }

// IsBellFull reports whether doorbells are full; see [FillBells].
func IsBellFull() bool { return crash.fullBells.Load() }
