//go:build shoalcrash

package arena

import (
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/sys"
)

// crashing is true in binaries that `make crashpoints` builds.
const crashing = true

// crash is what this process has been told to do at its writes of shared words.
var crash struct {
	active atomic.Bool
	mu     sync.Mutex
	armed  map[string]*armed // by "file.go:line phase"
	hits   map[string]int    // not nil: record

	disabled   string
	heldReaper atomic.Bool
	failing    atomic.Bool
}

type armed struct {
	left int // hits before act
	act  func()
}

// ArmCrash makes the nth write from now on at site ("file.go:line" of the call of Word's method),
// before or after it is done as phase says, call act: sys.KillSelf if it is nil.
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

// RecordWrites counts the writes from now on; the function that it returns ends that and returns
// the counts by "file.go:line phase".
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

// obey panics where a word changes as it may not.
func obey[T law[T]](old, next T) {
	if old.step(next) == "" {
		panic(fmt.Sprintf("shm: %T goes from %v to %v, which is no transition of it", old, old, next))
	}
}

// crashPoint is called by every write of a Word.
func crashPoint(phase string) {
	if crash.active.Load() {
		reachPoint(phase)
	}
}

// wordFiles have the methods by which words are written: the site is who calls them.
var wordFiles = map[string]bool{"word.go": true, "word_typed.go": true}

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

// DisableBranch takes one branch out of the reaper, so that an audit can be seen to fail without
// it.
func DisableBranch(name string) { crash.disabled = name }

func disabled(name string) bool { return crash.disabled == name }

// HoldReaper keeps this process from reaping anybody until it is let go.
func HoldReaper(hold bool) { crash.heldReaper.Store(hold) }

func reaperHeld() bool { return crash.heldReaper.Load() }

// FailCommits makes every commit of pages fail halfway.
func FailCommits(fail bool) { crash.failing.Store(fail) }

func commitFails() bool { return crash.failing.Load() }
