package sim

import (
	"strings"

	"github.com/shoal-mp/shoal/internal/cudriver"
)

// A Kernel does in Go what an entry of PTX does. args is as C lays a struct of the arguments out; reach returns memory of the device, or nil
// where there is none that the kernel may write to.
type Kernel func(threads int, args []byte, reach func(p cudriver.Ptr, n uint64) []byte)

var kernels = map[string]Kernel{}

// Register says what an entry does. It is called before a driver is used.
func Register(name string, k Kernel) { kernels[name] = k }

// ModuleLoadData takes PTX that ends with a zero byte.
func (d *Driver) ModuleLoadData(image []byte) (m cudriver.Module, err error) {
	err = d.do("cuModuleLoadData", inContext, func(*context) cudriver.Result {
		text, _, ended := strings.Cut(string(image), "\x00")
		if !ended || !strings.Contains(text, ".entry") {
			return cudriver.ErrorInvalidImage
		}
		m = cudriver.Module(d.number())
		d.modules[m] = text
		return cudriver.Success
	})
	return m, err
}

// ModuleUnload ends a module.
func (d *Driver) ModuleUnload(m cudriver.Module) error {
	return d.do("cuModuleUnload", inContext, func(*context) cudriver.Result {
		if _, ok := d.modules[m]; !ok {
			return cudriver.ErrorInvalidHandle
		}
		delete(d.modules, m)
		return cudriver.Success
	})
}

// ModuleGetFunction finds an entry that the text has, and that is registered.
func (d *Driver) ModuleGetFunction(m cudriver.Module, name string) (f cudriver.Function, err error) {
	err = d.do("cuModuleGetFunction", inContext, func(*context) cudriver.Result {
		text, ok := d.modules[m]
		switch {
		case !ok:
			return cudriver.ErrorInvalidHandle
		case !strings.Contains(text, ".entry "+name+"(") || kernels[name] == nil:
			return cudriver.ErrorNotFound
		}
		f = cudriver.Function(d.number())
		d.functions[f] = kernels[name]
		return cudriver.Success
	})
	return f, err
}

// LaunchKernel queues a kernel.
func (d *Driver) LaunchKernel(f cudriver.Function, grid, block [3]uint32, _ uint32, s cudriver.Stream, args []byte) error {
	threads := 1
	for i := range 3 {
		threads *= int(grid[i]) * int(block[i])
	}
	d.mu.Lock()
	k := d.functions[f]
	d.mu.Unlock()
	switch {
	case k == nil:
		return cudriver.Check("cuLaunchKernel", cudriver.ErrorInvalidHandle)
	case threads == 0 || block[0]*block[1]*block[2] > 1024:
		return cudriver.Check("cuLaunchKernel", cudriver.ErrorInvalidValue)
	}
	args = append([]byte{}, args...)
	return d.queue("cuLaunchKernel", s, func(c *context) cudriver.Result {
		r := cudriver.Success
		k(threads, args, func(p cudriver.Ptr, n uint64) []byte {
			b := d.reach(c, p, n, cudriver.AccessReadWrite)
			if b == nil {
				r = cudriver.ErrorIllegalAddress
			}
			return b
		})
		return r
	})
}
