package shoal

import (
	"context"
	"errors"
	"syscall"
)

// Done is closed when the process has ended and all its output was passed on. It is Python's
// sentinel, for a select.
func (p *Process) Done() <-chan struct{} { return p.ended }

// ExitCode returns the exit status. It is -N if signal N has ended the process, and -1 if the
// process could not be started. The bool is false while the process runs. A goroutine has the exit
// status that a process would have.
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

// Wait blocks until the process has ended and all its output was passed on, or until ctx is done.
// It returns nil, a *ProcessError, or the cause of ctx. It may be called any number of times. It
// does not replace Group.Wait.
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

// Poll waits until the process has ended and all its output was passed on. With it ipc.Wait can
// wait for a process among queues and pipes, as Python's connection.wait does with a sentinel. Poll
// returns nil, however the process ended, or the cause of ctx.
func (p *Process) Poll(ctx context.Context) error {
	p.Wait(ctx)
	select {
	case <-p.ended:
		return nil
	default:
		return context.Cause(ctx)
	}
}
