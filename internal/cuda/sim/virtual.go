package sim

import (
	"os"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
)

// physical is memory without an address: an open file description. See Note [Memory that the kernel
// counts].
type physical struct {
	dev       *device
	file      *os.File
	at        span
	shareable bool
}

// create allocates n bytes of the device's memory at a multiple of align. The memory contains
// garbage. The caller must close the file of the result. It returns ErrorOutOfMemory if the
// device has too little free memory.
func (d *device) create(n, align int64) (*physical, cudriver.Result) {
	if n > d.size {
		return nil, cudriver.ErrorOutOfMemory
	}
	if free, err := d.free(); err != nil || free < n {
		return nil, cudriver.ErrorOutOfMemory
	}
	f, off, err := d.allocateBytes(0, d.size, n, align)
	switch {
	case err != nil:
		return nil, cudriver.ErrorOperatingSystem
	case f == nil:
		return nil, cudriver.ErrorOutOfMemory
	}
	if err := sys.Punch(f, off, n); err != nil || fillGarbage(f, off, n) != nil {
		f.Close()
		return nil, cudriver.ErrorOperatingSystem
	}
	return &physical{dev: d, file: f, at: span{off, n}}, cudriver.Success
}

// MemGetAllocationGranularity returns 2 MiB, the granularity of data centre GPUs.
func (d *Driver) MemGetAllocationGranularity(p cudriver.AllocationProp, _ cudriver.Granularity) (uint64, error) {
	return granularity, d.runCall("cuMemGetAllocationGranularity", initialised, func(*context) cudriver.Result {
		_, r := d.owner(p)
		return r
	})
}

func (d *Driver) owner(p cudriver.AllocationProp) (*device, cudriver.Result) {
	switch {
	case !p.Valid():
		return nil, cudriver.ErrorInvalidValue
	case p.Location.ID < 0 || int(p.Location.ID) >= len(d.devices):
		return nil, cudriver.ErrorInvalidDevice
	}
	return d.devices[p.Location.ID], cudriver.Success
}

// MemCreate allocates n bytes of memory without an address. n must be a multiple of the
// granularity. The caller must release the handle.
func (d *Driver) MemCreate(n uint64, p cudriver.AllocationProp) (h cudriver.MemHandle, err error) {
	err = d.runCall("cuMemCreate", inContext, func(*context) cudriver.Result {
		dev, r := d.owner(p)
		switch {
		case r != cudriver.Success:
			return r
		case n == 0 || n%granularity != 0:
			return cudriver.ErrorInvalidValue
		}
		ph, r := dev.create(int64(n), granularity)
		if r == cudriver.Success {
			ph.shareable = p.Shareable()
			h = d.addPhysical(ph)
		}
		return r
	})
	return h, err
}

func (d *Driver) addPhysical(ph *physical) cudriver.MemHandle {
	h := cudriver.MemHandle(d.nextHandle())
	d.handles[h] = ph
	return h
}

// MemRelease releases a handle. Mappings and exported descriptors keep the memory alive.
func (d *Driver) MemRelease(h cudriver.MemHandle) error {
	return d.runCall("cuMemRelease", inContext, func(*context) cudriver.Result {
		ph := d.handles[h]
		if ph == nil {
			return cudriver.ErrorInvalidValue
		}
		delete(d.handles, h)
		if ph.file.Close() != nil {
			return cudriver.ErrorOperatingSystem
		}
		return cudriver.Success
	})
}

// MemExport returns a new descriptor that references the memory, which the caller must close.
// CUDA does not document whether the descriptor is close-on-exec, so this one is not: if the
// caller does not set the flag, child programs keep the memory alive. The error is
// ErrorInvalidValue if the memory is imported or not shareable.
func (d *Driver) MemExport(h cudriver.MemHandle) (fd int, err error) {
	err = d.runCall("cuMemExportToShareableHandle", inContext, func(*context) cudriver.Result {
		ph := d.handles[h]
		if ph == nil || !ph.shareable {
			return cudriver.ErrorInvalidValue
		}
		var err error
		if fd, err = sys.DuplicateInherited(ph.file); err != nil {
			return cudriver.ErrorOperatingSystem
		}
		return cudriver.Success
	})
	return fd, err
}

// MemImport returns a handle with a reference of its own to the memory. The caller still owns
// fd, and must release the handle. The error is ErrorUnknown if fd does not reference memory of
// a simulated device.
func (d *Driver) MemImport(fd int) (h cudriver.MemHandle, err error) {
	err = d.runCall("cuMemImportFromShareableHandle", inContext, func(*context) cudriver.Result {
		f, err := sys.DuplicateNumber(fd)
		if err != nil {
			return cudriver.ErrorInvalidValue
		}
		ph := d.physicalOf(f)
		if ph == nil {
			f.Close()
			return cudriver.ErrorUnknown
		}
		h = d.addPhysical(ph)
		return cudriver.Success
	})
	return h, err
}

// physicalOf returns the memory that a file description stands for, or nil if it stands for
// none. The result takes ownership of f. The description's position is the memory's offset, and
// the lock at that offset has its size.
func (d *Driver) physicalOf(f *os.File) *physical {
	id, _, err := sys.Identify(f)
	if err != nil {
		return nil
	}
	for _, dev := range d.devices {
		if own, _, err := sys.Identify(dev.file); err != nil || own != id {
			continue
		}
		off, err := f.Seek(0, 1)
		if err != nil {
			return nil
		}
		if start, n, err := sys.LockedRange(dev.file, off, 1); err == nil && n > 0 && start == off {
			// imported memory must not be exported again
			return &physical{dev, f, span{off, n}, false}
		}
	}
	return nil
}

// MemAddressReserve reserves an address range of n bytes. n must be a multiple of the
// granularity. The caller must free the range.
func (d *Driver) MemAddressReserve(n, align uint64) (p cudriver.Ptr, err error) {
	err = d.runCall("cuMemAddressReserve", inContext, func(*context) cudriver.Result {
		if n == 0 || n%granularity != 0 || align > granularity {
			return cudriver.ErrorInvalidValue
		}
		p = d.reserveAddresses(n)
		d.reserved[p] = n
		return cudriver.Success
	})
	return p, err
}

// MemAddressFree frees an address range. p and n must describe a whole reservation without
// mappings.
func (d *Driver) MemAddressFree(p cudriver.Ptr, n uint64) error {
	return d.runCall("cuMemAddressFree", inContext, func(*context) cudriver.Result {
		if d.reserved[p] != n || n == 0 || d.overlaps(p, n) {
			return cudriver.ErrorInvalidValue
		}
		delete(d.reserved, p)
		return cudriver.Success
	})
}

func (d *Driver) overlaps(p cudriver.Ptr, n uint64) bool {
	for _, m := range d.mappings {
		if p < m.base+cudriver.Ptr(len(m.mem)) && m.base < p+cudriver.Ptr(n) {
			return true
		}
	}
	return false
}

// MemMap maps all of a handle's memory within a reservation. No device can access it before
// [Driver.MemSetAccess].
func (d *Driver) MemMap(p cudriver.Ptr, n uint64, h cudriver.MemHandle) error {
	return d.runCall("cuMemMap", inContext, func(*context) cudriver.Result {
		ph := d.handles[h]
		switch {
		case ph == nil || n != uint64(ph.at.n) || uint64(p)%granularity != 0 || !d.isReserved(p, n):
			return cudriver.ErrorInvalidValue
		case d.overlaps(p, n):
			return cudriver.ErrorAlreadyMapped
		}
		mem, err := sys.MapRange(ph.file, ph.at.off, int(n))
		if err != nil {
			return cudriver.ErrorMapFailed
		}
		d.mappings = append(d.mappings, &mapping{origin: mapped, base: p, mem: mem, dev: ph.dev, at: ph.at,
			access: map[cudriver.Device]int32{}})
		return cudriver.Success
	})
}

func (d *Driver) isReserved(p cudriver.Ptr, n uint64) bool {
	for base, size := range d.reserved {
		if p >= base && uint64(p-base) <= size && n <= size-uint64(p-base) {
			return true
		}
	}
	return false
}

// MemUnmap removes a mapping; p and n must be as passed to [Driver.MemMap]. It blocks while a
// stream waits. It does not wait for other queued work, which then fails; CUDA documents neither.
func (d *Driver) MemUnmap(p cudriver.Ptr, n uint64) error {
	return d.runBlockingCall("cuMemUnmap", inContext, func(*context) cudriver.Result {
		m := d.mappingAt(p, mapped)
		if m == nil || uint64(len(m.mem)) != n {
			return cudriver.ErrorInvalidValue
		}
		d.removeMapping(m)
		return cudriver.Success
	})
}

// MemSetAccess sets the access of devices to a mapping. p and n must be as passed to
// [Driver.MemMap].
func (d *Driver) MemSetAccess(p cudriver.Ptr, n uint64, access []cudriver.AccessDesc) error {
	return d.runBlockingCall("cuMemSetAccess", inContext, func(*context) cudriver.Result {
		m := d.mappingAt(p, mapped)
		if m == nil || uint64(len(m.mem)) != n || len(access) == 0 {
			return cudriver.ErrorInvalidValue
		}
		for _, a := range access {
			if a.Location.ID < 0 || int(a.Location.ID) >= len(d.devices) {
				return cudriver.ErrorInvalidDevice
			}
			m.access[a.Location.ID] = a.Flags
		}
		return cudriver.Success
	})
}
