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

// recorded holds the call stacks that opened descriptors, by number, and started processes, by pid.
// The maps are nil until [Record] is called.
var recorded struct {
	sync.Mutex
	descriptors map[string]opening
	processes   map[string][]uintptr
}

// An opening is the call stack that opened a descriptor, and the target of the descriptor at that
// time, as named by /proc. The target tells whether the descriptor was closed and its number reused
// by a package that does not report its descriptors.
type opening struct {
	to    string
	calls []uintptr
}

// maxCalls is the maximum number of calls in a report.
const maxCalls = 32

// Record makes this process record the call stacks that open descriptors through package sys and
// start processes. Each record costs a few microseconds, so only test binaries should call it.
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
		calls := callerStack()
		recorded.Lock()
		defer recorded.Unlock()
		recorded.descriptors[number] = opening{to, calls}
	})
}

// Started records the call stack that started a child process. The code that starts a process
// should call it. It does nothing before [Record].
func Started(pid int) {
	recorded.Lock()
	defer recorded.Unlock()
	if recorded.processes != nil {
		recorded.processes[strconv.Itoa(pid)] = callerStack()
	}
}

// callerStack returns the call stack without callerStack and the function that called it.
func callerStack() []uintptr {
	calls := make([]uintptr, maxCalls)
	return calls[:runtime.Callers(3, calls)]
}

// Starter formats the call stack that started the child process pid, to be appended to a line. It
// returns "" if the stack is unknown.
func Starter(pid string) string {
	recorded.Lock()
	defer recorded.Unlock()
	return Calls(recorded.processes[pid])
}

// openerStack formats the call stack that opened a descriptor which now has the target to. It
// returns "" if the stack is unknown.
func openerStack(number, to string) string {
	recorded.Lock()
	defer recorded.Unlock()
	if o, ok := recorded.descriptors[number]; ok && o.to == to {
		return Calls(o.calls)
	}
	return ""
}

// Calls formats a call stack as panics do, with one line for the function and one for its position.
// Each line is indented and preceded by a line break.
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
