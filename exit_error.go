package shoal

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/shoal-mp/shoal/internal/arena"
)

// An ending contains the information about an ended process that does not come from its control
// socket.
type ending struct {
	state  *os.ProcessState // nil if it could not be read
	err    error            // why the state could not be read
	crash  string           // crash output of the runtime
	fatal  string           // reason of a crash other than a panic
	stderr string
}

// exitError returns a [*ProcessError] for an ended process, or nil if its function returned nil
// and it exited with status 0. e describes the end; c must have an owner.
func (c *child) exitError(e ending) error {
	pe := &ProcessError{Func: c.owner.name, Rank: c.owner.rank, PID: c.pid(), Stderr: e.stderr, ExitCode: -1}
	if e.state != nil {
		pe.ExitCode, pe.Signal = e.state.ExitCode(), signalOf(e.state)
	}
	switch r := c.reply; {
	case r.done && r.result.isFailed():
		pe.Err, pe.Stack = r.result.outcomeError(), r.result.Stack
	case e.lacksThreads():
		pe.Err = c.addPeerError(newDescribed(e.state.String()+": the Go runtime could not create a thread; "+
			"raise the process limit (ulimit -u, or pids.max of the control group), or start fewer processes",
			ErrExited, syscall.EAGAIN))
	case e.crash != "":
		var text string
		text, pe.Stack = splitCrash(e.crash, e.fatal)
		pe.Err = c.addPeerError(newDescribed(text, ErrPanic))
	case r.done && pe.ExitCode == 0:
		return nil
	default:
		pe.Err = c.addPeerError(c.exitedError(e, pe))
	}
	return pe
}

// lacksThreads reports whether the runtime failed to create a thread, according to its message
// or cgo's. It returns false if the state is unknown.
func (e ending) lacksThreads() bool {
	said := e.crash + e.fatal + e.stderr
	return e.state != nil && (strings.Contains(said, "failed to create new OS thread") ||
		strings.Contains(said, cgoPrefix+"pthread_create failed"))
}

// addPeerError returns the error how, wrapped together with an [arena.PeerError] if the process
// was a participant of the domain, and how itself otherwise. It must be called after
// [child.awaitEnd], which reclaims the shared memory of the ended process.
func (c *child) addPeerError(how error) error {
	if !c.reply.member {
		return how
	}
	return newDescribed(how.Error(), how, &arena.PeerError{PID: c.pid(), Seat: c.reply.seat, Cause: how})
}

// exitedError returns the error for a process that ended without a reply, or abnormally after
// its reply. It wraps [ErrExited], and [ErrOOM] if the kernel has probably killed it for lack of
// memory; then it also sets pe.OOM.
func (c *child) exitedError(e ending, pe *ProcessError) error {
	if e.state == nil {
		return newDescribed(fmt.Sprintf("read exit status: %v", e.err), ErrExited, e.err)
	}
	how, kinds := e.state.String(), []error{ErrExited}
	switch {
	case c.reply.other != "":
		err := c.reply.refusalError()
		return newDescribed(err.Error(), ErrExited, err)
	case c.reply.err != nil:
		return newDescribed(fmt.Sprintf("%s, after a malformed reply: %v", how, c.reply.err), ErrExited, c.reply.err)
	case c.forced.Load() != nil:
		how += ", because " + *c.forced.Load()
	case pe.Signal == os.Kill:
		var probable string
		if pe.OOM, probable = oom().explainKill(); pe.OOM {
			how, kinds = how+": "+probable, append(kinds, ErrOOM)
		}
	case pe.ExitCode == 66:
		how += " (exit status of the race detector)"
	}
	switch {
	case c.reply.done:
		how += " after the function returned"
	case !c.reply.begun && pe.Signal == nil && pe.ExitCode != exitOrphaned:
		how += " before the function started: check that the executable is a build of this program and that " +
			"nothing before shoal.Main exits"
	case pe.ExitCode == 0:
		how += " before the function returned"
	}
	return newDescribed(how, kinds...)
}

// explainKill calls checkKills and reports whether the count of kills rose. Only then text applies:
// it explains the kill in an error message.
func (c *oomCounter) explainKill() (rose bool, text string) {
	rose, shared := c.checkKills()
	if shared {
		return rose,
			"probably by the kernel's out-of-memory killer, which was active in the control group shared with " +
				"other programs"
	}
	return rose, "by the kernel's out-of-memory killer"
}

// isFailed reports whether the process failed: it returned an error, even because it was canceled,
// panicked, or could not run its function.
func (o outcome) isFailed() bool { return o.Kind != kindReturned || o.Err != nil }

// outcomeError returns the error of a failed outcome, the Err of a [ProcessError]. It must not
// be called for an outcome that did not fail.
func (o outcome) outcomeError() error {
	switch o.Kind {
	case kindReturned:
		return o.Err
	case kindNotRegistered:
		return fmt.Errorf("%w: call Register in every process, unconditionally, before shoal.Main", ErrNotRegistered)
	case kindUnprepared:
		return o.Err
	case kindArgument:
		return newDescribed(fmt.Sprintf("decode argument: %v", o.Err), ErrArgument, o.Err)
	}
	kinds := []error{ErrPanic}
	if o.Err != nil {
		kinds = append(kinds, o.Err)
	}
	return newDescribed(o.Text, kinds...)
}
