package tensor

import (
	"fmt"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/device"
)

// A Device has memory for tensors beside the host's. Package cuda has such devices. A nil Device
// stands for the host.
type Device interface {
	fmt.Stringer // as PyTorch writes it: cuda:0
	// Synchronize waits until the device has done all that this process has asked of it.
	Synchronize() error
}

// onDevice is the lease of memory on a device.
type onDevice struct {
	device.Memory
	once sync.Once
}

func (l *onDevice) end() (err error) {
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

// rented is how many bytes of devices this process's tensors have, and collectAt at how many of
// them the garbage collector is asked for those that nobody has any more: to it each is some bytes
// of the heap only.
var rented, collectAt atomic.Int64

// roomy is up to how many bytes nobody looks.
const roomy = 256 << 20

func allocateOn(dev Device, n int) (device.Memory, error) {
	engine := device.EngineOf(dev)
	if engine == nil {
		return nil, fmt.Errorf("%w: no package of this program has %v", ErrDevice, dev)
	}
	if rented.Load()+int64(n) > max(collectAt.Load(), roomy) {
		collect()
		collectAt.Store(2 * rented.Load())
	}
	m, err := engine.Alloc(n)
	if err != nil && rented.Load() > 0 {
		collect()
		m, err = engine.Alloc(n)
	}
	return m, err
}

// Synchronize waits until a device has done all work of this process. For the host, nil, it returns
// at once. The error is the device's.
func Synchronize(dev Device) error {
	if dev == nil {
		return nil
	}
	return dev.Synchronize()
}

// residents finds the storage of memory that arrives once more.
var residents = struct {
	sync.Mutex
	m map[any]resident
}{m: map[any]resident{}}

type resident struct {
	lease   *onDevice
	storage weak.Pointer[Storage]
}

// settleOn returns the storage of m, of which it counts one view more. If that was there already,
// the reference that came with m is given back.
func settleOn(m device.Memory) (*Storage, error) {
	residents.Lock()
	if old := residents.m[m.Key()].storage.Value(); old != nil && old.retainOpen() {
		residents.Unlock()
		return old, m.End()
	}
	defer residents.Unlock()
	s, l := new(Storage), &onDevice{Memory: m}
	rented.Add(int64(m.Size()))
	s.life.Store(1)
	s.rent(&memory{lease: l})
	residents.m[m.Key()] = resident{l, weak.Make(s)}
	return s, nil
}

// size is the bytes of the memory, wherever it is.
func (m *memory) size() int {
	if l, ok := m.lease.(*onDevice); ok {
		return l.Size()
	}
	return len(m.bytes)
}

// device returns the lease of a tensor that is on a device.
func (t *Tensor) device() (l *onDevice, ok bool) {
	l, ok = t.store().mem.Load().lease.(*onDevice)
	return l, ok
}

// Device returns where the tensor's memory is, nil for the host.
func (t *Tensor) Device() Device {
	if l, ok := t.device(); ok {
		return l.Memory.Device()
	}
	return nil
}

// deviceMemory returns the memory of a tensor on a device, nil of one on the host.
func (t *Tensor) deviceMemory() device.Memory {
	if l, ok := t.device(); ok {
		return l.Memory
	}
	return nil
}

// On returns the Place of a device, or of the host if dev is nil. Its methods make tensors, which
// the caller closes. Their error is the device's, such as no memory.
//
//	x, err := tensor.On(dev).Zeros(tensor.Float32, 64, 10)
func On(dev Device) Place { return Place{dev} }

// Empty returns a tensor whose elements have arbitrary values.
func (p Place) Empty(dt DType, shape ...int) (*Tensor, error) {
	size := checkShape(dt, shape)
	if p.Device == nil {
		return Empty(dt, shape...), nil
	}
	m, err := allocateOn(p.Device, size)
	if err != nil {
		return nil, fmt.Errorf("new tensor of %v %v on %v: %w", dt, shape, p, err)
	}
	s, err := settleOn(m)
	if err != nil {
		return nil, err
	}
	return newContiguous(s, dt, shape), nil
}

// Full returns a tensor whose elements are all v.
func (p Place) Full(dt DType, v float64, shape ...int) (*Tensor, error) {
	dt.wantNumber("Full", v)
	t, err := p.Empty(dt, shape...)
	if err != nil || t.Numel() == 0 {
		return t, err
	}
	l, ok := t.device()
	if !ok {
		return t.Fill(v), nil
	}
	if err := l.Fill(0, t.Nbytes(), Scalar(dt, v).span()); err != nil {
		t.Close()
		return nil, fmt.Errorf("fill tensor on %v: %w", p, err)
	}
	return t, nil
}

// Zeros returns a tensor of zeros.
func (p Place) Zeros(dt DType, shape ...int) (*Tensor, error) { return p.Full(dt, 0, shape...) }

// Ones returns a tensor of ones.
func (p Place) Ones(dt DType, shape ...int) (*Tensor, error) { return p.Full(dt, 1, shape...) }

// Rand returns numbers of [0, 1), uniformly distributed. All devices make the same numbers of one
// seed, but the host makes others.
func (p Place) Rand(dt DType, g *Generator, shape ...int) (*Tensor, error) {
	return p.created(dt, shape, func(t *Tensor) { t.Uniform(g, 0, 1) })
}

// RandN returns numbers of the normal distribution with mean 0 and variance 1. Devices make other
// numbers than the host.
func (p Place) RandN(dt DType, g *Generator, shape ...int) (*Tensor, error) {
	return p.created(dt, shape, func(t *Tensor) { t.Normal(g, 0, 1) })
}

// RandInt returns integers of [lo, hi), as Int64, equally likely. Devices make other numbers than
// the host.
func (p Place) RandInt(g *Generator, lo, hi int, shape ...int) (*Tensor, error) {
	return p.created(Int64, shape, func(t *Tensor) { t.integers(g, lo, hi) })
}

// Arange returns the numbers start, start+step and so on below end, in one dimension.
func (p Place) Arange(dt DType, start, end, step float64) (*Tensor, error) {
	return p.created(dt, []int{stepsIn(dt, start, end, step)}, func(t *Tensor) { t.arithmetic(start, step) })
}

// created returns a tensor that set has set the elements of. What that panics with, as the device
// refuses it, is the error.
func (p Place) created(dt DType, shape []int, set func(t *Tensor)) (*Tensor, error) {
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

// ToDevice returns the tensor's elements on dev, or on the host if dev is nil: a view if t is
// there, and otherwise a copy. The caller closes it. The error is the device's.
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

// Set makes t a view of o's storage with o's dtype and layout, and lets go of t's old storage:
// torch.Tensor.set_. No other goroutine may use t during Set.
func (t *Tensor) Set(o *Tensor) *Tensor {
	v := o.view(o.Shape(), o.Strides(), o.offset)
	old := t.storage.Swap(v.storage.Swap(nil))
	t.dtype, t.offset, t.life = v.dtype, v.offset, v.life
	t.lay(v.Shape(), v.Strides())
	if old != nil {
		must(old.release())
	}
	return t
}

// CPU returns the tensor's elements on the host: a view if t is on the host, and otherwise a copy
// on the heap. The caller closes it. The error is the device's.
func (t *Tensor) CPU() (*Tensor, error) { return t.ToDevice(nil) }

func deviceName(dev Device) string {
	if dev == nil {
		return "cpu"
	}
	return dev.String()
}

// moveTo copies all bytes from the first element to the last, so that the strides stay what they
// are. On the host it makes them contiguous.
func (t *Tensor) moveTo(dev Device) (*Tensor, error) {
	from, ok := t.device()
	if !ok && !t.IsContiguous() {
		dense := t.Clone()
		defer dense.release()
		return dense.moveTo(dev)
	}
	at, end := t.extent()
	n := end - at
	if dev == nil {
		b := make([]byte, n)
		if err := from.Read(b, at); err != nil {
			return nil, err
		}
		near := contiguous(onHeap(b), t.dtype, t.Shape())
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
		err = m.Write(0, t.span())
	}
	if err != nil {
		m.End()
		return nil, err
	}
	s, err := settleOn(m)
	if err != nil {
		return nil, err
	}
	return newTensor(s, t.dtype, t.Shape(), t.Strides(), 0), nil
}

// near returns t on the host for the length of one call of a function that has no error to return,
// and how to end it. What the device says no to is a panic with its error.
func (t *Tensor) near() (*Tensor, func()) {
	if _, ok := t.device(); !ok {
		return t, func() {}
	}
	h, err := t.CPU()
	if err != nil {
		panic(err)
	}
	return h, h.release
}

// marshal writes where the memory is.
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

// readDevice returns the storage of what marshal wrote.
func readDevice(d *codec.Decoder) (*Storage, error) {
	kind, err := d.String()
	if err != nil {
		return nil, err
	}
	size, err := natural(d)
	if err != nil {
		return nil, err
	}
	backend, ok := device.Find(kind)
	if !ok || backend.Read == nil {
		return nil, fmt.Errorf("%w: %q: does this program import the package that has it?", ErrDevice, kind)
	}
	m, err := backend.Read(d)
	if err != nil {
		return nil, err
	}
	if m.Size() != size {
		m.End()
		return nil, fmt.Errorf("%d bytes on %v, where %d are announced: %w", m.Size(), m.Device(), size, ErrLayout)
	}
	return settleOn(m)
}
