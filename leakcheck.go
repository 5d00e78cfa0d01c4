package shoal

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An inventory is what a process has besides its memory. What is there after the tests and was not
// before is left over.
type inventory struct {
	blocks      int
	goroutines  map[string]string // by id
	descriptors map[string]string // by number and what it refers to
}

// takeInventory is called before the tests. What a process opens once and for ever is opened now.
func takeInventory() inventory {
	inherited()
	n, _ := blocks()
	return inventory{n, goroutines(), descriptors()}
}

// leave ends all that this package has, step by step, and describes what is left over at each.
func (before inventory) leave() (left []string) {
	reserve.close()
	left = children()
	groups.close()
	left = append(left, settled(before.heldBlocks)...)
	leaveDomain()
	return append(left, settled(func() []string {
		return append(added(before.goroutines, goroutines()), added(before.descriptors, descriptors())...)
	})...)
}

// settled asks until nothing is left over, since goroutines take a moment to end and garbage to be
// found, but not for ever.
func settled(leftovers func() []string) []string {
	const patience, often = 5 * time.Second, 10 * time.Millisecond
	for end := time.Now().Add(patience); ; time.Sleep(often) {
		left := leftovers()
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
		runtime.GC()
	}
}

// added describes what is in now and was not in before.
func added(before, now map[string]string) (all []string) {
	for key, text := range now {
		if _, ok := before[key]; !ok {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// heldBlocks describes the blocks of the domain that are in use.
func (before inventory) heldBlocks() []string {
	n, mine := blocks()
	if n <= before.blocks {
		return nil
	}
	all := []string{fmt.Sprintf(
		"%d blocks of shared memory, %d of them held by this process; SHOAL_DEBUG=lifetime tells where each is from", n-before.blocks, len(mine))}
	for _, h := range mine {
		all = append(all, strings.ReplaceAll(strings.TrimSpace(h.String()), "\n", "\n\t"))
	}
	return all
}

// goroutines describes those of this process but for the caller and those that the testing package
// and the runtime keep.
func goroutines() map[string]string {
	all := make(map[string]string)
	dump := make([]byte, 1<<20)
	for n, text := range strings.Split(string(dump[:runtime.Stack(dump, true)]), "\n\n") {
		head, frames, _ := strings.Cut(text, "\n")
		if n > 0 && !slices.ContainsFunc(kept, func(f string) bool { return strings.Contains(frames, f) }) {
			id, _, _ := strings.Cut(strings.TrimPrefix(head, "goroutine "), " ")
			all[id] = head + "\n\t\t" + strings.ReplaceAll(strings.TrimSpace(userFrames(frames)), "\n", "\n\t\t")
		}
	}
	return all
}

// kept are functions of goroutines that begin once and never end.
var kept = []string{"os/signal.signal_recv(", "os/signal.loop(", "runtime.ensureSigM", "testing.(*M).startAlarm"}

// children describes every child process that is still there.
func children() []string {
	var left []string
	known := make(map[string]bool)
	for _, g := range groups.list() {
		for _, p := range g.running() {
			known[strconv.Itoa(p.PID())] = true
			left = append(left, fmt.Sprintf("%s rank %d (pid %d), started at %s", p.name, p.rank, p.PID(),
				p.origin.place()))
		}
	}
	for _, pid := range childrenOf() {
		if !known[pid] {
			left = append(left, "pid "+pid+", not started by shoal, or not waited for")
		}
	}
	slices.Sort(left)
	return left
}

// A trail is the calls that led somewhere, the last one first. Taking it does not wait until their
// places are looked up.
type trail []uintptr

func callers() trail {
	pcs := make(trail, 16)
	return pcs[:runtime.Callers(2, pcs)]
}

// place returns file and line of the last call from outside this package.
func (t trail) place() string {
	frames := runtime.CallersFrames(t)
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "github.com/shoal-mp/shoal.") || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}
