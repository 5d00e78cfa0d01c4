package shoal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Process is one that this process has started. Its methods may be called by several goroutines.
type Process struct {
	group *Group
	name  string
	rank  int

	child *child // nil if it could not be started
	reply reply

	origin string        // file and line of the call that started it
	forced atomic.Bool   // the group had to send it a signal
	told   chan struct{} // closed when the job is written
	ended  chan struct{}
	err    error // set before ended is closed
}

// reply is what the process has told. It is written by the goroutine that reads the control
// socket and read when that has ended.
type reply struct {
	ready  func() // called once, when the argument has arrived or never will
	member bool   // of the domain, in slot
	slot   int
	done   bool
	result outcome
	err    error // the reply made no sense
}

// Rank returns the number of the process among those of its function in its group.
func (p *Process) Rank() int { return p.rank }

// PID returns its process id, 0 if it could not be started.
func (p *Process) PID() int {
	if p.child == nil {
		return 0
	}
	return p.child.process.Pid
}

// Wait blocks until the process has ended and all that it printed was passed on, or ctx is done. It returns nil, a
// *ProcessError, or the cause of ctx. It may be called any number of times; it does not replace Group.Wait.
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

// Signal sends sig to the process; os.ErrProcessDone if it has ended.
func (p *Process) Signal(sig os.Signal) error {
	if p.child == nil {
		return os.ErrProcessDone
	}
	return p.child.process.Signal(sig)
}

// start runs the program again and hands it the job.
func (p *Process) start(s *shipment) error {
	body, err := encode(jobPlan, job{Func: p.name, Rank: p.rank, Arg: s.parcel})
	if err != nil {
		return describe("encode job: "+err.Error(), ErrArgument, err)
	}
	c, err := startChild(p)
	if err != nil {
		return err
	}
	p.reply.ready = sync.OnceFunc(s.done)
	p.child = c
	p.tell(appendFrame(nil, frameJob, body))
	uncancel := context.AfterFunc(p.group.ctx, p.stop)
	go func() {
		defer uncancel()
		p.finish(p.verdict(c.await()))
	}()
	return nil
}

// atOnce is what certainly fits into the buffer of a fresh socket.
const atOnce = 32 << 10

// tell writes the job, on a goroutine if that may block. What cannot be written has no reader any more.
func (p *Process) tell(job []byte) {
	p.told = make(chan struct{})
	write := func() {
		p.child.control.Write(job)
		close(p.told)
	}
	if len(job) <= atOnce {
		write()
	} else {
		go write()
	}
}

// cancelFrame carries the cause, or its text if it does not cross.
func cancelFrame(cause error) []byte {
	body, err := encode(cancellationPlan, cancellation{cause})
	if err != nil {
		body, _ = encode(cancellationPlan, cancellation{errors.New(cause.Error())})
	}
	return appendFrame(nil, frameCancel, body)
}

// receive takes a frame of the process.
func (p *Process) receive(kind frameKind, body []byte) {
	switch kind {
	case frameReady:
		var r ready
		if r, p.reply.err = decode(readyPlan, body); p.reply.err == nil {
			p.reply.member, p.reply.slot = true, r.Slot
		}
		p.reply.ready()
	case frameDone:
		p.reply.result, p.reply.err = decode(outcomePlan, body)
		p.reply.done = p.reply.err == nil
	default:
		p.reply.err = fmt.Errorf("control frame of unknown kind %d", kind)
	}
}

// stop runs when the group is cancelled. It tells the process, and if that does not help, sends signals.
func (p *Process) stop() {
	go p.tellCancel()
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Kill} {
		if p.endsWithin(p.group.opts.Grace) {
			return
		}
		p.forced.Store(true)
		p.Signal(sig)
	}
}

// tellCancel writes behind the job, which a process that hangs may never have read.
func (p *Process) tellCancel() {
	select {
	case <-p.told:
		p.child.control.Write(cancelFrame(context.Cause(p.group.ctx)))
	case <-p.ended:
	}
}

func (p *Process) endsWithin(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.ended:
		return true
	case <-t.C:
		return false
	}
}

// finish publishes the result.
func (p *Process) finish(err error) {
	if p.reply.ready != nil {
		p.reply.ready()
	}
	p.err = err
	close(p.ended)
	p.group.leave(p, err)
}

// failure wraps the reason why the process could not be started.
func (p *Process) failure(err error) error {
	if err == nil {
		return nil
	}
	return &ProcessError{Func: p.name, Rank: p.rank, PID: p.PID(), Err: err, ExitCode: -1}
}
