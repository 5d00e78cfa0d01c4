package shoal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// A child is the operating system's side of a Process: the process itself, and our ends of what connects us.
type child struct {
	process *os.Process
	death   death
	control *os.File   // socket, frames both ways
	crash   *os.File   // memory file that the runtime of the child writes to when it gives up
	stdout  *os.File   // pipe, nil with Files
	stderr  *os.File   // pipe, or the file itself
	tail    *tail      // of stderr, nil with Files
	theirs  []*os.File // the ends that only the child needs once it runs
	pumps   sync.WaitGroup
}

// listen begins to read what the child writes.
func (c *child) listen(p *Process) {
	c.pump(c.control, &frames{each: p.receive})
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

// pump copies r to w on a goroutine until the other end is closed, or the process is dead and what it wrote is read.
// The second is not the first: another program that the child started may hold the other end, and live.
func (c *child) pump(r *os.File, w io.Writer) {
	c.pumps.Go(func() {
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
	})
}

// await blocks until the child has ended and all that it wrote was passed on. It must be called once.
func (c *child) await() ending {
	var e ending
	if e.err = c.death.wait(); e.err == nil {
		e.state, e.err = c.process.Wait()
	}
	for _, r := range []*os.File{c.control, c.stdout, c.stderr} {
		if r != nil {
			r.SetReadDeadline(time.Unix(1, 0)) // a file has none, and no pump
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

// maxCrash is how much of a crash is read. The goroutine that is to blame comes first.
const maxCrash = 64 << 10

func readCrash(f *os.File) string {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, maxCrash))
	return string(b)
}

// closeAll closes what is not nil.
func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
