package shoal

import (
	"context"
	"errors"
	"syscall"
)

// Done returns a channel that is closed when the process has ended and all of its output has been
// copied. It is like Python's sentinel, for use in a select.
func (p *Process) Done() <-chan struct{} { return p.ended }

// ExitCode returns the exit status and true after the process has ended. While it runs, or until
// a restarted process has ended permanently, it returns 0 and false. It is -N if signal N ended
// the process, and -1 if the process could not be started. The exit status of a goroutine is the
// same as for a process.
func (p *Process) ExitCode() (code int, ended bool) {
	select {
	case <-p.ended:
	default:
		return 0, false
	}
	pe, failed := errors.AsType[*ProcessError](p.err)
	if !failed {
		return 0, true
	}
	if s, ok := pe.Signal.(syscall.Signal); ok {
		return -int(s), true
	}
	return pe.ExitCode, true
}

// Wait blocks until the process has ended and all of its output has been copied, or until ctx is
// done. It returns nil if the process has succeeded, a [*ProcessError] if it has failed
// permanently, or the cause of ctx. It may be called any number of times. It does not replace
// [Group.Wait].
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.ended:
		return p.err
	default:
	}
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Poll waits until the process has ended and all of its output has been copied. It lets ipc.Wait
// wait for a process together with queues and pipes, like a sentinel in Python's connection.wait.
// Poll returns nil, even if the process failed, or the cause of ctx.
func (p *Process) Poll(ctx context.Context) error {
	p.Wait(ctx)
	select {
	case <-p.ended:
		return nil
	default:
		return context.Cause(ctx)
	}
}
