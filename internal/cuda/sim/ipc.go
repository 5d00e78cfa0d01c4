package sim

import (
	"encoding/binary"
	"os"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
)

// The kinds of IPC handles. A handle contains its kind, the creator's process ID, the device, the
// range and a serial number.
const (
	handleOfMemory = 0x6d656d // "mem"
	handleOfEvent  = 0x657674 // "evt"
)

func makeHandle(kind uint64, dev *device, at span, serial uint64) (h cudriver.IPCHandle) {
	for i, v := range [...]uint64{kind, uint64(os.Getpid()), uint64(dev.id), uint64(at.off), uint64(at.n), serial} {
		binary.LittleEndian.PutUint64(h[8*i:], v)
	}
	return h
}

// readHandle decodes a handle. dev is nil if the handle is not valid or not of this kind. The
// caller must hold d.mu.
func (d *Driver) readHandle(h cudriver.IPCHandle, kind uint64) (dev *device, at span, pid int, serial uint64) {
	var v [6]uint64
	for i := range v {
		v[i] = binary.LittleEndian.Uint64(h[8*i:])
	}
	if v[0] != kind || v[2] >= uint64(len(d.devices)) {
		return nil, at, 0, 0
	}
	dev = d.devices[v[2]]
	if end := uint64(dev.size) + eventArea; v[3] >= end || v[4] > end-v[3] || v[4] == 0 {
		return nil, at, 0, 0
	}
	return dev, span{int64(v[3]), int64(v[4])}, int(v[1]), v[5]
}

// IPCGetEventHandle returns a handle that lets other processes open an event. The error is
// ErrorInvalidHandle if the event is not an interprocess event of this process.
func (d *Driver) IPCGetEventHandle(id cudriver.Event) (h cudriver.IPCHandle, err error) {
	err = d.runForEvent("cuIpcGetEventHandle", id, func(c *context, e *event) cudriver.Result {
		if e.area == nil || e.imported {
			return cudriver.ErrorInvalidHandle
		}
		h = makeHandle(handleOfEvent, c.dev, e.at, e.counts.serial.Load())
		return cudriver.Success
	})
	return h, err
}

// IPCOpenEventHandle opens an event of another process; the caller must destroy it. That
// process must not have destroyed it; otherwise the error is ErrorInvalidHandle. It is
// ErrorInvalidContext if the event belongs to this process or to another device than that of
// the current context.
func (d *Driver) IPCOpenEventHandle(h cudriver.IPCHandle) (id cudriver.Event, err error) {
	err = d.runCall("cuIpcOpenEventHandle", inContext, func(c *context) cudriver.Result {
		dev, at, pid, serial := d.readHandle(h, handleOfEvent)
		switch {
		case dev == nil || at.off < dev.size || at.n != eventSize:
			return cudriver.ErrorInvalidValue
		case pid == os.Getpid() || dev != c.dev:
			return cudriver.ErrorInvalidContext
		}
		e := &event{ctx: c, flags: cudriver.EventInterprocess | cudriver.EventDisableTiming, at: at, imported: true}
		if !e.mapCounts(dev.file) {
			return cudriver.ErrorOperatingSystem
		}
		if e.isGone() || e.counts.serial.Load() != serial {
			sys.Unmap(e.area)
			return cudriver.ErrorInvalidHandle
		}
		id = cudriver.Event(d.nextHandle())
		d.events[id] = e
		return cudriver.Success
	})
	return id, err
}

// IPCGetMemHandle returns a handle that lets other processes open legacy memory. p may be any
// address in the memory. The error is ErrorInvalidValue for other memory.
func (d *Driver) IPCGetMemHandle(p cudriver.Ptr) (h cudriver.IPCHandle, err error) {
	err = d.runCall("cuIpcGetMemHandle", inContext, func(*context) cudriver.Result {
		for _, m := range d.mappings {
			if m.origin == allocated && p >= m.base && uint64(p-m.base) < uint64(len(m.mem)) {
				h = makeHandle(handleOfMemory, m.dev, m.at, 0)
				return cudriver.Success
			}
		}
		return cudriver.ErrorInvalidValue
	})
	return h, err
}

// IPCOpenMemHandle opens legacy memory of another process. The memory then survives the death of
// that process, because the open-source part of NVIDIA's kernel driver duplicates the memory
// object. But if that process frees the memory, its contents are undefined. A context of another
// device can open the memory if that device has peer access; otherwise the result is
// ErrorMapFailed. It is ErrorInvalidHandle if the memory does not exist any more, and
// ErrorInvalidContext if it belongs to this process.
func (d *Driver) IPCOpenMemHandle(h cudriver.IPCHandle) (p cudriver.Ptr, err error) {
	err = d.runCall("cuIpcOpenMemHandle", inContext, func(c *context) cudriver.Result {
		dev, at, pid, _ := d.readHandle(h, handleOfMemory)
		switch m := c.opened[h]; {
		case dev == nil:
			return cudriver.ErrorInvalidValue
		case pid == os.Getpid():
			return cudriver.ErrorInvalidContext
		case !dev.isLocked(at):
			return cudriver.ErrorInvalidHandle
		case dev != c.dev && d.apart:
			return cudriver.ErrorMapFailed
		case m != nil:
			m.count++
			p = m.base
			return cudriver.Success
		}
		mem, err := dev.mapShared(at)
		if err != nil {
			return cudriver.ErrorMapFailed
		}
		p = d.reserveAddresses(uint64(at.n))
		m := &mapping{origin: opened, base: p, mem: mem, dev: dev, at: at, of: c, count: 1}
		c.opened[h] = m
		d.mappings = append(d.mappings, m)
		return cudriver.Success
	})
	return p, err
}

// IPCCloseMemHandle undoes one [Driver.IPCOpenMemHandle], which returned p. The last one unmaps
// the memory.
func (d *Driver) IPCCloseMemHandle(p cudriver.Ptr) error {
	return d.runBlockingCall("cuIpcCloseMemHandle", inContext, func(c *context) cudriver.Result {
		m := d.mappingAt(p, opened)
		if m == nil || m.of != c {
			return cudriver.ErrorInvalidValue
		}
		if m.count--; m.count == 0 {
			for h, o := range c.opened {
				if o == m {
					delete(c.opened, h)
				}
			}
			d.removeMapping(m)
		}
		return cudriver.Success
	})
}
