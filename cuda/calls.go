package cuda

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// Note [Calls that wait] Some calls may return only when the device has done what is queued: copies
// between the device and memory of the host whose pages are not locked, loading code, a first
// product of its shape, allocating, mapping and unmapping, and any call that finds the queue full.
// NVIDIA has no list of them. None of them hangs where a stream waits for the number of a process
// that was killed: as long as a stream waits, a goroutine watches and ends the wait; see
// Device.watch. The goroutine needs neither the driver nor a lock that is held for a call of the
// driver. Calls that are known to wait are made when nothing is left to wait for. They would keep
// locks of the driver meanwhile, which other calls of this process need.

// settled makes such calls when all that the stream waits for has been judged.
func (d *Device) settled(r *ready, calls func() error) error {
	d.judge()
	return d.within(r, calls)
}

// doSettled is do for such calls.
func (d *Device) doSettled(calls func() error) error {
	r, err := d.use()
	if err != nil {
		return err
	}
	return d.settled(r, calls)
}

// ask queues work and waits until it is done.
func (d *Device) ask(calls func(s cudriver.Stream) error) error {
	r, err := d.use()
	if err == nil {
		err = d.settled(r, func() error { return calls(r.stream) })
	}
	if err != nil {
		return err
	}
	return errors.Join(d.finish(r), d.tell())
}
