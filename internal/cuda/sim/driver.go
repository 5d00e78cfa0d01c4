package sim

import (
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cublas"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/cuda/sim/vm"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Driver implements [cudriver.Driver] on simulated devices. [New] makes it. Methods may be
// called concurrently. The methods that simulate CUDA return an error, a [*cudriver.Error],
// wherever CUDA's documentation demands one.
type Driver struct {
	paths []string
	times Times

	mu        sync.Mutex
	pid       int // of the process that called Init; the driver must not be used after a fork
	devices   []*device
	contexts  map[cudriver.Context]*context
	current   map[int]cudriver.Context // by thread ID
	handles   map[cudriver.MemHandle]*physical
	reserved  map[cudriver.Ptr]uint64
	mappings  []*mapping
	streams   map[cudriver.Stream]*stream
	events    map[cudriver.Event]*event
	modules   map[cudriver.Module]*vm.Module
	functions map[cudriver.Function]*vm.Entry
	products  map[cublas.Handle]*products
	last      uintptr // last handle number assigned
	address   cudriver.Ptr
	faults    map[string]*fault
	held      bool
	apart     bool
	loose     bool
	taken     bool
}

var _ cudriver.Driver = (*Driver)(nil)

func init() { cudriver.RegisterSimulator(func(paths []string) cudriver.Driver { return New(paths) }) }

// New returns a driver for the devices with the given paths, see [Devices.Paths]. It does not
// open them before Init. The environment variable [TimesKey] sets its delays; New panics if its
// value is malformed.
func New(paths []string) *Driver {
	return &Driver{
		paths: paths, times: timesOf(os.Getenv(TimesKey)),
		contexts: map[cudriver.Context]*context{}, current: map[int]cudriver.Context{},
		handles: map[cudriver.MemHandle]*physical{}, reserved: map[cudriver.Ptr]uint64{},
		streams: map[cudriver.Stream]*stream{},
		events:  map[cudriver.Event]*event{}, modules: map[cudriver.Module]*vm.Module{},
		functions: map[cudriver.Function]*vm.Entry{}, products: map[cublas.Handle]*products{},
		faults: map[string]*fault{},
	}
}

// A context is the primary context of a device.
type context struct {
	id     cudriver.Context
	dev    *device
	lost   cudriver.Result // the error that all calls return, if not Success
	opened map[cudriver.IPCHandle]*mapping
	queues []hardwareQueue
	given  int        // number of streams created
	waits  int        // number of queued waits
	loaded int        // number of modules loaded
	takes  []*os.File // locks for the driver's own device memory
}

// A need is a precondition of a call: nothing, that Init was called, or that the calling thread
// has a current context too.
type need int

const (
	nothing need = iota
	initialised
	inContext
)

type fault struct {
	after  int
	result cudriver.Result
}

// Fail makes the n-th call of a function from now on, counted from 1, return r. call is the
// function's name in CUDA, such as cuMemCreate. It replaces an earlier Fail for the same
// function.
func (d *Driver) Fail(call string, n int, r cudriver.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults[call] = &fault{n, r}
}

// Hold stops all streams until it is called with false. Tests should use it to find missing
// synchronization deterministically.
func (d *Driver) Hold(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = on
}

// Loosen makes kernels launched from now on run without any two threads in lockstep, or, with
// false, in lockstep again. Code that relies on the order of threads within a warp then fails.
func (d *Driver) Loosen(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loose = on
}

// Open counts the resources that this process has not released. It includes the remains of
// destroyed contexts, because a program that relies on the context's end leaks them if another
// library keeps the context.
type Open struct {
	Contexts, Handles, Reservations, Mappings, Streams, Events, Modules, BLAS int
}

// Open returns the current counts.
func (d *Driver) Open() Open {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Open{len(d.contexts), len(d.handles), len(d.reserved), len(d.mappings), len(d.streams), len(d.events),
		len(d.modules), len(d.products)}
}

// Idle reports whether all streams have finished their work.
func (d *Driver) Idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.streams {
		if s.done < s.queued {
			return false
		}
	}
	return true
}

// runCall runs f with the driver locked, if the call's precondition n holds, and returns f's
// result as an error. c is the current context, or nil unless n is inContext. If the
// precondition does not hold, or [Driver.Fail] demands it, runCall returns an error without
// calling f.
func (d *Driver) runCall(call string, n need, f func(c *context) cudriver.Result) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, r := d.checkCall(call, n)
	if r == cudriver.Success {
		r = f(c)
	}
	return cudriver.Check(call, r)
}

// runBlockingCall is like [Driver.runCall] for calls that may wait for all queued work. It
// first blocks while a stream of the current context waits.
func (d *Driver) runBlockingCall(call string, n need, f func(c *context) cudriver.Result) error {
	d.awaitContext(call)
	return d.runCall(call, n, f)
}

func (d *Driver) checkCall(call string, n need) (*context, cudriver.Result) {
	if fault := d.faults[call]; fault != nil {
		if fault.after--; fault.after == 0 {
			delete(d.faults, call)
			return nil, fault.result
		}
	}
	if n >= initialised && d.pid != os.Getpid() {
		return nil, cudriver.ErrorNotInitialized
	}
	if n < inContext {
		return nil, cudriver.Success
	}
	id := d.current[sys.ThreadID()]
	c := d.contexts[id]
	switch {
	case id == 0:
		return nil, cudriver.ErrorInvalidContext
	case c == nil:
		return nil, cudriver.ErrorContextIsDestroyed
	}
	return c, c.lost
}

func (d *Driver) nextHandle() uintptr {
	d.last += 16
	return d.last + uintptr(os.Getpid())<<24
}

// Init opens the devices. Further calls do nothing. The error is ErrorNoDevice if there is none
// or one of them cannot be opened.
func (d *Driver) Init() error {
	return d.runCall("cuInit", nothing, func(*context) cudriver.Result {
		if d.pid == os.Getpid() {
			return cudriver.Success
		}
		time.Sleep(d.times.Init)
		for i, path := range d.paths {
			dev, err := openDevice(i, path)
			if err != nil {
				return cudriver.ErrorNoDevice
			}
			d.devices = append(d.devices, dev)
		}
		if len(d.devices) == 0 {
			return cudriver.ErrorNoDevice
		}
		d.pid = os.Getpid()
		// not a host address, and different in each process
		d.address = 1<<52 + cudriver.Ptr(d.pid&0xffff)<<36
		return cudriver.Success
	})
}

// device runs f for a device, with the driver locked. It returns ErrorInvalidDevice if there is
// none with this number.
func (d *Driver) device(call string, id cudriver.Device, f func(dev *device) cudriver.Result) error {
	return d.runCall(call, initialised, func(*context) cudriver.Result {
		if id < 0 || int(id) >= len(d.devices) {
			return cudriver.ErrorInvalidDevice
		}
		return f(d.devices[id])
	})
}
