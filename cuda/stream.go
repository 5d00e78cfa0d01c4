package cuda

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/tensor"
)

// A Stream is a queue of device work that runs in order. It is either the device's own stream,
// which all tensor operations use, or an additional one from [Device.NewStream]. Use an [Event] to
// order work on two streams. Methods may be called concurrently.
type Stream struct {
	dev *Device
	id  cudriver.Stream
	own bool // the device's own stream
}

// Stream returns the device's own stream, like torch.cuda.current_stream. It need not be closed.
func (d *Device) Stream() (*Stream, error) {
	r, err := d.readyState()
	if err != nil {
		return nil, err
	}
	return &Stream{dev: d, id: r.stream, own: true}, nil
}

// An Event marks a point in the work of a stream. [Stream.Record] makes it. It is destroyed
// when it is garbage collected. Methods may be called concurrently.
type Event struct {
	dev *Device
	id  cudriver.Event
}

// NewStream creates an additional stream. The caller must close it.
func (d *Device) NewStream() (*Stream, error) {
	s := &Stream{dev: d}
	err := d.withContext(func(cudriver.Stream) (err error) {
		s.id, err = d.driver.StreamCreate(cudriver.StreamNonBlocking)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("new stream of %v: %w", d, err)
	}
	return s, nil
}

// Synchronize waits until the stream has finished all its queued work.
func (s *Stream) Synchronize() error {
	return s.dev.withContext(func(cudriver.Stream) error { return s.dev.driver.StreamSynchronize(s.id) })
}

// Close waits until the stream has finished its work, and destroys it. For the device's own stream,
// Close only waits.
func (s *Stream) Close() error {
	err := s.Synchronize()
	if s.own {
		return err
	}
	return errors.Join(err, s.dev.withContext(func(cudriver.Stream) error { return s.dev.driver.StreamDestroy(s.id) }))
}

// Copy queues a copy of src's elements to dst, within the device or between the device and pinned
// host memory. Both tensors must be contiguous and of the same size in bytes, and must stay open
// until the copy is done. The error wraps [ErrDevice] if a tensor is not on the stream's device,
// and [tensor.ErrLayout] if the tensors are not contiguous or differ in size.
func (s *Stream) Copy(dst, src *tensor.Tensor) error {
	if dst.Device() != tensor.Device(s.dev) || src.Device() != tensor.Device(s.dev) {
		return fmt.Errorf("%w: stream on %v cannot copy from %v to %v", ErrDevice, s.dev,
			tensor.Place{Device: src.Device()}, tensor.Place{Device: dst.Device()})
	}
	if !dst.IsContiguous() || !src.IsContiguous() || dst.Nbytes() != src.Nbytes() {
		return fmt.Errorf("%w: stream copy of %d bytes to %d: want equal sizes and contiguous tensors",
			tensor.ErrLayout, src.Nbytes(),
			dst.Nbytes())
	}
	n := dst.Nbytes()
	to, from := bytesOf(dst, n), bytesOf(src, n)
	dst.Touch()
	return s.dev.withContext(func(cudriver.Stream) error { return s.dev.driver.MemcpyAsync(to, from, uint64(n), s.id) })
}

// bytesOf returns the device address of a contiguous tensor of n bytes. It counts as a use of
// the memory by queued work. It panics if the tensor is not on a device of this package.
func bytesOf(t *tensor.Tensor, n int) cudriver.Ptr {
	return tensors.Memory(t).(*memory).addressAt(t.Offset()*t.DType().Size(), n)
}

// Record returns an event that completes when the stream has finished all work queued so far.
func (s *Stream) Record() (*Event, error) { return s.dev.recordEvent(s.id) }

// Wait makes work that is queued on the stream from now on wait for an event, which may be of
// another device. It does not block the host. The caller need not keep e afterwards.
func (s *Stream) Wait(e *Event) error {
	return s.dev.withContext(func(cudriver.Stream) error { return s.dev.driver.StreamWaitEvent(s.id, e.id) })
}

func (d *Device) recordEvent(s cudriver.Stream) (*Event, error) {
	e := &Event{dev: d}
	err := d.withContext(func(cudriver.Stream) (err error) {
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
			d.withReadyContext(r, func() error { return d.driver.EventDestroy(id) })
		}
	}, e.id)
	return e, nil
}

// Done reports whether the event has completed, without waiting for it. With an error it
// returns false.
func (e *Event) Done() (bool, error) {
	err := e.dev.withContext(func(cudriver.Stream) error { return e.dev.driver.EventQuery(e.id) })
	if errors.Is(err, cudriver.ErrorNotReady) {
		return false, nil
	}
	return err == nil, err
}

// Synchronize waits until the event has completed.
func (e *Event) Synchronize() error {
	return e.dev.withContext(func(cudriver.Stream) error { return e.dev.driver.EventSynchronize(e.id) })
}
