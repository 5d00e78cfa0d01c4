package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Events of other programs] PyTorch sends an event for several processes, and nothing else to
// wait for. Nobody can end a stream's wait for such an event, and the event of a process that was
// killed may never come: then each call that waits for the stream hangs. So no stream waits for
// such an event. The host asks for it, and for the life of its process, before anybody has the
// memory.

// eventPatience is how long the host waits for the event of a process that it does not know: nobody
// can tell whether that process lives.
var eventPatience = time.Minute

// openLife opens what says whether a process lives.
var openLife = sys.OpenPidfd

// waitHandle waits for an event of a process, which is 0 where it is not known. The error wraps
// ErrUnfinished where the event will not come; where ctx has ended before it came, the error is
// the cause of that.
func (d *Device) waitHandle(ctx context.Context, event cudriver.IPCHandle, sender int) error {
	var life *sys.Pidfd // opened before the event, which cannot be opened when its process has ended
	if sender > 0 {
		if p, err := openLife(sender); err == nil {
			life = p
			defer p.Close()
		}
	}
	var e cudriver.Event
	err := d.do(func(cudriver.Stream) (err error) {
		e, err = d.driver.IPCOpenEventHandle(event)
		return err
	})
	if err != nil {
		return err
	}
	err = d.comes(ctx, e, life)
	return errors.Join(err, d.do(func(cudriver.Stream) error { return d.driver.EventDestroy(e) }))
}

// comes waits until an event has come, or never will, or ctx has ended.
func (d *Device) comes(ctx context.Context, e cudriver.Event, life *sys.Pidfd) error {
	begin := time.Now()
	for pause := soon; ; pause = min(2*pause, late) {
		over, why := false, error(nil)
		if life != nil {
			over, why = life.Exited()
		} else {
			over = time.Since(begin) > eventPatience
		}
		if why != nil {
			return why
		}
		// after the life: what its device did last counts
		err := d.do(func(cudriver.Stream) error { return d.driver.EventQuery(e) })
		switch {
		case !errors.Is(err, cudriver.ErrorNotReady):
			return err
		case over && life == nil:
			return fmt.Errorf("wait %v for the event of a process that is not known: %w", eventPatience, ErrUnfinished)
		case over:
			return ErrUnfinished
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("wait for the event of another program: %w", context.Cause(ctx))
		}
	}
}

// legacy is how package torch reaches the memory of devices.
type legacy struct{}

func (legacy) Open(ctx context.Context, ordinal int, handle [64]byte, off, n int, event []byte, sender int,
	done func() error) (device.Memory, error) {
	d, err := Get(ordinal)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return d.foreign(0, 0, 0, done), nil
	}
	m, err := d.openBehind(ctx, handle, off, n, event, sender)
	if err != nil {
		return nil, err
	}
	end := m.segment.end
	m.segment.end = func() error { return errors.Join(end(), done()) }
	return m, nil
}

// mostEvents is how many events for other processes there are at once, as in PyTorch: old drivers
// have few.
const mostEvents = 1000

// promised counts those that there are.
var promised atomic.Int64

func (legacy) Share(m device.Memory) (ordinal int, handle [64]byte, off int, event []byte,
	done func() error, err error) {
	own, ok := m.(*memory)
	if !ok {
		return 0, handle, 0, nil, nil, fmt.Errorf("%w: the tensor is on %v", ErrDevice, m.Device())
	}
	if own.size == 0 {
		return own.dev.ordinal, handle, 0, nil, func() error { return nil }, nil
	}
	if handle, off, err = own.handle(); err == nil {
		event, done, err = own.dev.promise()
	}
	return own.dev.ordinal, handle, off, event, done, err
}

// promise returns the handle of an event that comes when the device has done the work that it has
// now, and a function that ends the event; no handle where the device has no work. What this
// process itself was promised has come by then, or the error says that it has not.
func (d *Device) promise() (event []byte, done func() error, err error) {
	r, err := d.use()
	if err == nil {
		d.judge()
		err = d.tell()
	}
	if err != nil {
		return nil, nil, err
	}
	idle := d.within(r, func() error { return d.driver.StreamQuery(r.stream) })
	if !errors.Is(idle, cudriver.ErrorNotReady) {
		return nil, func() error { return nil }, idle
	}
	if promised.Add(1) > mostEvents {
		promised.Add(-1)
		return nil, func() error { return nil }, d.Synchronize()
	}
	var e cudriver.Event
	var h cudriver.IPCHandle
	err = d.within(r, func() (err error) {
		if e, err = d.driver.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming); err != nil {
			return err
		}
		if err = d.driver.EventRecord(e, r.stream); err == nil {
			h, err = d.driver.IPCGetEventHandle(e)
		}
		if err != nil {
			err = errors.Join(err, d.driver.EventDestroy(e))
		}
		return err
	})
	if err != nil {
		promised.Add(-1)
		return nil, func() error { return nil }, d.Synchronize() // without it
	}
	return h[:], func() error {
		promised.Add(-1)
		return d.do(func(cudriver.Stream) error { return d.driver.EventDestroy(e) })
	}, nil
}
