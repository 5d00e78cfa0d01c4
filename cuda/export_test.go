package cuda

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/cudriver"
	"github.com/shoal-mp/shoal/internal/cudriver/sim"
	"github.com/shoal-mp/shoal/shm"
)

// Reset lets this process begin anew, as one that has not asked for a device: it gives back what it keeps, and the contexts.
func Reset() error {
	err := EmptyCache()
	segments.Lock()
	c := segments.client
	segments.client, segments.domain = nil, nil
	for _, s := range segments.m {
		if s.refs > 0 {
			err = errors.Join(err, errors.New("a segment is in use"))
		}
		err = errors.Join(err, s.unmap())
	}
	segments.Unlock()
	if c != nil {
		err = errors.Join(err, c.close())
	}
	process.Lock()
	defer process.Unlock()
	if process.system != nil {
		for _, d := range process.system.devices {
			if d.ready.Load() != nil {
				err = errors.Join(err, d.do(func(s cudriver.Stream) error {
					return errors.Join(d.driver.StreamDestroy(s), d.driver.StreamDestroy(d.ready.Load().side))
				}), d.driver.PrimaryCtxRelease(d.id))
				d.ready.Store(nil)
			}
		}
	}
	process.system, process.err, process.chosen = nil, nil, 0
	return err
}

// Simulator returns the driver of this process.
func Simulator() *sim.Driver { return process.system.driver.(*sim.Driver) }

// Mapped counts the segments that this process has mapped.
func Mapped() int {
	segments.Lock()
	defer segments.Unlock()
	return len(segments.m)
}

// Segment returns the block of m's segment.
func (m *Memory) Segment() shm.Handle { return m.segment.block }

// RecordForOthers returns the handle of an event that comes to pass when the device has done what it has now.
func RecordForOthers(d *Device) (h Handle, end func() error, err error) {
	var e cudriver.Event
	err = d.do(func(s cudriver.Stream) (err error) {
		if e, err = d.driver.EventCreate(cudriver.EventInterprocess | cudriver.EventDisableTiming); err != nil {
			return err
		}
		if err = d.driver.EventRecord(e, s); err == nil {
			h, err = d.driver.IPCGetEventHandle(e)
		}
		return err
	})
	return h, func() error { return d.do(func(cudriver.Stream) error { return d.driver.EventDestroy(e) }) }, err
}
