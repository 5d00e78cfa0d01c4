package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// SimulateKey is SHOAL_CUDA_SIMULATE, the environment variable that selects simulated devices: a
// comma-separated list of paths of device files. It is intended for tests and demonstrations on
// machines without a GPU. Child processes inherit it. Only programs built with -tags cudasim
// contain the simulator.
const SimulateKey = cudriver.SimulateKey

// A Device is a GPU that is visible to this process. It implements [tensor.Device]. The first use
// of a device retains its primary context, which the process's other CUDA libraries share. Methods
// may be called concurrently.
type Device struct {
	driver  cudriver.Driver
	ordinal int
	id      cudriver.Device
	uuid    [16]byte

	opening sync.Mutex
	over    bool // set by Close; guarded by opening
	ready   atomic.Pointer[ready]
	events  events
}

// ready is the state of a device that [Device.readyState] initialises on first use. code,
// products and looks have locks of their own; the other fields do not change.
type ready struct {
	ctx         cudriver.Context
	stream      cudriver.Stream
	granularity int
	total       int
	code        code
	products    products
	looks       looks
}

// system is the loaded driver with its devices.
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

// open loads and initialises the driver once. Later calls, until [Close], return the same
// result. The error wraps [ErrUnavailable].
func open() (*system, error) {
	process.Lock()
	defer process.Unlock()
	if process.system == nil && process.err == nil {
		if process.system, process.err = initSystem(); process.err != nil {
			process.err = fmt.Errorf("%w: %w", ErrUnavailable, process.err)
		}
	}
	return process.system, process.err
}

// knownDevices returns the devices, or nil if this process has not loaded the driver.
func knownDevices() []*Device {
	process.Lock()
	defer process.Unlock()
	if process.system == nil {
		return nil
	}
	return process.system.devices
}

func initSystem() (*system, error) {
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

// String returns the device's name in PyTorch's notation, such as cuda:0.
func (d *Device) String() string { return fmt.Sprintf("cuda:%d", d.ordinal) }

// Name returns the device's product name, as the driver reports it.
func (d *Device) Name() (string, error) { return d.driver.DeviceName(d.id) }

// UUID returns the device's UUID, which is the same in all processes.
func (d *Device) UUID() [16]byte { return d.uuid }

// readyState returns the state of the device, and initialises it on the first call. The error
// wraps [ErrUnavailable] after [Close]. A failed initialisation is tried again by the next
// call.
func (d *Device) readyState() (*ready, error) {
	if r := d.ready.Load(); r != nil {
		return r, nil
	}
	d.opening.Lock()
	defer d.opening.Unlock()
	if r := d.ready.Load(); r != nil {
		return r, nil
	}
	if d.over { // the driver may crash if it is passed the handles of a context that has ended
		return nil, fmt.Errorf("use %v: %w: it was closed by cuda.Close: call cuda.Get again", d, ErrUnavailable)
	}
	r, err := d.initDevice()
	if err != nil {
		return nil, fmt.Errorf("use %v: %w", d, err)
	}
	d.ready.Store(r)
	return r, nil
}

func (d *Device) initDevice() (*ready, error) {
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
	err = d.withReadyContext(r, func() error {
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

// withContext calls the function with the device's context current, and with the device's own
// stream, and returns its error. It initialises the device if necessary. A CUDA context is
// current on an OS thread and goroutines move between threads, so withContext must set it on
// each call, and the function must make its driver calls on the same goroutine.
func (d *Device) withContext(calls func(s cudriver.Stream) error) error {
	r, err := d.readyState()
	if err != nil {
		return err
	}
	return d.withReadyContext(r, func() error { return calls(r.stream) })
}

func (d *Device) withReadyContext(r *ready, calls func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.driver.CtxSetCurrent(r.ctx); err != nil {
		return err
	}
	return calls()
}

// Synchronize waits until the device has finished all work that this process has queued on its
// stream. If that work used memory sent by a process that ended before it had written the memory,
// the error wraps [ErrUnfinished]; the error is returned only once.
func (d *Device) Synchronize() error {
	return d.doAndSync(func(cudriver.Stream) error { return nil })
}

// MemInfo returns the device's free and total memory in bytes. Memory that this process caches for
// later allocations does not count as free.
func (d *Device) MemInfo() (free, total int, err error) {
	err = d.withContext(func(cudriver.Stream) error {
		f, t, err := d.driver.MemGetInfo()
		free, total = int(f), int(t)
		return err
	})
	return free, total, err
}
