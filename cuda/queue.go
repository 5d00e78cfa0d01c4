package cuda

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/cudriver"
)

// room is how much work there is always room for. A stream queues some thousand pieces on known
// devices; giving it more waits.
const room = 500

// queue queues work. Where there might be no room the host waits before, as in Note [Calls that
// wait].
func (d *Device) queue(calls func(s cudriver.Stream) error) error {
	r, err := d.use()
	if err == nil && d.events.queued.Add(1)%room == 0 {
		err = d.judge(r)
	}
	if err != nil {
		return err
	}
	return d.within(r, func() error { return calls(r.stream) })
}

// Note [Calls that wait] Some calls may return only when the device has done what is queued: copies
// between it and memory of the host whose pages are not locked, loading code, and allocating by
// cuMemAlloc. That never comes where a stream waits for the number of a process that was killed, so
// they are made when all that the stream waits for has been judged, and nothing more is waited for
// meanwhile.

// settled makes such calls.
func (d *Device) settled(r *ready, calls func() error) error {
	if err := d.judge(r); err != nil { // mostly enough
		return err
	}
	d.events.gate.Lock()
	defer d.events.gate.Unlock()
	if err := d.judge(r); err != nil {
		return err
	}
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
