package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// SimulateKey is SHOAL_CUDA_SIMULATE, the environment variable that names simulated devices, by the
// paths of their files with commas between. It is there for tests and demonstrations on machines
// without a GPU; children inherit it. A program has the simulator if it was built with -tags
// cudasim.
const SimulateKey = cudriver.SimulateKey

// A Device is one GPU, as this process sees it, and a tensor.Device. Its first use makes its
// primary context, which other libraries of the process share. Several goroutines may call its
// methods.
type Device struct {
	driver  cudriver.Driver
	ordinal int
	id      cudriver.Device
	uuid    [16]byte

	opening sync.Mutex
	over    bool // Close has ended it; under opening
	ready   atomic.Pointer[ready]
	events  events
}

// ready is what a device has from its first use on.
type ready struct {
	ctx         cudriver.Context
	stream      cudriver.Stream
	granularity int
	total       int
	code        code
	products    products
	looks       looks
}

// system is the driver and what it has.
type system struct {
	driver  cudriver.Driver
	devices []*Device
}

var process struct {
	sync.Mutex
	system *system
	err    error
	chosen int
}

// open initialises the driver, once.
func open() (*system, error) {
	process.Lock()
	defer process.Unlock()
	if process.system == nil && process.err == nil {
		if process.system, process.err = initialise(); process.err != nil {
			process.err = fmt.Errorf("%w: %w", ErrUnavailable, process.err)
		}
	}
	return process.system, process.err
}

// known returns the devices, if this process has asked for them.
func known() []*Device {
	process.Lock()
	defer process.Unlock()
	if process.system == nil {
		return nil
	}
	return process.system.devices
}

func initialise() (*system, error) {
	driver, err := cudriver.Open()
	if err != nil {
		return nil, err
	}
	ids, err := cudriver.Devices(driver)
	if err != nil {
		return nil, err
	}
	s := &system{driver: driver}
	for i, id := range ids {
		d := &Device{driver: driver, ordinal: i, id: id}
		if d.uuid, err = driver.DeviceUUID(d.id); err != nil {
			return nil, err
		}
		s.devices = append(s.devices, d)
	}
	return s, nil
}

// String returns the device's name as PyTorch writes it, such as cuda:0.
func (d *Device) String() string { return fmt.Sprintf("cuda:%d", d.ordinal) }

// Name returns the name that the maker gives the device.
func (d *Device) Name() (string, error) { return d.driver.DeviceName(d.id) }

// UUID returns the device's identity, which is the same in every process.
func (d *Device) UUID() [16]byte { return d.uuid }

// use makes the device's context, once.
func (d *Device) use() (*ready, error) {
	if r := d.ready.Load(); r != nil {
		return r, nil
	}
	d.opening.Lock()
	defer d.opening.Unlock()
	if r := d.ready.Load(); r != nil {
		return r, nil
	}
	if d.over { // what was made of it is the driver's no more, which may crash where it is named again
		return nil, fmt.Errorf("use %v: %w: cuda.Close has ended it; cuda.Get returns it anew", d, ErrUnavailable)
	}
	r, err := d.begin()
	if err != nil {
		return nil, fmt.Errorf("use %v: %w", d, err)
	}
	d.ready.Store(r)
	return r, nil
}

func (d *Device) begin() (*ready, error) {
	for _, a := range []cudriver.Attribute{cudriver.AttributeVirtualMemory, cudriver.AttributePosixFileDescriptors} {
		if can, err := d.driver.DeviceAttribute(a, d.id); err != nil || can == 0 {
			return nil, errors.Join(fmt.Errorf(
				"its memory cannot be shared as file descriptors (attribute %d): %w", a,
				cudriver.ErrorNotSupported), err)
		}
	}
	total, err := d.driver.DeviceTotalMem(d.id)
	if err != nil {
		return nil, err
	}
	r := &ready{total: int(total)}
	if r.ctx, err = d.driver.PrimaryCtxRetain(d.id); err != nil {
		return nil, err
	}
	err = d.within(r, func() error {
		n, err := d.driver.MemGetAllocationGranularity(cudriver.Pinned(d.id, true), cudriver.GranularityRecommended)
		r.granularity = int(n)
		if err == nil {
			r.stream, err = d.driver.StreamCreate(cudriver.StreamNonBlocking)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, d.driver.PrimaryCtxRelease(d.id))
	}
	return r, nil
}

// do runs calls of the driver with the device's context. A context is current on a thread, and a
// goroutine has no thread of its own: so do sets the context each time.
func (d *Device) do(calls func(s cudriver.Stream) error) error {
	r, err := d.use()
	if err != nil {
		return err
	}
	return d.within(r, func() error { return calls(r.stream) })
}

func (d *Device) within(r *ready, calls func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.driver.CtxSetCurrent(r.ctx); err != nil {
		return err
	}
	return calls()
}

// Synchronize waits until the device has done all that this process has asked for. The error wraps
// ErrUnfinished, once, where the device was to wait for a process that ended before.
func (d *Device) Synchronize() error {
	return d.ask(func(cudriver.Stream) error { return nil })
}

// MemInfo returns the device's free and total memory, in bytes. Memory that this process keeps for
// later allocations is not free.
func (d *Device) MemInfo() (free, total int, err error) {
	err = d.do(func(cudriver.Stream) error {
		f, t, err := d.driver.MemGetInfo()
		free, total = int(f), int(t)
		return err
	})
	return free, total, err
}
