package cuda

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// Note [Calls that wait] Some driver calls may block until the device has finished its queued work:
// copies between the device and pageable host memory, loading a module, the first product of a
// given shape, allocating, mapping and unmapping, and any call that finds the queue full. NVIDIA
// does not document them completely. None of them blocks forever if a stream waits for a clock of a
// killed process: while a stream waits, a goroutine watches and ends the wait; see
// [Device.watchWaits]. That goroutine must not call the driver or take a lock that is held during a
// driver call.
//
// Calls that are known to block should be made when the stream has nothing left to wait for,
// because they hold driver locks that other calls of this process need.

// callAfterJudging is like [Device.doAfterJudging], for callers that already have the state r of
// the device: it makes the context of r current, and does not initialise the device.
func (d *Device) callAfterJudging(r *ready, calls func() error) error {
	d.judgeWaits()
	return d.withReadyContext(r, calls)
}

// doAfterJudging makes driver calls that may block, with the device's context current, and returns
// their error. First it waits until each pending wait of the stream for another process has been
// judged: the other device has finished, or it never will. It initialises the device if necessary.
// See Note [Calls that wait].
func (d *Device) doAfterJudging(calls func() error) error {
	r, err := d.readyState()
	if err != nil {
		return err
	}
	return d.callAfterJudging(r, calls)
}

// doAndSync queues work on the device's stream and waits until the stream is idle. It returns
// the errors of calls and of [Device.Synchronize].
func (d *Device) doAndSync(calls func(s cudriver.Stream) error) error {
	r, err := d.readyState()
	if err == nil {
		err = d.callAfterJudging(r, func() error { return calls(r.stream) })
	}
	if err != nil {
		return err
	}
	return errors.Join(d.synchronize(r), d.takeLostError())
}
