package cuda

import (
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// Reset is Close, after which the environment may name other devices.
func Reset() error { return Close() }

// Simulator returns the driver of this process, or nil if it is a real one.
func Simulator() *sim.Driver {
	d, _ := process.system.driver.(*sim.Driver)
	return d
}

// FailEach has the first call of each function fail in drivers that are opened from now on, and
// returns how to undo that.
func FailEach(calls map[string]cudriver.Result) (undo func()) {
	cudriver.RegisterSimulator(func(paths []string) cudriver.Driver {
		d := sim.New(paths)
		for call, r := range calls {
			d.Fail(call, 1, r)
		}
		return d
	})
	return func() {
		cudriver.RegisterSimulator(func(paths []string) cudriver.Driver { return sim.New(paths) })
	}
}

// EventsOfNobody takes the processes of all events for unknown, and has their receivers wait for so
// long. It returns how to undo that.
func EventsOfNobody(d time.Duration) (undo func()) {
	open, patience := openLife, eventPatience
	openLife, eventPatience = func(int) (*sys.Pidfd, error) { return nil, errors.New("not known") }, d
	return func() { openLife, eventPatience = open, patience }
}

// SlotsInUse returns the number of slots for results of kernels that no caller has returned.
func SlotsInUse(dev tensor.Device) int {
	r := dev.(*Device).ready.Load()
	r.looks.Lock()
	defer r.looks.Unlock()
	return r.looks.used - len(r.looks.free)
}

// Mapped counts the segments that this process has mapped.
func Mapped() int {
	segments.Lock()
	defer segments.Unlock()
	return len(segments.m)
}

// MappedBytes returns the size of those segments together.
func MappedBytes() (n int) {
	segments.Lock()
	defer segments.Unlock()
	for _, s := range segments.m {
		n += s.size
	}
	return n
}

// Allocation returns how large the driver's own allocation is that the memory is in.
func (m *memory) Allocation() (size uint64, err error) {
	err = m.dev.withContext(func(cudriver.Stream) error {
		_, size, err = m.dev.driver.MemGetAddressRange(m.addressAt(0, m.size))
		return err
	})
	return size, err
}

// Segment returns the block of m's segment.
func (m *memory) Segment() arena.Handle { return m.segment.block }

// Clock returns how far the clock of a device has come that this process has sent something of.
func Clock(d *Device) (uint32, error) {
	if d.events.clock == nil {
		return 0, errors.New("it has sent nothing behind work")
	}
	return d.events.clock.number.Load(), nil
}

// EmptyCache is what tensor.EmptyCache does on these devices.
func EmptyCache() error { return emptyCaches() }

// EmptySegments is the part of EmptyCache that gives back segments.
func EmptySegments() error { return emptyCache() }

// Context returns this process's context of a device.
func Context(d *Device) (uint64, error) {
	r, err := d.readyState()
	if err != nil {
		return 0, err
	}
	return uint64(r.ctx), nil
}

// Enter makes a context current, and leaves it.
func Enter(context uint64) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := process.system.driver.CtxSetCurrent(cudriver.Context(context))
	return errors.Join(err, process.system.driver.CtxSetCurrent(0))
}

// Limit sets how many elements a kernel counts, and how many matrices one multiplies, and returns
// how to undo that.
func Limit(elements, batch int) (undo func()) {
	elements, most = most, elements
	batch, mostBatch = mostBatch, batch
	return func() { most, mostBatch = elements, batch }
}

// A Memory is an allocation on a device.
type Memory = memory

// MemoryOf returns that of a tensor.
func MemoryOf(t *tensor.Tensor) *Memory { return tensors.Memory(t).(*memory) }

// Pointer returns the address on the device.
func (m *memory) Pointer() uint64 { return m.deviceAddress() }

// IPC is how package torch reaches the memory of devices.
var IPC = legacy{}

// LoadBLAS loads the one of a driver that is no simulator.
func LoadBLAS() error {
	_, err := loadBLAS(nil)
	return err
}

// BLAS returns the library that has the device's products, or why there is none.
func (d *Device) BLAS() (string, error) { return d.productLibrary() }

// AwaitedNumbers are the clocks of what the device's stream waits for, or has waited for.
func AwaitedNumbers(d *Device) (all []*atomic.Uint32) {
	d.events.Lock()
	defer d.events.Unlock()
	for _, s := range d.events.awaited {
		all = append(all, s.number)
	}
	return all
}

// Abandoned is what marks a clock whose process has ended.
const Abandoned = abandoned
