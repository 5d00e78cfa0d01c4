package cuda

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/cudriver"
	"github.com/shoal-mp/shoal/tensor"
)

// WaitHandle lets the device wait for an event of another process, such as PyTorch sends with a
// tensor, before anything else. The host does not wait.
func (d *Device) WaitHandle(event Handle) error {
	return d.do(func(s cudriver.Stream) error {
		e, err := d.driver.IPCOpenEventHandle(cudriver.IPCHandle(event))
		if err != nil {
			return err
		}
		return errors.Join(d.driver.StreamWaitEvent(s, e), d.driver.EventDestroy(e))
	})
}

// Legacy is how package torch reaches the memory of devices: torch.Options{CUDA: cuda.Legacy{}}.
type Legacy struct{}

// Open returns n bytes (Uint8) of memory of another process, by its handle unless n is 0, when the
// device will wait for the event if there is one. done is called once, when the memory is not used
// any more.
func (Legacy) Open(device int, handle [64]byte, off, n int, event []byte,
	done func() error) (*tensor.Tensor, error) {
	d, err := Get(device)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return d.foreign(0, 0, 0, done).flat()
	}
	m, err := d.openMemory(handle, off, n)
	if err != nil {
		return nil, err
	}
	close := m.segment.end
	m.segment.end = func() error { return errors.Join(close(), done()) }
	if event == nil {
		return m.flat()
	}
	if len(event) != len(Handle{}) {
		err = fmt.Errorf("%w: an event's handle of %d bytes", ErrRange, len(event))
	} else {
		err = d.WaitHandle(Handle(event))
	}
	if err != nil {
		m.segment.end = close
		return nil, errors.Join(err, m.End())
	}
	return m.flat()
}

// mostEvents is how many events for other processes there are at once, as in PyTorch: old drivers
// have few.
const mostEvents = 1000

// promised counts those that there are.
var promised atomic.Int64

// Share returns how another process opens the memory of a tensor, and the event that it waits for,
// unless the device has nothing to do. It waits for the device only where there are no more events.
func (Legacy) Share(t *tensor.Tensor) (device int, handle [64]byte, off int, event []byte,
	done func() error, err error) {
	own, err := memoryOf(t)
	if err != nil {
		return 0, handle, 0, nil, nil, err
	}
	if own.size == 0 {
		return own.dev.ordinal, handle, 0, nil, func() error { return nil }, nil
	}
	if handle, off, err = own.handle(); err == nil {
		event, done, err = own.dev.promise()
	}
	return own.dev.ordinal, handle, off, event, done, err
}

// promise returns the handle of an event that comes to pass when the device has done what it has
// now, and what ends the event; nil if it has done that. What this process itself was promised has
// come, or the error says that it has not.
func (d *Device) promise() (event []byte, done func() error, err error) {
	r, err := d.use()
	if err == nil {
		err = errors.Join(d.judge(r), d.tell())
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
