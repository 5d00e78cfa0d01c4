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

// Note [Events of other programs] PyTorch sends an interprocess event with a tensor, and nothing
// else to wait for. A stream's wait for such an event cannot be ended, and the event of a killed
// process may never complete; then every call that waits for the stream would hang. Therefore
// streams must not wait for such an event. The host polls the event, and the life of its process,
// before it returns the memory.

// eventPatience is how long the host waits for the event of an unknown process, because it cannot
// find out whether that process is alive.
var eventPatience = time.Minute

// openLife opens a pidfd, which tells whether a process is alive.
var openLife = sys.OpenPidfd

// waitIPCEvent waits for an event of the process sender, which is 0 if it is not known. The
// error wraps [ErrUnfinished] if the event will not complete, or has not completed after one
// minute and the process is not known. If ctx ends first, the error wraps its cause.
func (d *Device) waitIPCEvent(ctx context.Context, event cudriver.IPCHandle, sender int) error {
	// must be opened before the event, which cannot be opened after its process has ended
	var life *sys.Pidfd
	if sender > 0 {
		if p, err := openLife(sender); err == nil {
			life = p
			defer p.Close()
		}
	}
	var e cudriver.Event
	err := d.withContext(func(cudriver.Stream) (err error) {
		e, err = d.driver.IPCOpenEventHandle(event)
		return err
	})
	if err != nil {
		return err
	}
	err = d.awaitEvent(ctx, e, life)
	return errors.Join(err, d.withContext(func(cudriver.Stream) error { return d.driver.EventDestroy(e) }))
}

// awaitEvent waits until an event completes, and then returns nil. The error wraps
// [ErrUnfinished] if the process of life has ended before, or if life is nil and eventPatience
// is over, and the cause of ctx if ctx ends first.
func (d *Device) awaitEvent(ctx context.Context, e cudriver.Event, life *sys.Pidfd) error {
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
		// The event must be queried after the process's life, because its device's last work
		// counts.
		err := d.withContext(func(cudriver.Stream) error { return d.driver.EventQuery(e) })
		switch {
		case !errors.Is(err, cudriver.ErrorNotReady):
			return err
		case over && life == nil:
			return fmt.Errorf("wait %v for an event of an unknown process: %w", eventPatience, ErrUnfinished)
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

// legacy implements the interface that package torch uses to exchange device memory.
type legacy struct{}

func (legacy) Open(ctx context.Context, ordinal int, handle [64]byte, off, n int, event []byte, sender int,
	done func() error) (device.Memory, error) {
	d, err := Get(ordinal)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return d.foreignMemory(0, 0, 0, done), nil
	}
	m, err := d.openBehind(ctx, handle, off, n, event, sender)
	if err != nil {
		return nil, err
	}
	end := m.segment.end
	m.segment.end = func() error { return errors.Join(end(), done()) }
	return m, nil
}

// mostEvents is the maximum number of interprocess events at a time, as in PyTorch, because old
// drivers support few.
const mostEvents = 1000

// promised is the number of interprocess events in use.
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
	if handle, off, err = own.ipcHandle(); err == nil {
		event, done, err = own.dev.promiseEvent()
	}
	return own.dev.ordinal, handle, off, event, done, err
}

// promiseEvent returns the handle of an event that completes when the work queued so far is
// done. event is nil if there is nothing to wait for. If err is nil, the caller must call done,
// which destroys the event. First, promiseEvent waits until all memory that this process has
// received is written, or returns the error that it will not be.
func (d *Device) promiseEvent() (event []byte, done func() error, err error) {
	r, err := d.readyState()
	if err == nil {
		d.judgeWaits()
		err = d.takeLostError()
	}
	if err != nil {
		return nil, nil, err
	}
	idle := d.withReadyContext(r, func() error { return d.driver.StreamQuery(r.stream) })
	if !errors.Is(idle, cudriver.ErrorNotReady) {
		return nil, func() error { return nil }, idle
	}
	if promised.Add(1) > mostEvents {
		promised.Add(-1)
		return nil, func() error { return nil }, d.Synchronize()
	}
	var e cudriver.Event
	var h cudriver.IPCHandle
	err = d.withReadyContext(r, func() (err error) {
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
		return nil, func() error { return nil }, d.Synchronize() // wait, as no event is available
	}
	return h[:], func() error {
		promised.Add(-1)
		return d.withContext(func(cudriver.Stream) error { return d.driver.EventDestroy(e) })
	}, nil
}
