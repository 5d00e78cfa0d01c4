package shoal

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/shoal-mp/shoal/internal/leak"
	"github.com/shoal-mp/shoal/internal/registry"
)

// Package shoaltest gets the children through internal/leak.
func init() {
	leak.Processes = leak.Program{
		Begin: func() {
			if self != nil {
				self.serveJob()
			}
			registry.Seal()
			openInherited() // opens the files that stay open for the life of the process
		},
		Rest:     reserve.endWaiting,
		Children: describeChildren,
		End:      groups.close,
		Leave:    leaveDomain,
	}
}

// describeChildren returns a line of text for every child process that has not ended, sorted:
// for the processes of groups with the place of their start, and for other children of this
// process.
func describeChildren() []string {
	var left []string
	known := make(map[string]bool)
	for _, g := range groups.list() {
		for _, p := range g.runningProcesses() {
			known[strconv.Itoa(p.PID())] = true
			left = append(left, fmt.Sprintf("%s rank %d (pid %d), started at %s%s", p.name, p.rank, p.PID(),
				p.origin.callSite(), leak.Calls(p.origin)))
		}
	}
	for _, pid := range childrenOf() {
		if !known[pid] {
			left = append(left, "pid "+pid+": child process not started by shoal, or not waited for"+leak.Starter(pid))
		}
	}
	slices.Sort(left)
	return left
}

// A trail is a call stack, innermost call first. Recording it does not look up file names.
type trail []uintptr

func callerTrail() trail {
	pcs := make(trail, 16)
	return pcs[:runtime.Callers(2, pcs)]
}

// callSite returns the file and line of the innermost call from outside this package. If all
// calls are inside, it returns the outermost one.
func (t trail) callSite() string {
	frames := runtime.CallersFrames(t)
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "github.com/shoal-mp/shoal.") || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}
