package shoal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sentinel"
)

// Errors that describe failures of processes other than an error of their function. Use [errors.Is]
// to test for them.
var (
	// ErrMemoryInUse is returned by SetMemory if this process already has shared memory.
	ErrMemoryInUse = errors.New("shoal: this process has shared memory already")
	// ErrPanic is wrapped if the function or another goroutine of its process panicked, or if the
	// Go runtime failed.
	ErrPanic = errors.New("shoal: panic")

	// ErrExited is wrapped if a process ended before its function had returned: by a signal, or by
	// os.Exit, also with status 0.
	ErrExited = errors.New("shoal: process ended early")

	// ErrOOM is wrapped if the kernel's out-of-memory killer has probably ended a process.
	ErrOOM = errors.New("shoal: out of memory")

	// ErrNoMain is returned by functions that start a process if the program has not called Main or
	// TestMain. Without Main, the new process would run the program from the beginning and start
	// processes itself.
	ErrNoMain = errors.New("shoal: call shoal.Main first in main, or shoaltest.TestMain first in TestMain")

	// ErrNotRegistered is wrapped if the new process does not have the function, because it was
	// registered under a condition that is false there.
	ErrNotRegistered = errors.New("shoal: function is not registered in the new process")

	// ErrArgument is wrapped if the argument of a function could not be encoded or decoded.
	ErrArgument = errors.New("shoal: argument cannot be passed to the process")

	// ErrOrphaned is the cause (see context.Cause) of a worker's context when its parent or another
	// ancestor has died. The worker is ended shortly afterwards, see Options.OrphanGrace.
	ErrOrphaned = errors.New("shoal: a parent process has died")

	// ErrInterrupted is the cause of a worker's context after Process.Interrupt.
	ErrInterrupted = errors.New("shoal: interrupted")

	// ErrAbandoned is wrapped if a goroutine did not stop when it was canceled. It is still
	// running.
	ErrAbandoned = errors.New("shoal: goroutine abandoned, still running")

	// ErrClosed is wrapped by errors of a Group after Wait or Close, and is the cause of its
	// workers' cancellation. It wraps os.ErrClosed.
	ErrClosed = sentinel.New("shoal: group is closed", os.ErrClosed)
)

// A ProcessError describes the failure of a [Process]: its function returned an error or
// panicked, it ended early, or it could not be started. Error returns one line. The verb %+v
// adds the remote stack and the last lines of stderr. [errors.Is] and [errors.As] examine Err.
type ProcessError struct {
	Func string // name passed to Register
	Rank int
	PID  int // 0 if the process could not be started

	// Err is the error that the function returned, or wraps ErrPanic, ErrExited, ErrOOM,
	// ErrNotRegistered, ErrArgument or ErrAbandoned. A returned error keeps its text and every
	// sentinel registered with wire.RegisterError.
	Err error

	Stack    string    // stack of the panic, starting with the user's frames; may be empty
	Stderr   string    // last lines: at most 64, at most 8 KiB
	ExitCode int       // -1 if a signal ended the process or it could not be started
	Signal   os.Signal // signal that ended the process, or nil
	OOM      bool      // whether the out-of-memory killer has probably ended it; see Err
}

// isConsequence reports whether the process failed because another one had ended or had closed
// or broken a shared object.
func (e *ProcessError) isConsequence() bool {
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

// Format prints the line for %v and %s, and all details for %+v.
func (e *ProcessError) Format(s fmt.State, verb rune) {
	io.WriteString(s, e.Error())
	if verb != 'v' || !s.Flag('+') {
		return
	}
	writeSection(s, "stack", e.Stack)
	writeSection(s, "last lines on stderr", e.Stderr)
}

func writeSection(w io.Writer, title, text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		fmt.Fprintf(w, "\n    %s:\n\t%s", title, strings.ReplaceAll(text, "\n", "\n\t"))
	}
}

// oneLine returns the text of an error with its lines joined.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// failures is the error of several processes, in the order of Group.Wait. It is returned for two
// or more errors.
type failures []error

func (f failures) Error() string {
	lines := make([]string, len(f))
	for i, err := range f {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

func (f failures) Unwrap() []error { return f }

// Format forwards the verb, so that %+v prints every stack, unlike errors.Join.
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

// joinErrors combines the errors of a group into one: nil for none, and a single error
// unchanged. The result wraps all of them.
func joinErrors(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return failures(errs)
}

// A described error has its own text and wraps all errors in kinds. errors.Is and errors.As find
// each of them, although the text does not contain theirs.
type described struct {
	text  string
	kinds []error
}

func (d *described) Error() string   { return d.text }
func (d *described) Unwrap() []error { return d.kinds }

func newDescribed(text string, kinds ...error) error { return &described{text, kinds} }
