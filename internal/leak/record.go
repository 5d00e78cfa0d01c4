package leak

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/shoal-mp/shoal/internal/sys"
)

// recorded has the calls that opened descriptors and started processes, by descriptor number and
// pid, once [Record] was called.
var recorded struct {
	sync.Mutex
	descriptors map[string]opening
	processes   map[string][]uintptr
}

// An opening is where a descriptor was opened, and the file that it referred to, as /proc names it.
// The name tells whether the descriptor was closed meanwhile and its number used again by a package
// that does not report what it opens.
type opening struct {
	to    string
	calls []uintptr
}

// maxCalls bounds the calls of a report.
const maxCalls = 32

// Record makes this process record the calls that open descriptors through package sys and that
// start processes. It costs a few microseconds for each, so only test binaries should call it.
func Record() {
	recorded.Lock()
	defer recorded.Unlock()
	if recorded.descriptors != nil {
		return
	}
	recorded.descriptors, recorded.processes = make(map[string]opening), make(map[string][]uintptr)
	sys.OnOpen(func(fd int) {
		number := strconv.Itoa(fd)
		to, err := os.Readlink("/proc/self/fd/" + number)
		if err != nil {
			return
		}
		calls := callers()
		recorded.Lock()
		defer recorded.Unlock()
		recorded.descriptors[number] = opening{to, calls}
	})
}

// Started records the calls that started a child process. It does nothing before [Record].
func Started(pid int) {
	recorded.Lock()
	defer recorded.Unlock()
	if recorded.processes != nil {
		recorded.processes[strconv.Itoa(pid)] = callers()
	}
}

// callers returns the calls that lead to its caller's caller.
func callers() []uintptr {
	calls := make([]uintptr, maxCalls)
	return calls[:runtime.Callers(3, calls)]
}

// Starter describes the calls that started the child process pid, for the end of a line. It returns
// "" if they are not known.
func Starter(pid string) string {
	recorded.Lock()
	defer recorded.Unlock()
	return Calls(recorded.processes[pid])
}

// opener describes the calls that opened a descriptor that now refers to the file to.
func opener(number, to string) string {
	recorded.Lock()
	defer recorded.Unlock()
	if o, ok := recorded.descriptors[number]; ok && o.to == to {
		return Calls(o.calls)
	}
	return ""
}

// Calls describes calls as panics do, a line for the function and one for its place, each indented
// and after a line break.
func Calls(calls []uintptr) string {
	if len(calls) == 0 {
		return ""
	}
	var b strings.Builder
	for frames := runtime.CallersFrames(calls); ; {
		f, more := frames.Next()
		if f.Function != "" && f.Function != "runtime.goexit" {
			fmt.Fprintf(&b, "\n\t\t%s\n\t\t\t%s:%d", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}
