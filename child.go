package shoal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/goexit"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A child is an operating system process that runs a Process once, with this process's ends of
// the connected files. It is made by startChild; the caller must call wait, awaitEnd or close.
type child struct {
	process *os.Process
	death   death
	control *os.File   // socket for control frames in both directions
	crash   *os.File   // memory file for the crash output of the child's runtime
	stdout  *os.File   // pipe; nil with Files
	stderr  *os.File   // pipe, or the output file with Files
	tail    *tail      // end of stderr; nil with Files
	theirs  []*os.File // the child's ends, to be closed after its start
	pumps   sync.WaitGroup

	warm   bool     // started before its job was known
	owner  *Process // nil until it gets a job
	reply  reply
	forced atomic.Pointer[string] // why the owner ended it
	told   chan struct{}          // closed when the job has been written
	ended  chan struct{}          // closed when the process has ended
}

// newChild gives the job of p with the argument s to a child, and returns that child: a new one,
// or with [WarmStart] one that waits for a job. It returns [ErrArgument] if the job cannot be
// encoded, and otherwise the error of starting the process.
func newChild(p *Process, s *encodedArg) (execution, error) {
	opts := p.group.opts
	body, err := encodeControl(jobPlan, job{
		Func: p.name, Rank: p.rank, Arg: s.parcel,
		Threads: opts.workerThreads(), Nice: opts.Nice, CPUs: opts.rankCPUs(p.rank),
		Parent: currentIdentity(), Seed: p.nextSeed(),
		Deadline: sys.DeadlineOf(p.group.ctx),
	})
	if err != nil {
		return nil, newDescribed("encode job: "+err.Error(), ErrArgument, err)
	}
	b := launchOf(opts)
	var c *child
	if opts.Start == WarmStart {
		c = reserve.takeChild(b)
		defer reserve.refill(b)
	}
	if c == nil {
		b.title = processTitle(p.name, p.rank)
		if opts.Output == Files {
			b.files = func() (out, errs *os.File, err error) { return openOutputs(opts.Dir, p.name, p.rank) }
		}
		if c, err = startChild(b); err != nil {
			return nil, err
		}
	}
	c.sendJob(p, appendFrame(nil, frameJob, body))
	return c, nil
}

// atOnce is the maximum size of a job that fits in the buffer of a new socket.
const atOnce = 32 << 10

// sendJob makes p the owner of the child, writes the encoded job, on a goroutine if that may
// block, and starts reading the child's output. It must be called once. It ignores write errors,
// because the process has ended then, which wait reports.
func (c *child) sendJob(p *Process, job []byte) {
	c.owner = p
	write := func() {
		c.control.Write(job)
		close(c.told)
	}
	if len(job) <= atOnce {
		write()
	} else {
		go write()
	}
	c.startReaders()
}

func (c *child) pid() int { return c.process.Pid }

func (c *child) signal(sig os.Signal) error { return c.process.Signal(sig) }

func (c *child) terminate(sig os.Signal, why string) error {
	if why != "" {
		c.forced.Store(&why)
	}
	return c.signal(sig)
}

// cancel sends the child a cancellation with the given cause, after the job. It must not block:
// a hanging process may never have read the job.
func (c *child) cancel(cause error) {
	go func() {
		select {
		case <-c.told:
			c.control.Write(cancelFrame(cause))
		case <-c.ended:
		}
	}()
}

// cancelFrame returns an encoded control frame for a cancellation with the given cause, or an
// error with its text if it cannot be encoded.
func cancelFrame(cause error) []byte {
	body, err := encodeControl(cancellationPlan, cancellation{cause})
	if err != nil {
		body, _ = encodeControl(cancellationPlan, cancellation{errors.New(cause.Error())})
	}
	return appendFrame(nil, frameCancel, body)
}

// startReaders starts goroutines that read the child's control frames and output until the child
// ends. The child must have an owner.
func (c *child) startReaders() {
	p := c.owner
	c.copyInBackground(c.control, &controlFrames{each: c.handleFrame})
	if c.stdout == nil {
		return
	}
	var prefix string
	if p.group.opts.Output == PrefixRank {
		prefix = fmt.Sprintf("[%s %d] ", p.name, p.rank)
	}
	c.tail = new(tail)
	c.copyInBackground(c.stdout, &lines{to: p.group.out, prefix: prefix})
	c.copyInBackground(c.stderr, &lines{to: p.group.err, prefix: prefix, tail: c.tail})
}

// copyInBackground copies r to w on a goroutine, until the other end is closed, or until the
// process has ended and all of its output has been read. These differ if another program that the
// child started still has the other end.
func (c *child) copyInBackground(r *os.File, w io.Writer) {
	c.pumps.Go(func() {
		goexit.Call(func() error {
			return goexit.Recover(ErrPanic, func() error { copyOutput(r, w); return nil })
		}, func(err error) {
			if err != nil {
				slog.Error("shoal: Options.Stdout or Options.Stderr did not return from Write; discarding the "+
					"rest of the worker's output", "func", c.owner.name,
					"rank", c.owner.rank, "cause", err)
				io.Copy(io.Discard, r) // the worker must not block
			}
		})
	})
}

func copyOutput(r *os.File, w io.Writer) {
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		w.Write(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			drain(r, w, buf)
		}
		if err != nil {
			break
		}
	}
	if l, ok := w.(*lines); ok {
		l.flushLast()
	}
}

// wait blocks until the child has ended and all of its output has been copied. It returns nil if
// the process succeeded, and otherwise a [*ProcessError]. It must be called once, and closes the
// child.
func (c *child) wait() error { return c.exitError(c.awaitEnd()) }

func (c *child) awaitEnd() ending {
	var e ending
	if e.err = c.death.wait(); e.err == nil {
		e.state, e.err = c.process.Wait()
	}
	close(c.ended)
	for _, r := range []*os.File{c.control, c.stdout, c.stderr} {
		if r != nil {
			r.SetReadDeadline(time.Unix(1, 0)) // fails for a file, which has no pump
		}
	}
	c.pumps.Wait()
	e.crash = readCrash(c.crash)
	if c.tail == nil {
		c.tail = tailOf(c.stderr)
	}
	e.stderr, e.fatal = c.tail.String(), c.tail.fatal
	c.close()
	reapDomain()
	return e
}

// close closes this process's ends of the child's files, and the descriptor that detects its
// death. It does not end the process.
func (c *child) close() {
	closeAll([]*os.File{c.control, c.crash, c.stdout, c.stderr})
	c.death.close()
}

// maxCrash is the maximum number of bytes read from a crash. The goroutine that caused it comes
// first.
const maxCrash = 64 << 10

func readCrash(f *os.File) string {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, maxCrash))
	return string(b)
}

// closeAll closes the files that are not nil.
func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
