package shoal

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// leftovers describes every child process that is still there.
func leftovers() []string {
	var left []string
	known := make(map[string]bool)
	for _, g := range groups.list() {
		for _, p := range g.running() {
			known[strconv.Itoa(p.PID())] = true
			left = append(left, fmt.Sprintf("%s rank %d (pid %d), started at %s", p.name, p.rank, p.PID(), p.origin))
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

// running returns the processes that have not ended.
func (g *Group) running() []*Process {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []*Process
	for p := range g.live {
		if p.child != nil {
			all = append(all, p)
		}
	}
	return all
}

// caller returns file and line of the nearest caller outside this package.
func caller() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "github.com/shoal-mp/shoal.") || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}
