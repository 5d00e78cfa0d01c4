package cuda

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/tensor"
)

// A Stream is work of a device that is done in order: the device's own stream, which everything
// uses that names no other, or one beside it. Events order the work of two streams. Its methods may
// be called by several goroutines.
type Stream struct {
	dev *Device
	id  cudriver.Stream
	own bool // the device's
}

// Stream returns the device's own stream, as torch.cuda.current_stream does. It needs no Close.
func (d *Device) Stream() (*Stream, error) {
	r, err := d.use()
	if err != nil {
		return nil, err
	}
	return &Stream{dev: d, id: r.stream, own: true}, nil
}

// An Event is a point in the work of a stream. The garbage collector gives it back.
type Event struct {
	dev *Device
	id  cudriver.Event
}

// NewStream returns a stream beside the device's own. The caller closes it.
func (d *Device) NewStream() (*Stream, error) {
	s := &Stream{dev: d}
	err := d.do(func(cudriver.Stream) (err error) {
		s.id, err = d.driver.StreamCreate(cudriver.StreamNonBlocking)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("new stream of %v: %w", d, err)
	}
	return s, nil
}

// Synchronize waits until the stream has done all its work.
func (s *Stream) Synchronize() error {
	return s.dev.do(func(cudriver.Stream) error { return s.dev.driver.StreamSynchronize(s.id) })
}

// Close waits for the stream and ends it. The device's own stream goes on.
func (s *Stream) Close() error {
	err := s.Synchronize()
	if s.own {
		return err
	}
	return errors.Join(err, s.dev.do(func(cudriver.Stream) error { return s.dev.driver.StreamDestroy(s.id) }))
}

// Copy queues a copy of src's elements to dst, within the device or between it and pinned memory of
// the host. Both tensors are contiguous, have as many bytes, and stay open until the copy is done.
// The error wraps ErrDevice where one is not on the stream's device, or tensor.ErrLayout.
func (s *Stream) Copy(dst, src *tensor.Tensor) error {
	if dst.Device() != tensor.Device(s.dev) || src.Device() != tensor.Device(s.dev) {
		return fmt.Errorf("%w: a stream of %v copies from %v to %v", ErrDevice, s.dev,
			tensor.Place{Device: src.Device()}, tensor.Place{Device: dst.Device()})
	}
	if !dst.IsContiguous() || !src.IsContiguous() || dst.Nbytes() != src.Nbytes() {
		return fmt.Errorf("%w: a stream copies %d bytes to %d, which are contiguous", tensor.ErrLayout, src.Nbytes(),
			dst.Nbytes())
	}
	n := dst.Nbytes()
	to, from := bytesOf(dst, n), bytesOf(src, n)
	dst.Touch()
	return s.dev.do(func(cudriver.Stream) error { return s.dev.driver.MemcpyAsync(to, from, uint64(n), s.id) })
}

// bytesOf returns the address of the n bytes of a contiguous tensor on a device.
func bytesOf(t *tensor.Tensor, n int) cudriver.Ptr {
	return tensors.Memory(t).(*memory).at(t.Offset()*t.DType().Size(), n)
}

// Record returns an event to which the stream comes when it has done what it has now.
func (s *Stream) Record() (*Event, error) { return s.dev.record(s.id) }

// Wait lets the stream wait for an event, also of another device, before it does more. The host
// does not wait.
func (s *Stream) Wait(e *Event) error {
	return s.dev.do(func(cudriver.Stream) error { return s.dev.driver.StreamWaitEvent(s.id, e.id) })
}

func (d *Device) record(s cudriver.Stream) (*Event, error) {
	e := &Event{dev: d}
	err := d.do(func(cudriver.Stream) (err error) {
		if e.id, err = d.driver.EventCreate(cudriver.EventDisableTiming); err != nil {
			return err
		}
		if err = d.driver.EventRecord(e.id, s); err != nil {
			err = errors.Join(err, d.driver.EventDestroy(e.id))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("record event of %v: %w", d, err)
	}
	runtime.AddCleanup(e, func(id cudriver.Event) {
		if r := d.ready.Load(); r != nil {
			d.within(r, func() error { return d.driver.EventDestroy(id) })
		}
	}, e.id)
	return e, nil
}

// Done reports whether the stream has come to the event.
func (e *Event) Done() (bool, error) {
	err := e.dev.do(func(cudriver.Stream) error { return e.dev.driver.EventQuery(e.id) })
	if errors.Is(err, cudriver.ErrorNotReady) {
		return false, nil
	}
	return err == nil, err
}

// Synchronize waits until the stream has come to the event.
func (e *Event) Synchronize() error {
	return e.dev.do(func(cudriver.Stream) error { return e.dev.driver.EventSynchronize(e.id) })
}
