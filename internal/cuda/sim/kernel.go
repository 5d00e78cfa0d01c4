package sim

import (
	"errors"
	"strings"
	"time"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/cuda/sim/vm"
)

// ModuleLoadData loads PTX text, which must end with a zero byte; otherwise the error is
// ErrorInvalidImage. It is ErrorInvalidPTX, with the reason in its Log, if the text is invalid.
func (d *Driver) ModuleLoadData(image []byte) (m cudriver.Module, err error) {
	var refused error
	err = d.runBlockingCall("cuModuleLoadDataEx", inContext, func(c *context) cudriver.Result {
		time.Sleep(d.times.Load)
		text, _, ended := strings.Cut(string(image), "\x00")
		if !ended {
			return cudriver.ErrorInvalidImage
		}
		var code *vm.Module
		if code, refused = vm.Parse(text); refused != nil {
			return cudriver.ErrorInvalidPTX
		}
		if c.loaded++; c.loaded%codePiece == 1 {
			if r := c.allocateOwn(codeTakes); r != cudriver.Success {
				return r
			}
		}
		m = cudriver.Module(d.nextHandle())
		d.modules[m] = code
		return cudriver.Success
	})
	if failed, ok := err.(*cudriver.Error); ok && refused != nil {
		failed.Log = refused.Error()
	}
	return m, err
}

// ModuleUnload unloads a module. Its functions become invalid. The error is ErrorInvalidHandle
// if there is no such module.
func (d *Driver) ModuleUnload(m cudriver.Module) error {
	return d.runBlockingCall("cuModuleUnload", inContext, func(*context) cudriver.Result {
		code := d.modules[m]
		if code == nil {
			return cudriver.ErrorInvalidHandle
		}
		for f, e := range d.functions {
			if code.Entries[e.Name] == e {
				delete(d.functions, f)
			}
		}
		delete(d.modules, m)
		return cudriver.Success
	})
}

// ModuleGetFunction returns an entry point of a module. The error is ErrorNotFound if there is
// none with this name.
func (d *Driver) ModuleGetFunction(m cudriver.Module, name string) (f cudriver.Function, err error) {
	err = d.runBlockingCall("cuModuleGetFunction", inContext, func(*context) cudriver.Result {
		code := d.modules[m]
		switch {
		case code == nil:
			return cudriver.ErrorInvalidHandle
		case code.Entries[name] == nil:
			return cudriver.ErrorNotFound
		}
		f = cudriver.Function(d.nextHandle())
		d.functions[f] = code.Entries[name]
		return cudriver.Success
	})
	return f, err
}

// LaunchKernel queues a kernel. It copies args, the kernel's arguments. Dynamic shared memory
// is not supported, so shared must be 0; shared memory declared in the PTX text is. The error
// is ErrorInvalidValue if the launch does not fit the kernel. Illegal and misaligned addresses
// are errors of the context.
func (d *Driver) LaunchKernel(f cudriver.Function, grid, block [3]uint32, shared uint32, s cudriver.Stream,
	args []byte) error {
	const call = "cuLaunchKernel"
	d.mu.Lock()
	e, loose := d.functions[f], d.loose
	d.mu.Unlock()
	l := vm.Launch{Grid: grid, Block: block, Args: append([]byte{}, args...), Loose: loose}
	switch {
	case e == nil:
		return cudriver.Check(call, cudriver.ErrorInvalidHandle)
	case shared != 0 || e.Check(l) != nil:
		return cudriver.Check(call, cudriver.ErrorInvalidValue)
	}
	return d.queueWork(call, s, func(c *context) cudriver.Result {
		l.Memory = d.accessibleRegions(c)
		err := e.Run(l)
		if fault, ok := errors.AsType[*vm.Fault](err); ok && fault.Kind == vm.MisalignedAddress {
			return cudriver.ErrorMisalignedAddress
		}
		if err != nil {
			return cudriver.ErrorIllegalAddress
		}
		return cudriver.Success
	})
}

// accessibleRegions returns the memory that kernels in a context may access. The caller must
// hold d.mu.
func (d *Driver) accessibleRegions(c *context) (all []vm.Region) {
	for _, m := range d.mappings {
		switch b := d.bytesAt(c, m.base, uint64(len(m.mem)), cudriver.AccessRead); {
		case b == nil:
		case m.origin == mapped:
			all = append(all, vm.Region{Base: uint64(m.base), Bytes: b,
				ReadOnly: m.access[c.dev.id]&cudriver.AccessReadWrite != cudriver.AccessReadWrite})
		default:
			all = append(all, vm.Region{Base: uint64(m.base), Bytes: b})
		}
	}
	return all
}
