package tensor

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/device"
)

// A Device is an accelerator with memory for tensors. Package cuda implements devices. A nil Device
// is the host.
type Device interface {
	fmt.Stringer // the name in PyTorch: cuda:0
	// Synchronize waits until the device has completed all work of this process.
	Synchronize() error
}

// onDevice holds a storage's memory on a device. The memory ends at the first call of
// releaseMemory.
type onDevice struct {
	device.Memory
	once sync.Once
}

func (l *onDevice) releaseMemory() (err error) {
	l.once.Do(func() {
		residents.Lock()
		if r := residents.m[l.Key()]; r.lease == l {
			delete(residents.m, l.Key())
		}
		residents.Unlock()
		rented.Add(-int64(l.Size()))
		err = l.Memory.End()
	})
	return err
}

// rented is the number of device bytes that this process's tensors use. When it exceeds collectAt,
// allocateOn runs the garbage collector to find unreachable tensors: to the collector, each of them
// is only a few bytes on the heap.
var rented, collectAt atomic.Int64

// roomy is the minimum of collectAt, in bytes.
const roomy = 256 << 20

func allocateOn(dev Device, n int) (device.Memory, error) {
	engine := device.EngineOf(dev)
	if engine == nil {
		return nil, fmt.Errorf("%w: %v: import the package that provides it", ErrDevice, dev)
	}
	if rented.Load()+int64(n) > max(collectAt.Load(), roomy) {
		runCollector()
		collectAt.Store(2 * rented.Load())
	}
	m, err := engine.Alloc(n)
	if err != nil && rented.Load() > 0 {
		runCollector()
		m, err = engine.Alloc(n)
	}
	return m, err
}

// Synchronize waits until dev has completed all work of this process. It returns at once for nil,
// the host. It returns the device's errors.
func Synchronize(dev Device) error {
	if dev == nil {
		return nil
	}
	return dev.Synchronize()
}

// residents maps device memory to its storage, for memory that is received again.
var residents = struct {
	sync.Mutex
	m map[any]resident
}{m: map[any]resident{}}

type resident struct {
	lease   *onDevice
	storage weak.Pointer[Storage]
}

// storageOn returns the storage of m with one more reference, which the caller must release. It
// takes ownership of m: if the memory has a storage already, storageOn ends m and returns that
// storage, or the error of ending m.
func storageOn(m device.Memory) (*Storage, error) {
	residents.Lock()
	if old := residents.m[m.Key()].storage.Value(); old != nil && old.retainOpen() {
		residents.Unlock()
		if err := m.End(); err != nil {
			return nil, errors.Join(err, old.release())
		}
		return old, nil
	}
	defer residents.Unlock()
	s, l := new(Storage), &onDevice{Memory: m}
	rented.Add(int64(m.Size()))
	s.uses.Store(1)
	s.setForeign(&memory{lease: l})
	residents.m[m.Key()] = resident{l, weak.Make(s)}
	return s, nil
}

// size returns the number of bytes of m, on the host or on a device.
func (m *memory) size() int {
	if l, ok := m.lease.(*onDevice); ok {
		return l.Size()
	}
	return len(m.bytes)
}

// device returns the lease of device memory. ok is false if t is on the host.
func (t *Tensor) device() (l *onDevice, ok bool) {
	l, ok = t.store().mem.Load().lease.(*onDevice)
	return l, ok
}

// Device returns the device of the tensor's memory, or nil for the host.
func (t *Tensor) Device() Device {
	if l, ok := t.device(); ok {
		return l.Memory.Device()
	}
	return nil
}

// deviceMemory returns the memory of a tensor on a device, or nil if it is on the host. The
// tensor still owns it.
func (t *Tensor) deviceMemory() device.Memory {
	if l, ok := t.device(); ok {
		return l.Memory
	}
	return nil
}

// On returns the [Place] of a device, or of the host if dev is nil. Its methods create tensors,
// which the caller must close. They return the device's errors, for example if it is out of memory.
//
//	x, err := tensor.On(dev).Zeros(tensor.Float32, 64, 10)
func On(dev Device) Place { return Place{dev} }

// Empty returns a tensor with uninitialized elements. The caller must close it. Empty panics if
// dt or shape is invalid. The error wraps [ErrDevice] if the package of the device is not
// imported.
func (p Place) Empty(dt DType, shape ...int) (*Tensor, error) {
	size := checkShape(dt, shape)
	if p.Device == nil {
		return Empty(dt, shape...), nil
	}
	m, err := allocateOn(p.Device, size)
	if err != nil {
		return nil, fmt.Errorf("new tensor of %v %v on %v: %w", dt, shape, p, err)
	}
	s, err := storageOn(m)
	if err != nil {
		return nil, err
	}
	return newContiguous(s, dt, shape), nil
}

// Full returns a tensor with all elements set to v. The caller must close it. Full panics if v is
// out of the range of an integer dtype.
func (p Place) Full(dt DType, v float64, shape ...int) (*Tensor, error) {
	dt.requireNumber("Full", v)
	t, err := p.Empty(dt, shape...)
	if err != nil || t.Numel() == 0 {
		return t, err
	}
	l, ok := t.device()
	if !ok {
		return t.Fill(v), nil
	}
	if err := l.Fill(0, t.Nbytes(), Scalar(dt, v).contiguousBytes()); err != nil {
		t.Close()
		return nil, fmt.Errorf("fill tensor on %v: %w", p, err)
	}
	return t, nil
}

// Zeros returns a tensor of zeros. The caller must close it.
func (p Place) Zeros(dt DType, shape ...int) (*Tensor, error) { return p.Full(dt, 0, shape...) }

// Ones returns a tensor of ones. The caller must close it.
func (p Place) Ones(dt DType, shape ...int) (*Tensor, error) { return p.Full(dt, 1, shape...) }

// Rand returns a tensor of uniformly distributed numbers in [0, 1), which the caller must close.
// dt must be a floating-point dtype. If g is nil, it uses the default generator. All devices
// generate the same numbers from one seed, but the host generates others.
func (p Place) Rand(dt DType, g *Generator, shape ...int) (*Tensor, error) {
	return p.newFilled(dt, shape, func(t *Tensor) { t.FillUniform(g, 0, 1) })
}

// RandN returns a tensor of normally distributed numbers with mean 0 and variance 1, which the
// caller must close. dt must be a floating-point dtype. If g is nil, it uses the default
// generator. Devices generate other numbers than the host.
func (p Place) RandN(dt DType, g *Generator, shape ...int) (*Tensor, error) {
	return p.newFilled(dt, shape, func(t *Tensor) { t.FillNormal(g, 0, 1) })
}

// RandInt returns an Int64 tensor of uniformly distributed integers in [lo, hi), which the caller
// must close. hi must be greater than lo. If g is nil, it uses the default generator. Devices
// generate other numbers than the host.
func (p Place) RandInt(g *Generator, lo, hi int, shape ...int) (*Tensor, error) {
	return p.newFilled(Int64, shape, func(t *Tensor) { t.fillIntegers(g, lo, hi) })
}

// Arange returns a tensor with the numbers start, start+step and so on, up to but excluding end.
// The caller must close it. Arange panics if the steps never reach end.
func (p Place) Arange(dt DType, start, end, step float64) (*Tensor, error) {
	return p.newFilled(dt, []int{checkedStepCount(dt, start, end, step)},
		func(t *Tensor) { t.fillArithmetic(start, step) })
}

// newFilled returns a new tensor initialized by set, which the caller must close. It returns
// panics of set as errors, because the device may refuse the operation.
func (p Place) newFilled(dt DType, shape []int, set func(t *Tensor)) (*Tensor, error) {
	t, err := p.Empty(dt, shape...)
	if err != nil {
		return nil, err
	}
	if err := Catch(func() { set(t) }); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// ToDevice returns the tensor's elements on dev, or on the host if dev is nil. It returns a view if
// t is there already, and otherwise a copy. The caller must close the result. It returns the
// device's errors.
func (t *Tensor) ToDevice(dev Device) (*Tensor, error) {
	if dev == t.Device() {
		return t.view(t.Shape(), t.Strides(), t.offset), nil
	}
	moved, err := t.moveTo(dev)
	if err != nil {
		return nil, fmt.Errorf("tensor to %s: %w", deviceName(dev), err)
	}
	return moved, nil
}

// Set makes t a view of o's storage with o's dtype and layout, and releases t's old storage, like
// torch.Tensor.set_. Other goroutines must not use t during Set. Set returns t.
func (t *Tensor) Set(o *Tensor) *Tensor {
	v := o.view(o.Shape(), o.Strides(), o.offset)
	old := t.storage.Swap(v.storage.Swap(nil))
	t.dtype, t.offset, t.generation = v.dtype, v.offset, v.generation
	t.setLayout(v.Shape(), v.Strides())
	if old != nil {
		must(old.release())
	}
	return t
}

// CPU returns the tensor's elements on the host. It returns a view if t is on the host, and
// otherwise a copy on the heap. The caller must close the result. It returns the device's errors.
func (t *Tensor) CPU() (*Tensor, error) { return t.ToDevice(nil) }

func deviceName(dev Device) string {
	if dev == nil {
		return "cpu"
	}
	return dev.String()
}

// moveTo returns a copy of t on dev, or on the host if dev is nil. It must not be called if t is
// there already, and the caller must close the copy. moveTo copies all bytes from the first
// element to the last, so the strides remain valid. A copy on the host or from the host is
// contiguous.
func (t *Tensor) moveTo(dev Device) (*Tensor, error) {
	from, ok := t.device()
	if !ok && !t.IsContiguous() {
		dense := t.Clone()
		defer dense.release()
		return dense.moveTo(dev)
	}
	at, end := t.byteRange()
	n := end - at
	if dev == nil {
		b := make([]byte, n)
		if err := from.Read(b, at); err != nil {
			return nil, err
		}
		near := contiguous(newStorageOver(b), t.dtype, t.Shape())
		copy(near.Strides(), t.Strides())
		if near.IsContiguous() {
			return near, nil
		}
		return near.Clone(), nil
	}
	m, err := allocateOn(dev, n)
	if err != nil {
		return nil, err
	}
	if ok {
		err = m.Copy(0, from.Memory, at, n)
	} else {
		err = m.Write(0, t.contiguousBytes())
	}
	if err != nil {
		m.End()
		return nil, err
	}
	s, err := storageOn(m)
	if err != nil {
		return nil, err
	}
	return newTensor(s, t.dtype, t.Shape(), t.Strides(), 0), nil
}

// hostTensor returns t on the host, for functions that cannot return errors. The caller must call
// the returned function when it no longer uses the result. hostTensor panics with the device's
// errors.
func (t *Tensor) hostTensor() (*Tensor, func()) {
	if _, ok := t.device(); !ok {
		return t, func() {}
	}
	h, err := t.CPU()
	if err != nil {
		panic(err)
	}
	return h, h.release
}

// marshal encodes the kind of the device, and the size and location of the memory, for
// readDevice.
func (l *onDevice) marshal(e *codec.Encoder) error {
	e.String(kindOf(l.Memory.Device()))
	e.Uint(uint64(l.Size()))
	return l.Marshal(e)
}

func kindOf(dev Device) string {
	name := dev.String()
	for i, c := range name {
		if c == ':' {
			return name[:i]
		}
	}
	return name
}

// readDevice decodes a storage encoded by marshal, with one more reference, which the caller must
// release. The error wraps ErrDevice if the kind of the device is unknown, or ErrLayout if the
// size is wrong.
func readDevice(d *codec.Decoder) (*Storage, error) {
	kind, err := d.String()
	if err != nil {
		return nil, err
	}
	size, err := decodeSize(d)
	if err != nil {
		return nil, err
	}
	backend, ok := device.Find(kind)
	if !ok || backend.Read == nil {
		return nil, fmt.Errorf("%w: %q: import the package that provides it", ErrDevice, kind)
	}
	m, err := backend.Read(d)
	if err != nil {
		return nil, err
	}
	if m.Size() != size {
		m.End()
		return nil, fmt.Errorf("receive memory on device: got %d bytes on %v, want %d: %w",
			m.Size(), m.Device(), size, ErrLayout)
	}
	return storageOn(m)
}
