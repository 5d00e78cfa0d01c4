package sim

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/sys"
)

// An origin is the way memory was mapped.
type origin int

const (
	allocated origin = iota // cuMemAlloc
	mapped                  // cuMemMap
	opened                  // cuIpcOpenMemHandle
	host                    // cuMemHostRegister
)

// A mapping is memory at a device address. The driver's lock guards it.
type mapping struct {
	origin origin
	base   cudriver.Ptr
	mem    []byte
	dev    *device  // nil for host memory
	at     span     // range in the device
	of     *context // the owning context; nil for cuMemMap, which uses access instead
	access map[cudriver.Device]int32
	count  int // number of opens
}

func (m *mapping) unmap() {
	if m.origin != host {
		sys.Unmap(m.mem)
	}
}

// reserveAddresses assigns n bytes of address space, followed by an unmapped gap. The addresses are
// never assigned again. The caller must hold d.mu.
func (d *Driver) reserveAddresses(n uint64) cudriver.Ptr {
	p := d.address
	d.address += cudriver.Ptr((n + 2*granularity - 1) / granularity * granularity)
	return p
}

func (d *Driver) mappingAt(p cudriver.Ptr, of origin) *mapping {
	for _, m := range d.mappings {
		if m.base == p && m.origin == of {
			return m
		}
	}
	return nil
}

func (d *Driver) removeMapping(m *mapping) {
	d.mappings = slices.DeleteFunc(d.mappings, func(o *mapping) bool { return o == m })
	m.unmap()
}

// bytesAt returns the n bytes at p. It returns nil if they are not within one mapping, or if
// c's device must not access them with the given flags, AccessRead or AccessReadWrite. The
// caller must hold d.mu.
func (d *Driver) bytesAt(c *context, p cudriver.Ptr, n uint64, flags int32) []byte {
	for _, m := range d.mappings {
		if p < m.base || uint64(p-m.base) > uint64(len(m.mem)) || n > uint64(len(m.mem))-uint64(p-m.base) || n == 0 {
			continue
		}
		switch {
		case m.origin == mapped && m.access[c.dev.id]&flags != flags,
			m.origin == allocated && m.of != c, m.origin == opened && m.of != c:
			return nil
		}
		return m.mem[p-m.base:][:n]
	}
	return nil
}

// MemGetInfo returns the free and total memory of the current context's device in bytes. It
// counts allocations of all processes and the driver's own. The free amount is inexact: it is
// too small by up to 256 KiB.
func (d *Driver) MemGetInfo() (free, total uint64, err error) {
	err = d.runCall("cuMemGetInfo", inContext, func(c *context) cudriver.Result {
		n, err := c.dev.reportedFree()
		if err != nil {
			return cudriver.ErrorOperatingSystem
		}
		free, total = uint64(n), uint64(c.dev.size)
		return cudriver.Success
	})
	return free, total, err
}

// MemAlloc allocates n bytes of legacy memory, rounded up to whole pages of 4 KiB. The caller
// must free it. The error is ErrorOutOfMemory if the device has too little free memory.
func (d *Driver) MemAlloc(n uint64) (p cudriver.Ptr, err error) {
	err = d.runBlockingCall("cuMemAlloc", inContext, func(c *context) cudriver.Result {
		if n == 0 {
			return cudriver.ErrorInvalidValue
		}
		size := int64(n+page-1) / page * page
		ph, r := c.dev.create(size, page)
		if r != cudriver.Success {
			return r
		}
		defer ph.file.Close() // the mapping keeps the description open
		mem, err := sys.MapRange(ph.file, ph.at.off, int(size))
		if err != nil {
			return cudriver.ErrorOutOfMemory
		}
		// processes that open the memory share its lock; see Note [Memory that the kernel counts]
		if ok, err := sys.ShareRange(ph.file, ph.at.off, size); err != nil || !ok {
			sys.Unmap(mem)
			return cudriver.ErrorOperatingSystem
		}
		p = d.reserveAddresses(uint64(size))
		d.mappings = append(d.mappings, &mapping{origin: allocated, base: p, mem: mem, dev: c.dev, at: ph.at, of: c})
		return cudriver.Success
	})
	return p, err
}

// MemFree frees memory. p must be a result of [Driver.MemAlloc], or the error is
// ErrorInvalidValue. Processes that have the memory open read garbage from then on.
func (d *Driver) MemFree(p cudriver.Ptr) error {
	return d.runBlockingCall("cuMemFree", inContext, func(*context) cudriver.Result {
		m := d.mappingAt(p, allocated)
		if m == nil {
			return cudriver.ErrorInvalidValue
		}
		fillFreed(m.mem)
		d.removeMapping(m)
		return cudriver.Success
	})
}

// MemGetAddressRange returns the address and the size in bytes of the allocation that contains
// p. The error is ErrorNotFound if there is none.
func (d *Driver) MemGetAddressRange(p cudriver.Ptr) (base cudriver.Ptr, size uint64, err error) {
	err = d.runCall("cuMemGetAddressRange", inContext, func(*context) cudriver.Result {
		for _, m := range d.mappings {
			if p >= m.base && uint64(p-m.base) < uint64(len(m.mem)) {
				base, size = m.base, uint64(len(m.mem))
				return cudriver.Success
			}
		}
		return cudriver.ErrorNotFound
	})
	return base, size, err
}

// MemHostRegister maps host memory on the devices. Its device address is the host address, as
// with unified addressing. b must not be freed before it is unregistered. The error is
// ErrorHostMemoryAlreadyRegistered if a page of b is registered already.
func (d *Driver) MemHostRegister(b []byte, _ cudriver.HostFlags) error {
	return d.runBlockingCall("cuMemHostRegister", inContext, func(c *context) cudriver.Result {
		switch {
		case len(b) == 0:
			return cudriver.ErrorInvalidValue
		case d.isOverlapped(b):
			return cudriver.ErrorHostMemoryAlreadyRegistered
		}
		d.mappings = append(d.mappings, &mapping{origin: host, mem: b,
			base: cudriver.Ptr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))})
		return cudriver.Success
	})
}

// isOverlapped reports whether any page of b is registered. The caller must hold d.mu.
func (d *Driver) isOverlapped(b []byte) bool {
	begin, end := pagesOf(b)
	return slices.ContainsFunc(d.mappings, func(m *mapping) bool {
		from, to := pagesOf(m.mem)
		return m.origin == host && from < end && begin < to
	})
}

func pagesOf(b []byte) (begin, end uintptr) {
	begin = uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return begin / page * page, (begin + uintptr(len(b)) + page - 1) / page * page
}

// isRegistered reports whether b is within registered memory. The caller must hold d.mu.
func (d *Driver) isRegistered(b []byte) bool {
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return slices.ContainsFunc(d.mappings, func(m *mapping) bool {
		off := begin - uintptr(unsafe.Pointer(unsafe.SliceData(m.mem)))
		return m.origin == host && off <= uintptr(len(m.mem)) && uintptr(len(b)) <= uintptr(len(m.mem))-off
	})
}

func (d *Driver) registeredMapping(b []byte) *mapping {
	for _, m := range d.mappings {
		if m.origin == host && unsafe.SliceData(m.mem) == unsafe.SliceData(b) {
			return m
		}
	}
	return nil
}

// MemHostUnregister unregisters host memory. b must begin where the registered memory begins.
func (d *Driver) MemHostUnregister(b []byte) error {
	return d.runBlockingCall("cuMemHostUnregister", inContext, func(*context) cudriver.Result {
		m := d.registeredMapping(b)
		if m == nil {
			return 713 // CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
		}
		d.removeMapping(m)
		return cudriver.Success
	})
}

// MemHostGetDevicePointer returns the device address of registered host memory. b must begin
// where the registered memory begins.
func (d *Driver) MemHostGetDevicePointer(b []byte) (p cudriver.Ptr, err error) {
	err = d.runCall("cuMemHostGetDevicePointer", inContext, func(*context) cudriver.Result {
		m := d.registeredMapping(b)
		if m == nil {
			return cudriver.ErrorInvalidValue
		}
		p = m.base
		return cudriver.Success
	})
	return p, err
}

// MemcpyHtoDAsync queues a copy to the device. It waits for the copy unless src is registered.
func (d *Driver) MemcpyHtoDAsync(dst cudriver.Ptr, src []byte, s cudriver.Stream) error {
	return d.copyHost("cuMemcpyHtoDAsync", s, src, func(c *context) cudriver.Result {
		return copyBytes(d.bytesAt(c, dst, uint64(len(src)), cudriver.AccessReadWrite), src)
	})
}

// MemcpyDtoHAsync queues a copy from the device. It waits for the copy unless dst is registered.
func (d *Driver) MemcpyDtoHAsync(dst []byte, src cudriver.Ptr, s cudriver.Stream) error {
	return d.copyHost("cuMemcpyDtoHAsync", s, dst, func(c *context) cudriver.Result {
		return copyBytes(dst, d.bytesAt(c, src, uint64(len(dst)), cudriver.AccessRead))
	})
}

// MemcpyAsync queues a copy of n bytes between two device addresses, including registered host
// memory.
func (d *Driver) MemcpyAsync(dst, src cudriver.Ptr, n uint64, s cudriver.Stream) error {
	return d.queueWork("cuMemcpyAsync", s, func(c *context) cudriver.Result {
		return copyBytes(d.bytesAt(c, dst, n, cudriver.AccessReadWrite), d.bytesAt(c, src, n, cudriver.AccessRead))
	})
}

// MemcpyPeerAsync queues a copy of device memory between contexts. It rejects host memory, because
// CUDA does not document such copies. The destination context must have access to memory that
// cuMemMap mapped for the source; the driver handles other memory itself.
func (d *Driver) MemcpyPeerAsync(dst cudriver.Ptr, dstCtx cudriver.Context, src cudriver.Ptr,
	srcCtx cudriver.Context, n uint64, s cudriver.Stream) error {
	const call = "cuMemcpyPeerAsync"
	if d.isHost(dst) || d.isHost(src) {
		return cudriver.Check(call, cudriver.ErrorInvalidValue)
	}
	return d.queueWork(call, s, func(*context) cudriver.Result {
		to, from := d.contexts[dstCtx], d.contexts[srcCtx]
		if to == nil || from == nil {
			return cudriver.ErrorInvalidContext
		}
		bytes := d.bytesAt(from, src, n, cudriver.AccessRead)
		if d.originOf(src) == mapped && d.bytesAt(to, src, n, cudriver.AccessRead) == nil {
			bytes = nil
		}
		return copyBytes(d.bytesAt(to, dst, n, cudriver.AccessReadWrite), bytes)
	})
}

// originOf returns the origin of the mapping that contains p, or -1 if there is none. The
// caller must hold d.mu.
func (d *Driver) originOf(p cudriver.Ptr) origin {
	for _, m := range d.mappings {
		if p >= m.base && uint64(p-m.base) < uint64(len(m.mem)) {
			return m.origin
		}
	}
	return -1
}

func (d *Driver) isHost(p cudriver.Ptr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.originOf(p) == host
}

func copyBytes(dst, src []byte) cudriver.Result {
	if dst == nil || src == nil {
		return cudriver.ErrorIllegalAddress
	}
	copy(dst, src)
	return cudriver.Success
}

// MemsetD8Async queues a fill with n values of 1 byte.
func (d *Driver) MemsetD8Async(dst cudriver.Ptr, v uint8, n uint64, s cudriver.Stream) error {
	return d.set("cuMemsetD8Async", dst, []byte{v}, n, s)
}

// MemsetD16Async queues a fill with n values of 2 bytes. dst must be a multiple of 2.
func (d *Driver) MemsetD16Async(dst cudriver.Ptr, v uint16, n uint64, s cudriver.Stream) error {
	return d.set("cuMemsetD16Async", dst, binary.NativeEndian.AppendUint16(nil, v), n, s)
}

// MemsetD32Async queues a fill with n values of 4 bytes. dst must be a multiple of 4.
func (d *Driver) MemsetD32Async(dst cudriver.Ptr, v uint32, n uint64, s cudriver.Stream) error {
	return d.set("cuMemsetD32Async", dst, binary.NativeEndian.AppendUint32(nil, v), n, s)
}

func (d *Driver) set(call string, dst cudriver.Ptr, v []byte, n uint64, s cudriver.Stream) error {
	if uint64(dst)%uint64(len(v)) != 0 {
		return cudriver.Check(call, cudriver.ErrorInvalidValue)
	}
	return d.queueWork(call, s, func(c *context) cudriver.Result {
		b := d.bytesAt(c, dst, n*uint64(len(v)), cudriver.AccessReadWrite)
		if b == nil {
			return cudriver.ErrorIllegalAddress
		}
		for i := range b {
			b[i] = v[i%len(v)]
		}
		return cudriver.Success
	})
}
