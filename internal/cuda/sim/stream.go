package sim

import (
	"runtime"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
)

// tick is the polling interval of waits.
const tick = 50 * time.Microsecond

// A work is one operation of a stream. It runs with the driver locked. If it returns
// ErrorNotReady, it is called again later. Another result than Success becomes the error of the
// context.
type work func(c *context) cudriver.Result

// A task is queued work. waits is set if it waits for a condition that may never hold.
type task struct {
	work
	of      *stream
	waits   bool
	entries int // number of queue entries that it takes, if more than 1
}

// A stream is a sequence of work that runs in order. It may share its queue with other streams.
type stream struct {
	ctx    *context
	queue  hardwareQueue
	queued uint64 // queued and done are guarded by the driver's lock
	done   uint64
}

// StreamCreate creates a stream in the current context. It ignores the flags. The caller must
// destroy the stream.
func (d *Driver) StreamCreate(cudriver.StreamFlags) (id cudriver.Stream, err error) {
	err = d.runCall("cuStreamCreate", inContext, func(c *context) cudriver.Result {
		id = cudriver.Stream(d.nextHandle())
		d.streams[id] = &stream{ctx: c, queue: c.nextQueue()}
		return cudriver.Success
	})
	return id, err
}

func (d *Driver) tryTask(c *context, t task) bool {
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

// queueWork appends work to a stream of the current context, for the CUDA function call. It
// does not wait for the work, but blocks while the queue is full.
func (d *Driver) queueWork(call string, id cudriver.Stream, w work) error {
	_, _, err := d.appendTask(call, id, task{work: w})
	return err
}

// queueWait is [Driver.queueWork] for work that waits for a condition that may never hold.
func (d *Driver) queueWait(call string, id cudriver.Stream, w work) error {
	_, _, err := d.appendTask(call, id, task{work: w, waits: true})
	return err
}

// appendTask appends a task to a stream of the current context. It returns the stream and the
// number of tasks queued on it so far, including this one. The error is ErrorInvalidHandle if
// the context has no such stream.
func (d *Driver) appendTask(call string, id cudriver.Stream, t task) (s *stream, n uint64, err error) {
	err = d.runCall(call, inContext, func(c *context) cudriver.Result {
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
		s.queue.enqueue(t)
	}
	return s, n, err
}

// copyHost queues a copy to or from host memory. It waits for the copy unless the memory is
// registered, because CUDA synchronizes copies to pageable memory and may synchronize copies from
// it.
func (d *Driver) copyHost(call string, id cudriver.Stream, host []byte, w work) error {
	s, n, err := d.appendTask(call, id, task{work: w})
	if err != nil {
		return err
	}
	return pollUntilReady(func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if s.done < n && !d.isRegistered(host) {
			return cudriver.Check(call, cudriver.ErrorNotReady)
		}
		return nil
	})
}

// awaitContext blocks a call while any stream of the current context waits. CUDA documents that
// calls which load code, allocate or unmap may wait for all queued work; they hang if a stream
// waits forever.
func (d *Driver) awaitContext(call string) {
	d.mu.Lock()
	c := d.contexts[d.current[sys.ThreadID()]]
	d.mu.Unlock()
	d.awaitContextIn(call, c)
}

func (d *Driver) awaitContextIn(call string, c *context) {
	if c == nil {
		return
	}
	pollUntilReady(func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		if c.waits > 0 {
			return cudriver.Check(call, cudriver.ErrorNotReady)
		}
		return nil
	})
}

// StreamDestroy destroys a stream. Its queued work still runs. The error is ErrorInvalidHandle
// if there is no such stream.
func (d *Driver) StreamDestroy(id cudriver.Stream) error {
	return d.runCall("cuStreamDestroy", inContext, func(*context) cudriver.Result {
		if d.streams[id] == nil {
			return cudriver.ErrorInvalidHandle
		}
		delete(d.streams, id)
		return cudriver.Success
	})
}

// StreamQuery returns ErrorNotReady while work is pending, and otherwise nil.
func (d *Driver) StreamQuery(id cudriver.Stream) error { return d.queryStream("cuStreamQuery", id) }

func (d *Driver) queryStream(call string, id cudriver.Stream) error {
	return d.runCall(call, inContext, func(*context) cudriver.Result {
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

// StreamSynchronize waits until the stream has finished all its work.
func (d *Driver) StreamSynchronize(id cudriver.Stream) error {
	return pollUntilReady(func() error { return d.queryStream("cuStreamSynchronize", id) })
}

// pollUntilReady calls ask until it returns something other than ErrorNotReady, and returns
// that. It must not be called with the driver's lock.
func pollUntilReady(ask func() error) error {
	for turn := 0; ; turn++ {
		err := ask()
		if e, ok := err.(*cudriver.Error); !ok || e.Result != cudriver.ErrorNotReady {
			return err
		}
		if turn < 100 { // most waits are short
			runtime.Gosched()
		} else {
			time.Sleep(tick)
		}
	}
}

// CtxSynchronize waits until all streams of the context have finished their work.
func (d *Driver) CtxSynchronize() error {
	return pollUntilReady(func() error {
		return d.runCall("cuCtxSynchronize", inContext, func(c *context) cudriver.Result {
			for _, s := range d.streams {
				if s.ctx == c && s.done < s.queued {
					return cudriver.ErrorNotReady
				}
			}
			return cudriver.Success
		})
	})
}
