package devicetest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// A Device is a simulated device, made by [New] or [Shared]. Its methods may be called from
// several goroutines.
type Device struct {
	name   string
	shared bool
	used   atomic.Int64
	most   atomic.Int64 // peak since the last call of Most
	calls  atomic.Int64
	fail   atomic.Pointer[error]
}

// New returns a new device with a name such as test:0. The device need not be registered or
// closed.
func New(name string) *Device { return &Device{name: name} }

// String returns the name.
func (d *Device) String() string { return d.name }

// Used returns the number of bytes that are allocated now.
func (d *Device) Used() int64 { return d.used.Load() }

// Most returns the peak number of allocated bytes since the previous call of Most.
func (d *Device) Most() int64 { return d.most.Swap(d.used.Load()) }

// use adds n, which may be negative, to the number of allocated bytes.
func (d *Device) use(n int) {
	now := d.used.Add(int64(n))
	for most := d.most.Load(); now > most && !d.most.CompareAndSwap(most, now); most = d.most.Load() {
	}
}

// Synchronize returns nil: operations are synchronous.
func (d *Device) Synchronize() error { return nil }

// Calls returns the number of computations so far.
func (d *Device) Calls() int64 { return d.calls.Load() }

// Fail makes all operations of the device return err, until Fail is called with nil.
func (d *Device) Fail(err error) { d.fail.Store(&err) }

func (d *Device) failure() error {
	if p := d.fail.Load(); p != nil {
		return *p
	}
	return nil
}

// Alloc returns n bytes of memory, filled with a pattern that is not zero. It returns the error
// set by [Device.Fail].
func (d *Device) Alloc(n int) (device.Memory, error) {
	if err := d.failure(); err != nil {
		return nil, err
	}
	m := &memory{dev: d}
	if d.shared {
		domain, err := arena.Default()
		if err != nil {
			return nil, err
		}
		block, err := domain.Alloc(max(n, 1))
		if err != nil {
			return nil, err
		}
		if m, err = d.inBlock(domain, block, n); err != nil {
			return nil, err
		}
	} else {
		m.bytes = make([]byte, n)
		d.use(n)
		m.storage = foreignTensors.Adopt(m.bytes, noOwner{})
	}
	for i := range m.bytes {
		m.bytes[i] = 0x5a
	}
	return m, nil
}

// noOwner is the owner of memory that package tensor borrows from a device; its end does
// nothing.
type noOwner struct{}

func (noOwner) End() error { return nil }

type memory struct {
	dev     *Device
	bytes   []byte
	storage *tensor.Storage

	domain *arena.Domain // set for Shared devices
	block  arena.Handle
}

func (m *memory) Device() device.Device { return m.dev }
func (m *memory) Size() int             { return len(m.bytes) }

func (m *memory) Key() any {
	if m.domain != nil {
		return key{m.domain, m.block}
	}
	return m
}

func (m *memory) End() error {
	m.dev.used.Add(-int64(len(m.bytes)))
	if m.domain != nil {
		return m.domain.Release(m.block)
	}
	for i := range m.bytes {
		m.bytes[i] = 0x5a
	}
	return nil
}

func (m *memory) Write(off int, src []byte) error {
	copy(m.bytes[off:off+len(src)], src)
	return m.dev.failure()
}

func (m *memory) Read(dst []byte, off int) error {
	copy(dst, m.bytes[off:off+len(dst)])
	return m.dev.failure()
}

func (m *memory) Fill(off, n int, pattern []byte) error {
	for b := m.bytes[off : off+n]; len(b) > 0; b = b[len(pattern):] {
		copy(b, pattern)
	}
	return m.dev.failure()
}

func (m *memory) Copy(off int, src device.Memory, from, n int) error {
	o, ok := src.(*memory)
	if !ok {
		return fmt.Errorf("%w: copy from %v to %v", tensor.ErrDevice, src.Device(), m.dev)
	}
	copy(m.bytes[off:off+n], o.bytes[from:from+n])
	return m.dev.failure()
}

// errStays is returned when memory of a device that is not Shared is sent.
var errStays = errors.New("devicetest: the memory stays in its process")

// memoryTags has one form: [block, name of the device, bytes].
var memoryTags = &codec.Tags{Type: "test device's memory", Fields: []int{3}}

func (m *memory) Marshal(e *codec.Encoder) error {
	if m.domain == nil {
		return errStays
	}
	e.Tag(memoryTags, 0)
	e.Block(m.block)
	e.String(m.dev.name)
	e.Uint(uint64(len(m.bytes)))
	return nil
}
