package torch

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
)

// A ProcessError describes how a Python process failed. Error returns one line, with the exception
// or else the last line of stderr. The verb %+v adds the traceback, or else the last lines of
// stderr.
type ProcessError struct {
	Target   string // as passed to Spawn
	PID      int
	ExitCode int       // -1 if a signal ended the process
	Signal   os.Signal // the signal that ended the process, or nil
	// Exception is the class of the exception that the function raised, such as "ValueError", or ""
	// if there was none.
	Exception string
	Message   string // of the exception
	Traceback string // as printed by Python
	Stderr    string // the last lines of stderr, at most 8 KiB
	Err       error  // the error of os/exec
}

// Error returns one line: the target, the process ID, and the exception, the signal, or the exit
// status with the last line of stderr.
func (e *ProcessError) Error() string {
	what := fmt.Sprintf("exit status %d", e.ExitCode)
	switch {
	case e.Exception != "":
		what = e.Exception
		if e.Message != "" {
			what += ": " + strings.ReplaceAll(e.Message, "\n", "; ")
		}
	case e.Signal != nil:
		what = "killed by signal: " + e.Signal.String()
	case lastLine(e.Stderr) != "":
		what += ": " + lastLine(e.Stderr)
	}
	return fmt.Sprintf("torch: %s (pid %d): %s", e.Target, e.PID, what)
}

// Unwrap returns Err, the error of os/exec.
func (e *ProcessError) Unwrap() error { return e.Err }

// Format prints the text of [ProcessError.Error] for %v and %s, and adds the traceback or stderr
// for %+v.
func (e *ProcessError) Format(s fmt.State, verb rune) {
	io.WriteString(s, e.Error())
	if verb != 'v' || !s.Flag('+') {
		return
	}
	text := e.Traceback
	if text == "" {
		text = e.Stderr
	}
	if text = strings.TrimRight(text, "\n"); text != "" {
		fmt.Fprintf(s, "\n\t%s", strings.ReplaceAll(text, "\n", "\n\t"))
	}
}

func (p *Process) failure(state *os.ProcessState, err error) *ProcessError {
	e := &ProcessError{Target: p.target, PID: state.Pid(), ExitCode: state.ExitCode(),
		Stderr: p.stderr.String(), Err: err}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
		return e
	}
	_, told, ok := strings.Cut(e.Stderr, "Process "+p.name+":\n") // multiprocessing prints it before the traceback
	// The interpreter itself may fail without that line: a module is missing, or the module lacks
	// the function.
	if !ok && e.ExitCode == 1 {
		at := strings.Index("\n"+e.Stderr, "\n"+tracebackBegins)
		if ok = at >= 0; ok {
			told = e.Stderr[at:]
		}
	}
	if ok {
		e.Traceback = told
		e.Exception, e.Message = lastException(told)
	}
	return e
}

const tracebackBegins = "Traceback (most recent call last):\n"

// lastLine returns the last nonblank line of a text, without surrounding space, or "" if there
// is none.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// lastException returns the class, without its module, and the message of the last exception in
// the output of Python, which is the one that ended the process. The message may span several
// lines. Both are "" if the output has no traceback.
func lastException(traceback string) (class, message string) {
	at := strings.LastIndex("\n"+traceback, "\n"+tracebackBegins)
	if at < 0 {
		return "", ""
	}
	lines := strings.Split(strings.TrimRight(traceback[at+len(tracebackBegins):], "\n"), "\n")
	for len(lines) > 0 && strings.HasPrefix(lines[0], "  ") {
		lines = lines[1:]
	}
	class, message, _ = strings.Cut(strings.Join(lines, "\n"), ": ")
	return class[strings.LastIndexByte(class, '.')+1:], message
}

// tail is an [io.Writer] that keeps the last tailBytes, 8 KiB, of a stream. The zero value is
// empty. Its methods may be called from several goroutines.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 8 << 10

// Write appends to the tail. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if extra := len(t.b) - tailBytes; extra > tailBytes {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b[max(0, len(t.b)-tailBytes):])
}
