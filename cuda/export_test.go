package cuda

import (
	"github.com/shoal-mp/shoal/internal/cudriver"
	"github.com/shoal-mp/shoal/internal/cudriver/sim"
	"github.com/shoal-mp/shoal/shm"
)

// Reset is Close, after which the environment may name other devices.
func Reset() error { return Close() }

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

// Clock returns how far the clock of a device has come that this process has sent something of.
func Clock(d *Device) (uint32, error) {
	r, err := d.use()
	if err != nil {
		return 0, err
	}
	return d.read(r, d.events.clock.Memory)
}

// EmptySegments is the part of EmptyCache that gives back segments.
func EmptySegments() error { return emptyCache() }
