package cuda

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/shm"
)

// A client is this process's connection to a domain's keeper. See Note [Who keeps a segment].
type client struct {
	line
	asking  sync.Mutex
	answers chan answer
	dropped func(s shm.Handle)
	done    sync.WaitGroup
}

type answer struct {
	record
	file *os.File
}

// dial connects to the keeper; dropped is called, on a goroutine, for each segment that nobody uses any more.
func dial(d *shm.Domain, dropped func(s shm.Handle)) (*client, error) {
	conn, err := sys.Dial(keeperAddress(d))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeeper, err)
	}
	c := &client{line: line{conn: conn}, answers: make(chan answer, 1), dropped: dropped}
	c.done.Go(c.listen)
	return c, nil
}

func (c *client) listen() {
	defer close(c.answers)
	for {
		r, f, err := c.hear()
		switch {
		case err != nil:
			return
		case r.op == opDropped:
			c.dropped(r.segment)
		default:
			c.answers <- answer{r, f}
		}
	}
}

// close ends the connection.
func (c *client) close() error {
	err := c.conn.Close()
	for a := range c.answers {
		if a.file != nil {
			a.file.Close()
		}
	}
	c.done.Wait()
	return err
}

// ask says something and waits for the answer. All segments that were dropped before it are known then.
func (c *client) ask(r record, files ...*os.File) (answer, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if err := c.say(r, files...); err != nil {
		return answer{}, fmt.Errorf("%w: %w", ErrKeeper, err)
	}
	a, ok := <-c.answers
	switch {
	case !ok:
		return answer{}, ErrKeeper
	case a.op != opDone:
		return answer{}, errors.Join(fmt.Errorf("%w: it does not know segment %v", ErrKeeper, r.segment), a.end())
	}
	return a, nil
}

func (a answer) end() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// keep gives the keeper the file of a segment.
func (c *client) keep(s shm.Handle, size int, uuid [16]byte, f *os.File) error {
	_, err := c.ask(record{opKeep, s, uint64(size), uuid}, f)
	return err
}

// fetch gets the file of a segment, which the caller closes.
func (c *client) fetch(s shm.Handle) (answer, error) {
	a, err := c.ask(record{op: opFetch, segment: s})
	if err == nil && a.file == nil {
		return a, fmt.Errorf("%w: no file came with segment %v", ErrKeeper, s)
	}
	return a, err
}

// sweep has the keeper look for segments that nobody uses any more.
func (c *client) sweep() error {
	_, err := c.ask(record{op: opSweep})
	return err
}
