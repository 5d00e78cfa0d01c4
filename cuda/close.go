package cuda

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/shm"
)

// Close gives back all that this process has of devices: memory that it keeps for later
// allocations, and contexts. Its tensors and streams there are closed before, or the error says
// that a tensor is in use. A program may leave Close to the end of the process. After Close the
// package begins anew: a Device of before, and what was made of it, returns an error that wraps
// ErrUnavailable, and Get and tensor.ParseDevice return another one.
func Close() error {
	err := errors.Join(emptyCaches(), unlockAll())
	segments.Lock()
	left := segments.m
	segments.m, segments.domain = map[shm.Handle]*segment{}, nil
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
			d.end()
			if r := d.ready.Load(); r != nil {
				err = errors.Join(err, d.settled(r, func() error { return d.leave(r) }),
					d.driver.PrimaryCtxRelease(d.id))
				d.ready.Store(nil)
			}
		}
	}
	process.system, process.err, process.chosen = nil, nil, 0
	return err
}

// end lets nobody use the device any more.
func (d *Device) end() {
	d.opening.Lock()
	defer d.opening.Unlock()
	d.over = true
}

// leave ends what the device's context has of this package: another library may keep the context.
func (d *Device) leave(r *ready) (err error) {
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
	err = errors.Join(err, r.looks.end(d))
	return errors.Join(err, d.driver.StreamDestroy(r.stream))
}
