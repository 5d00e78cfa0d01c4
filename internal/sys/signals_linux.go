//go:build amd64 || arm64

package sys

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Signals is a record of the action of the process for each signal, and of the signal stack of
// one thread. [SaveSignals] makes it, for [Signals.Restore].
type Signals struct {
	actions [lastSignal + 1]sigaction
	stack   signalStack
}

// lastSignal is the kernel's _NSIG.
const lastSignal = 64

// The C library reserves signals 32 to 34 for its threads when it first needs them:
// https://man7.org/linux/man-pages/man7/nptl.7.html. If they are taken from the C library, the
// process cannot cancel a thread or change its user. onStack is SA_ONSTACK. Without it a handler
// runs on the small stack of the interrupted goroutine.
const (
	firstOfLibc = 32
	lastOfLibc  = 34
	onStack     = 0x08000000
)

// hasHandler reports whether the signal has a handler function, not one of the kernel's default
// actions.
func (a *sigaction) hasHandler() bool { return a.handler > 1 }

// signalStack is the kernel's stack_t: https://man7.org/linux/man-pages/man2/sigaltstack.2.html.
type signalStack struct {
	base  uintptr
	flags int32
	size  uintptr
}

// SaveSignals records the handlers of all signals and this thread's signal stack, before foreign
// code is loaded that may change them. The caller must keep the goroutine locked to the thread
// until [Signals.Restore].
func SaveSignals() (*Signals, error) {
	s := new(Signals)
	for i := 1; i <= lastSignal; i++ {
		if err := changeAction(syscall.Signal(i), nil, &s.actions[i]); err != nil {
			return nil, fmt.Errorf("read handler of signal %d: %w", i, err)
		}
	}
	if err := changeStack(nil, &s.stack); err != nil {
		return nil, fmt.Errorf("read signal stack: %w", err)
	}
	return s, nil
}

// Restore restores the handlers and the stack that have changed since [SaveSignals], and
// returns the signals with handlers that it changed. It must be called on the thread that
// called SaveSignals. The C library keeps its own signals, 32 to 34, but their handlers are
// made to run on Go's signal stack.
func (s *Signals) Restore() (taken []syscall.Signal, err error) {
	now, err := SaveSignals()
	if err != nil {
		return nil, err
	}
	for i := range s.actions {
		if now.actions[i] == s.actions[i] {
			continue
		}
		to := &s.actions[i]
		if i >= firstOfLibc && i <= lastOfLibc && now.actions[i].hasHandler() {
			if to = &now.actions[i]; to.flags&onStack != 0 {
				continue
			}
			to.flags |= onStack
		}
		if err := changeAction(syscall.Signal(i), to, nil); err != nil {
			return taken, fmt.Errorf("restore handler of signal %d: %w", i, err)
		}
		taken = append(taken, syscall.Signal(i))
	}
	if now.stack != s.stack {
		if err := changeStack(&s.stack, nil); err != nil {
			return taken, fmt.Errorf("restore signal stack: %w", err)
		}
	}
	return taken, nil
}

func changeStack(to, from *signalStack) error {
	_, _, errno := unix.RawSyscall(unix.SYS_SIGALTSTACK, uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(from)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
