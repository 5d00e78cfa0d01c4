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

// A child is a life of a Process in an operating system process. It has that process, and our ends
// of the files that connect us with it.
type child struct {
	process *os.Process
	death   death
	control *os.File   // socket, control frames both ways
	crash   *os.File   // memory file that the runtime of the child writes to when it gives up
	stdout  *os.File   // pipe, nil with Files
	stderr  *os.File   // pipe, or the file itself
	tail    *tail      // the tail of stderr, nil with Files
	theirs  []*os.File // the ends that only the child needs once it runs
	pumps   sync.WaitGroup

	warm   bool     // it was started before its job was known
	owner  *Process // nil while it waits for its job
	reply  reply
	forced atomic.Pointer[string] // why the owner made it end
	told   chan struct{}          // closed when the job is written
	ended  chan struct{}          // closed when no process is left to be told anything
}

// newChild gives the job of p to a child: a new one, or one that waits for a job.
func newChild(p *Process, s *encodedArg) (life, error) {
	opts := p.group.opts
	body, err := encode(jobPlan, job{
		Func: p.name, Rank: p.rank, Arg: s.parcel,
		Threads: opts.threads(), Nice: opts.Nice, CPUs: opts.cpus(p.rank), Parent: identity(), Seed: p.seed(),
		Deadline: sys.DeadlineOf(p.group.ctx),
	})
	if err != nil {
		return nil, describe("encode job: "+err.Error(), ErrArgument, err)
	}
	b := launchOf(opts)
	var c *child
	if opts.Start == WarmStart {
		c = reserve.take(b)
		defer reserve.refill(b)
	}
	if c == nil {
		b.title = title(p.name, p.rank)
		if opts.Output == Files {
			b.files = func() (out, errs *os.File, err error) { return openOutputs(opts.Dir, p.name, p.rank) }
		}
		if c, err = startChild(b); err != nil {
			return nil, err
		}
	}
	c.serve(p, appendFrame(nil, frameJob, body))
	return c, nil
}

// atOnce is the size that certainly fits into the buffer of a new socket.
const atOnce = 32 << 10

// serve writes the job, on a goroutine if that may block, and begins to read what the child writes.
// If the job cannot be written, no process is left to read it.
func (c *child) serve(p *Process, job []byte) {
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
	c.listen()
}

func (c *child) pid() int { return c.process.Pid }

func (c *child) signal(sig os.Signal) error { return c.process.Signal(sig) }

func (c *child) end(sig os.Signal, why string) error {
	if why != "" {
		c.forced.Store(&why)
	}
	return c.signal(sig)
}

// cancel writes a cancellation behind the job. A process that hangs may never have read the job.
func (c *child) cancel(cause error) {
	go func() {
		select {
		case <-c.told:
			c.control.Write(cancelFrame(cause))
		case <-c.ended:
		}
	}()
}

// cancelFrame carries the cause. If the cause cannot cross, it carries the text of the cause.
func cancelFrame(cause error) []byte {
	body, err := encode(cancellationPlan, cancellation{cause})
	if err != nil {
		body, _ = encode(cancellationPlan, cancellation{errors.New(cause.Error())})
	}
	return appendFrame(nil, frameCancel, body)
}

// listen begins to read what the child writes.
func (c *child) listen() {
	p := c.owner
	c.pump(c.control, &controlFrames{each: c.receive})
	if c.stdout == nil {
		return
	}
	var prefix string
	if p.group.opts.Output == PrefixRank {
		prefix = fmt.Sprintf("[%s %d] ", p.name, p.rank)
	}
	c.tail = new(tail)
	c.pump(c.stdout, &lines{to: p.group.out, prefix: prefix})
	c.pump(c.stderr, &lines{to: p.group.err, prefix: prefix, tail: c.tail})
}

// pump copies r to w on a goroutine, until the other end is closed, or until the process is dead
// and everything that it wrote is read. These differ: another program that the child started may
// hold the other end, and live.
func (c *child) pump(r *os.File, w io.Writer) {
	c.pumps.Go(func() {
		goexit.Call(func() error { copyOutput(r, w); return nil }, func(err error) {
			if err != nil {
				slog.Error("shoal: Options.Stdout or Stderr takes no more output of a worker", "func", c.owner.name,
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
		l.finish()
	}
}

// wait blocks until the child has ended and all its output was passed on.
func (c *child) wait() error { return c.exitError(c.await()) }

func (c *child) await() ending {
	var e ending
	if e.err = c.death.wait(); e.err == nil {
		e.state, e.err = c.process.Wait()
	}
	close(c.ended)
	for _, r := range []*os.File{c.control, c.stdout, c.stderr} {
		if r != nil {
			r.SetReadDeadline(time.Unix(1, 0)) // a file has no deadline, and no pump
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

// close closes our ends.
func (c *child) close() {
	closeAll([]*os.File{c.control, c.crash, c.stdout, c.stderr})
	c.death.close()
}

// maxCrash is how much of a crash is read. The goroutine that caused the crash comes first.
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
