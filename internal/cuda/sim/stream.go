package sim

import (
	"runtime"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
)

// tick is how often waiting looks again: here nothing rings.
const tick = 50 * time.Microsecond

// work is a piece of what a stream does. It is done alone; it is asked again, later, while it
// returns ErrorNotReady.
type work func(c *context) cudriver.Result

// A task is work that is queued: of a wait what it waits for may never come.
type task struct {
	work
	of      *stream
	waits   bool
	entries int // of the queue that it takes; 1 unless it says so
}

// A stream is work that is done in order, in a queue that it may have together with others.
type stream struct {
	ctx    *context
	queue  hardwareQueue
	queued uint64 // under the driver's lock, as done is
	done   uint64
}

// StreamCreate makes a stream.
func (d *Driver) StreamCreate(cudriver.StreamFlags) (id cudriver.Stream, err error) {
	err = d.do("cuStreamCreate", inContext, func(c *context) cudriver.Result {
		id = cudriver.Stream(d.number())
		d.streams[id] = &stream{ctx: c, queue: c.nextQueue()}
		return cudriver.Success
	})
	return id, err
}

func (d *Driver) try(c *context, t task) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.held {
		return false
	}
	if c.lost == cudriver.Success && t.work != nil {
		switch r := t.work(c); r {
		case cudriver.Success:
		case cudriver.ErrorNotReady:
			return false
		default:
			c.lost = r
		}
	}
	if t.of != nil {
		t.of.done++
	}
	if t.waits {
		c.waits--
	}
	return true
}

// queue gives a stream work.
func (d *Driver) queue(call string, id cudriver.Stream, w work) error {
	_, _, err := d.give(call, id, task{work: w})
	return err
}

// queueWait gives a stream work that waits.
func (d *Driver) queueWait(call string, id cudriver.Stream, w work) error {
	_, _, err := d.give(call, id, task{work: w, waits: true})
	return err
}

// give gives a stream a task, and returns how many it has been given.
func (d *Driver) give(call string, id cudriver.Stream, t task) (s *stream, n uint64, err error) {
	err = d.do(call, inContext, func(c *context) cudriver.Result {
		if s = d.streams[id]; s == nil || s.ctx != c {
			return cudriver.ErrorInvalidHandle
		}
		s.queued++
		if n = s.queued; t.waits {
			c.waits++
		}
		return cudriver.Success
	})
	if err == nil {
		t.of = s
		s.queue.take(t)
	}
	return s, n, err
}

// copyHost queues a copy to or from memory of the host. It returns when that is done, unless the
// pages are registered: so CUDA copies to other ones, and may copy from them.
func (d *Driver) copyHost(call string, id cudriver.Stream, host []byte, w work) error {
	s, n, err := d.give(call, id, task{work: w})
	if err != nil {
		return err
	}
	return patiently(func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if s.done < n && !d.locked(host) {
			return cudriver.Check(call, cudriver.ErrorNotReady)
		}
		return nil
	})
}

// settle keeps a call waiting as long as a stream of the current context does. CUDA says of what
// loads code, allocates or unmaps that it may wait for all that is queued: so it hangs where a
// stream waits for what does not come.
func (d *Driver) settle(call string) {
	d.mu.Lock()
	c := d.contexts[d.current[sys.ThreadID()]]
	d.mu.Unlock()
	d.settleIn(call, c)
}

func (d *Driver) settleIn(call string, c *context) {
	if c == nil {
		return
	}
	patiently(func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if c.waits > 0 {
			return cudriver.Check(call, cudriver.ErrorNotReady)
		}
		return nil
	})
}

// StreamDestroy lets the stream finish what it has.
func (d *Driver) StreamDestroy(id cudriver.Stream) error {
	return d.do("cuStreamDestroy", inContext, func(*context) cudriver.Result {
		if d.streams[id] == nil {
			return cudriver.ErrorInvalidHandle
		}
		delete(d.streams, id)
		return cudriver.Success
	})
}

// StreamQuery returns ErrorNotReady while there is work.
func (d *Driver) StreamQuery(id cudriver.Stream) error { return d.ask("cuStreamQuery", id) }

func (d *Driver) ask(call string, id cudriver.Stream) error {
	return d.do(call, inContext, func(*context) cudriver.Result {
		s := d.streams[id]
		switch {
		case s == nil:
			return cudriver.ErrorInvalidHandle
		case s.done < s.queued:
			return cudriver.ErrorNotReady
		}
		return cudriver.Success
	})
}

// StreamSynchronize waits until the stream has done all its work.
func (d *Driver) StreamSynchronize(id cudriver.Stream) error {
	return patiently(func() error { return d.ask("cuStreamSynchronize", id) })
}

// patiently asks until the answer is another one than ErrorNotReady.
func patiently(ask func() error) error {
	for turn := 0; ; turn++ {
		err := ask()
		if e, ok := err.(*cudriver.Error); !ok || e.Result != cudriver.ErrorNotReady {
			return err
		}
		if turn < 100 { // what there is to do is mostly little
			runtime.Gosched()
		} else {
			time.Sleep(tick)
		}
	}
}

// CtxSynchronize waits for all streams of the context.
func (d *Driver) CtxSynchronize() error {
	return patiently(func() error {
		return d.do("cuCtxSynchronize", inContext, func(c *context) cudriver.Result {
			for _, s := range d.streams {
				if s.ctx == c && s.done < s.queued {
					return cudriver.ErrorNotReady
				}
			}
			return cudriver.Success
		})
	})
}
