package sim

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
)

// An event counts how often it was recorded, and how many of these recordings are completed.
// The counts of an interprocess event are in an area of the device file after the memory, where
// its creator holds a lock on them. The driver's lock guards the other fields.
type event struct {
	ctx      *context
	flags    cudriver.EventFlags
	counts   *counts
	at       span
	area     []byte // mapped event area; nil for an event of this process only
	imported bool
	when     time.Time
	waits    int  // queued waits, which may outlive the event
	over     bool // destroyed; the last wait must unmap area
}

type counts struct {
	recorded, completed, serial atomic.Uint64
}

// isGone reports whether the process that created an imported event has destroyed it or died.
// Pending waits then never end, because the counts are no longer written.
func (e *event) isGone() bool { return e.imported && !e.ctx.dev.isLocked(e.at) }

// EventCreate creates an event, which the caller must destroy. Interprocess events must also
// have EventDisableTiming; otherwise the error is ErrorInvalidValue.
func (d *Driver) EventCreate(f cudriver.EventFlags) (id cudriver.Event, err error) {
	err = d.runCall("cuEventCreate", inContext, func(c *context) cudriver.Result {
		e := &event{ctx: c, flags: f, counts: new(counts)}
		if f&cudriver.EventInterprocess != 0 {
			if f&cudriver.EventDisableTiming == 0 {
				return cudriver.ErrorInvalidValue
			}
			file, off, err := c.dev.allocateBytes(c.dev.size, eventArea, eventSize, eventSize)
			switch {
			case err != nil:
				return cudriver.ErrorOperatingSystem
			case file == nil:
				return cudriver.ErrorOutOfMemory
			}
			defer file.Close() // the mapping keeps the description open
			if e.at = (span{off, eventSize}); !e.mapCounts(file) {
				return cudriver.ErrorOperatingSystem
			}
			e.counts.serial.Store(uint64(os.Getpid())<<32 | uint64(d.nextHandle()&0xffffffff))
			e.counts.recorded.Store(0)
			e.counts.completed.Store(0)
		}
		id = cudriver.Event(d.nextHandle())
		d.events[id] = e
		return cudriver.Success
	})
	return id, err
}

// mapCounts maps the event's counts. It reports whether it has succeeded.
func (e *event) mapCounts(f *os.File) bool {
	area, err := sys.MapRange(f, e.ctx.dev.size, eventArea)
	if err != nil {
		return false
	}
	e.area = area
	e.counts = (*counts)(unsafe.Pointer(&area[e.at.off-e.ctx.dev.size]))
	return true
}

// runForEvent runs f for an event, with the driver locked. It returns ErrorInvalidHandle if
// there is none.
func (d *Driver) runForEvent(call string, id cudriver.Event, f func(c *context, e *event) cudriver.Result) error {
	return d.runCall(call, inContext, func(c *context) cudriver.Result {
		e := d.events[id]
		if e == nil {
			return cudriver.ErrorInvalidHandle
		}
		return f(c, e)
	})
}

// EventDestroy destroys an event. Processes that have imported it cannot use it any more. The
// error is ErrorInvalidHandle if there is no such event.
func (d *Driver) EventDestroy(id cudriver.Event) error {
	return d.runCall("cuEventDestroy", inContext, func(*context) cudriver.Result {
		e := d.events[id]
		if e == nil {
			return cudriver.ErrorInvalidHandle
		}
		delete(d.events, id)
		if e.over = e.imported && e.waits > 0; e.area != nil && !e.over {
			e.counts = new(counts) // for queued work
			sys.Unmap(e.area)
		}
		return cudriver.Success
	})
}

// EventRecord makes the event complete when the stream has finished the work queued so far.
func (d *Driver) EventRecord(id cudriver.Event, s cudriver.Stream) error {
	var e *event
	var turn uint64
	err := d.runForEvent("cuEventRecord", id, func(c *context, found *event) cudriver.Result {
		if found.ctx != c || d.streams[s] == nil {
			return cudriver.ErrorInvalidHandle
		}
		e, turn = found, found.counts.recorded.Add(1)
		return cudriver.Success
	})
	if err != nil {
		return err
	}
	return d.queueWork("cuEventRecord", s, func(*context) cudriver.Result {
		e.when = time.Now()
		if e.counts.completed.Load() < turn {
			e.counts.completed.Store(turn)
		}
		return cudriver.Success
	})
}

// StreamWaitEvent makes the stream wait for the event's last recording.
func (d *Driver) StreamWaitEvent(s cudriver.Stream, id cudriver.Event) error {
	var e *event
	var turn uint64
	err := d.runForEvent("cuStreamWaitEvent", id, func(_ *context, found *event) cudriver.Result {
		e, turn = found, found.counts.recorded.Load()
		e.waits++
		return cudriver.Success
	})
	if err != nil {
		return err
	}
	return d.queueWait("cuStreamWaitEvent", s, func(*context) cudriver.Result {
		if e.counts.completed.Load() < turn {
			return cudriver.ErrorNotReady
		}
		if e.waits--; e.over && e.waits == 0 {
			sys.Unmap(e.area)
		}
		return cudriver.Success
	})
}

// EventQuery returns ErrorNotReady until the event completes, and then nil. An event that was
// never recorded is complete.
func (d *Driver) EventQuery(id cudriver.Event) error { return d.isEventPassed("cuEventQuery", id) }

func (d *Driver) isEventPassed(call string, id cudriver.Event) error {
	return d.runForEvent(call, id, func(c *context, e *event) cudriver.Result {
		if e.counts.completed.Load() < e.counts.recorded.Load() {
			return cudriver.ErrorNotReady
		}
		return cudriver.Success
	})
}

// EventSynchronize waits until the event completes.
func (d *Driver) EventSynchronize(id cudriver.Event) error {
	return pollUntilReady(func() error { return d.isEventPassed("cuEventSynchronize", id) })
}

// EventElapsedTime returns the milliseconds between two events, which must be recorded and have
// timing enabled; otherwise the error is ErrorInvalidHandle.
func (d *Driver) EventElapsedTime(start, end cudriver.Event) (ms float32, err error) {
	err = d.runForEvent("cuEventElapsedTime", start, func(_ *context, a *event) cudriver.Result {
		b := d.events[end]
		switch {
		case b == nil || (a.flags|b.flags)&cudriver.EventDisableTiming != 0 || a.when.IsZero() || b.when.IsZero():
			return cudriver.ErrorInvalidHandle
		}
		ms = float32(b.when.Sub(a.when).Seconds() * 1e3)
		return cudriver.Success
	})
	return ms, err
}
