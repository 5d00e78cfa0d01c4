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

// A Driver is a cudriver.Driver over simulated devices.
type Driver struct {
	paths []string
	times Times

	mu        sync.Mutex
	pid       int // of the process that called Init
	devices   []*device
	contexts  map[cudriver.Context]*context
	current   map[int]cudriver.Context // by thread
	handles   map[cudriver.MemHandle]*physical
	reserved  map[cudriver.Ptr]uint64
	mappings  []*mapping
	streams   map[cudriver.Stream]*stream
	events    map[cudriver.Event]*event
	modules   map[cudriver.Module]*vm.Module
	functions map[cudriver.Function]*vm.Entry
	products  map[cublas.Handle]*products
	last      uintptr // number given out
	address   cudriver.Ptr
	faults    map[string]*fault
	held      bool
	apart     bool
	loose     bool
	taken     bool
}

var _ cudriver.Driver = (*Driver)(nil)

func init() { cudriver.RegisterSimulator(func(paths []string) cudriver.Driver { return New(paths) }) }

// New returns a driver over the devices at the paths. The environment says how long it takes.
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
	lost   cudriver.Result // what every call returns from then on
	opened map[cudriver.IPCHandle]*mapping
	queues []hardwareQueue
	given  int        // streams that were made
	waits  int        // that are queued
	loaded int        // modules
	takes  []*os.File // of the device's memory, for itself
}

// What a call needs before it.
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

// Fail makes the n-th call of a function from now on return r; the first is 1.
func (d *Driver) Fail(call string, n int, r cudriver.Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults[call] = &fault{n, r}
}

// Hold lets no stream do anything until it is told otherwise: so what needs a wait and has none is
// found at every run.
func (d *Driver) Hold(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = on
}

// Loosen lets no two threads of a kernel go in step that is launched from now on: so what relies on
// the order of threads within a warp is wrong.
func (d *Driver) Loosen(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loose = on
}

// Open is what was not given back in this process. What is left of a context that has ended counts
// as well: a program that relies on that end leaks as long as another library keeps the context.
type Open struct {
	Contexts, Handles, Reservations, Mappings, Streams, Events, Modules, BLAS int
}

// Open counts.
func (d *Driver) Open() Open {
	d.mu.Lock()
	defer d.mu.Unlock()
	return Open{len(d.contexts), len(d.handles), len(d.reserved), len(d.mappings), len(d.streams), len(d.events),
		len(d.modules), len(d.products)}
}

// Idle reports whether all streams have done all their work.
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

// do runs the body of a call, alone, if what it needs is there.
func (d *Driver) do(call string, n need, f func(c *context) cudriver.Result) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, r := d.allow(call, n)
	if r == cudriver.Success {
		r = f(c)
	}
	return cudriver.Check(call, r)
}

// doSettled is do for calls that may wait for all that is queued.
func (d *Driver) doSettled(call string, n need, f func(c *context) cudriver.Result) error {
	d.settle(call)
	return d.do(call, n, f)
}

func (d *Driver) allow(call string, n need) (*context, cudriver.Result) {
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

func (d *Driver) number() uintptr {
	d.last += 16
	return d.last + uintptr(os.Getpid())<<24
}

// Init opens the devices.
func (d *Driver) Init() error {
	return d.do("cuInit", nothing, func(*context) cudriver.Result {
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
		d.address = 1<<52 + cudriver.Ptr(d.pid&0xffff)<<36 // no address of the host, and another one in each process
		return cudriver.Success
	})
}

// device runs f with a device.
func (d *Driver) device(call string, id cudriver.Device, f func(dev *device) cudriver.Result) error {
	return d.do(call, initialised, func(*context) cudriver.Result {
		if id < 0 || int(id) >= len(d.devices) {
			return cudriver.ErrorInvalidDevice
		}
		return f(d.devices[id])
	})
}
