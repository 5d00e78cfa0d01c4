package cuda

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/arena"
)

// Close releases all device resources of this process: cached memory, and contexts. The caller must
// close its device tensors and streams first; if a tensor is still in use, Close returns an error.
// A program need not call Close before it exits.
//
// After Close, the package can be used again: [Get] and [tensor.ParseDevice] return new devices. A
// [Device] from before Close, and everything created from it, returns an error that wraps
// [ErrUnavailable].
func Close() error {
	err := errors.Join(emptyCaches(), unlockAll())
	segments.Lock()
	left := segments.m
	segments.m, segments.domain = map[arena.Handle]*segment{}, nil
	segments.Unlock()
	for _, s := range left {
		if s.refs > 0 {
			err = errors.Join(err, errors.New("a segment is in use"))
		}
		err = errors.Join(err, s.unmap())
	}
	process.Lock()
	defer process.Unlock()
	if process.system != nil {
		for _, d := range process.system.devices {
			d.markClosed()
			if r := d.ready.Load(); r != nil {
				err = errors.Join(err, d.callAfterJudging(r, func() error { return d.releaseResources(r) }),
					d.driver.PrimaryCtxRelease(d.id))
				d.ready.Store(nil)
			}
		}
	}
	process.system, process.err, process.chosen = nil, nil, 0
	return err
}

// markClosed marks the device as closed, so that later uses fail.
func (d *Device) markClosed() {
	d.opening.Lock()
	defer d.opening.Unlock()
	d.over = true
}

// releaseResources releases the resources that this package has created in the device's
// context, which must be current. The context itself may live on, because other libraries may
// have retained it.
func (d *Device) releaseResources(r *ready) (err error) {
	p, c := &r.products, &r.code
	p.Lock()
	if p.handle != 0 {
		err = p.lib.Destroy(p.handle)
	}
	p.begun, p.handle = false, 0
	p.Unlock()
	c.Lock()
	for _, m := range c.modules {
		err = errors.Join(err, d.driver.ModuleUnload(m))
	}
	c.modules, c.functions = nil, nil
	c.Unlock()
	err = errors.Join(err, r.looks.destroyEvents(d))
	return errors.Join(err, d.driver.StreamDestroy(r.stream))
}
