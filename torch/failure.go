package torch

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
)

// A ProcessError says how a Python process failed. Error returns one line, with the last line of
// stderr if no exception is known. The verb %+v adds the traceback, or the last lines of stderr.
type ProcessError struct {
	Target   string // as given to Spawn
	PID      int
	ExitCode int       // -1 if a signal ended it
	Signal   os.Signal // the signal that ended it, or nil
	// the class of the exception that ended the function, such as "ValueError"; "" if there was
	// none
	Exception string
	Message   string // of the exception
	Traceback string // as Python prints it
	Stderr    string // the last lines, at most 8 KiB
	Err       error  // the error of os/exec
}

// Error returns one line.
func (e *ProcessError) Error() string {
	what := fmt.Sprintf("exit status %d", e.ExitCode)
	switch {
	case e.Exception != "":
		what = e.Exception
		if e.Message != "" {
			what += ": " + strings.ReplaceAll(e.Message, "\n", "; ")
		}
	case e.Signal != nil:
		what = "ended by signal: " + e.Signal.String()
	case lastLine(e.Stderr) != "":
		what += ": " + lastLine(e.Stderr)
	}
	return fmt.Sprintf("torch: %s (pid %d): %s", e.Target, e.PID, what)
}

// Unwrap returns Err, the error of os/exec.
func (e *ProcessError) Unwrap() error { return e.Err }

// Format prints the line for %v and %s, and everything for %+v.
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
	_, told, ok := strings.Cut(e.Stderr, "Process "+p.name+":\n") // printed by multiprocessing before the traceback
	// of the interpreter itself: a missing module, or a function that the module lacks
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

// lastLine returns the last line of a text that is not blank.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// lastException reads the class and the message of the exception that ended a process from its
// traceback. Other exceptions may come before it. Its message may have further lines.
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

// tail keeps the end of a stream.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailBytes = 8 << 10

// Write never fails.
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
