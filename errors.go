package shoal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/shoal-mp/shoal/internal/arena"
)

// The ways in which a process can fail that are no error of its function. Test for them with
// errors.Is.
var (
	// ErrMemoryInUse is returned by SetMemory if this process has shared memory already.
	ErrMemoryInUse = errors.New("shoal: this process has shared memory already")
	// ErrPanic is wrapped if the function, or any goroutine of its process, panicked, or if the Go
	// runtime gave up.
	ErrPanic = errors.New("shoal: panic")

	// ErrExited is wrapped if a process ended, by os.Exit or by a signal, before its function had
	// returned.
	ErrExited = errors.New("shoal: process ended early")

	// ErrOOM is wrapped if, as far as can be known, the kernel's out-of-memory killer has ended a
	// process.
	ErrOOM = errors.New("shoal: out of memory")

	// ErrNoMain is returned by each call that starts a process in a program that has not called
	// Main or TestMain yet. Without Main the new process would run the program from its beginning,
	// and would start processes in its turn.
	ErrNoMain = errors.New("shoal: call shoal.Main first in main, or shoaltest.TestMain first in TestMain")

	// ErrNotRegistered is wrapped if the new process does not know the function: it was registered
	// under a condition that does not hold there.
	ErrNotRegistered = errors.New("shoal: function is not registered in the new process")

	// ErrArgument is wrapped if the argument of a function could not be sent or read.
	ErrArgument = errors.New("shoal: argument did not cross")

	// ErrOrphaned is the cause (see context.Cause) of a worker's context when the process that
	// started it, or an ancestor of that process, has died. The worker ends a moment later, see
	// Options.OrphanGrace.
	ErrOrphaned = errors.New("shoal: a parent process has died")

	// ErrInterrupted is the cause of a worker's context after Process.Interrupt.
	ErrInterrupted = errors.New("shoal: interrupted")

	// ErrAbandoned is wrapped if a goroutine did not stop when it was told to. It was left alone
	// and runs on.
	ErrAbandoned = errors.New("shoal: goroutine left alone")

	// ErrClosed is wrapped by the errors of a Group after Wait or Close, and is the cause of its
	// workers' cancellation. It wraps os.ErrClosed.
	ErrClosed = fmt.Errorf("shoal: group is closed%.0w", os.ErrClosed)
)

// A ProcessError says which process failed, and how. Error is one line. %+v adds the remote stack
// and the last lines of stderr. errors.Is and errors.As look into Err.
type ProcessError struct {
	Func string // name given to Register
	Rank int
	PID  int // 0 if the process could not be started

	// Err is the error that the function returned, or wraps ErrPanic, ErrExited, ErrOOM,
	// ErrNotRegistered, ErrArgument or ErrAbandoned. A returned error has its text and every
	// sentinel that wire.RegisterError knows.
	Err error

	Stack    string    // the stack of the panic, the user's frames first; empty if there was none
	Stderr   string    // the last lines: at most 64, at most 8 KiB
	ExitCode int       // -1 if a signal ended it or it could not be started
	Signal   os.Signal // the signal that ended it, or nil
	OOM      bool      // the kernel's out-of-memory killer has probably ended it; Err says how probably
}

// follows reports whether the process failed because another one had ended.
func (e *ProcessError) follows() bool {
	peer, ok := errors.AsType[*arena.PeerError](e.Err)
	return ok && peer.PID != e.PID || errors.Is(e.Err, arena.ErrBroken) || errors.Is(e.Err, os.ErrClosed)
}

// Error returns one line.
func (e *ProcessError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("shoal: %s rank %d: %s", e.Func, e.Rank, oneLine(e.Err))
	}
	return fmt.Sprintf("shoal: %s rank %d (pid %d): %s", e.Func, e.Rank, e.PID, oneLine(e.Err))
}

// Unwrap returns Err.
func (e *ProcessError) Unwrap() error { return e.Err }

// Format prints the line for %v and %s, and everything for %+v.
func (e *ProcessError) Format(s fmt.State, verb rune) {
	io.WriteString(s, e.Error())
	if verb != 'v' || !s.Flag('+') {
		return
	}
	section(s, "stack", e.Stack)
	section(s, "last lines on stderr", e.Stderr)
}

func section(w io.Writer, title, text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		fmt.Fprintf(w, "\n    %s:\n\t%s", title, strings.ReplaceAll(text, "\n", "\n\t"))
	}
}

// oneLine joins the lines of a text that may come from errors.Join or from anywhere.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// failures is the error of several processes, in the order of Group.Wait.
type failures []error

func (f failures) Error() string {
	lines := make([]string, len(f))
	for i, err := range f {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

func (f failures) Unwrap() []error { return f }

// Format hands the verb on, so that %+v prints every stack, which errors.Join does not do.
func (f failures) Format(s fmt.State, verb rune) {
	for i, err := range f {
		if i > 0 {
			io.WriteString(s, "\n")
		}
		if verb == 'v' && s.Flag('+') {
			fmt.Fprintf(s, "%+v", err)
		} else {
			fmt.Fprintf(s, "%v", err)
		}
	}
}

// join makes one error of the errors of a group.
func join(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return failures(errs)
}

// A described error has a text of its own. For errors.Is and errors.As it is everything in kinds.
type described struct {
	text  string
	kinds []error
}

func (d *described) Error() string   { return d.text }
func (d *described) Unwrap() []error { return d.kinds }

func describe(text string, kinds ...error) error { return &described{text, kinds} }
