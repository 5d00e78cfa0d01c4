package cuda

import (
	"encoding/binary"
	"sync"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// code caches the kernels that are loaded in a device's context. A kernel is generated, and
// compiled by the driver, on first use.
type code struct {
	sync.Mutex
	modules   map[string]cudriver.Module
	functions map[string]cudriver.Function
}

// loadFunction returns an entry point of a kernel, and loads the kernel if necessary. It takes
// the lock of r.code. The function is valid until [Close].
func (d *Device) loadFunction(r *ready, k ptx.Kernel, entry string) (f cudriver.Function, err error) {
	c := &r.code
	c.Lock()
	defer c.Unlock()
	name := k.Name + ":" + entry
	if f, ok := c.functions[name]; ok {
		return f, nil
	}
	err = d.callAfterJudging(r, func() (err error) {
		f, err = c.load(d.driver, k, entry)
		return err
	})
	if err == nil {
		c.functions[name] = f
	}
	return f, err
}

func (c *code) load(driver cudriver.Driver, k ptx.Kernel, entry string) (f cudriver.Function, err error) {
	m, ok := c.modules[k.Name]
	if !ok {
		if m, err = driver.ModuleLoadData(k.Text()); err != nil {
			return 0, err
		}
		if c.modules == nil {
			c.modules, c.functions = map[string]cudriver.Module{}, map[string]cudriver.Function{}
		}
		c.modules[k.Name] = m
	}
	return driver.ModuleGetFunction(m, entry)
}

// threads is the number of threads in a block of an elementwise kernel.
const threads = 256

// launchKernel queues a kernel on the device's stream and does not wait for it. words are the
// kernel's parameters, of 8 bytes each.
func (d *Device) launchKernel(k ptx.Kernel, entry string, grid, block [3]uint32, words []uint64) error {
	args := make([]byte, 0, 8*len(words))
	for _, w := range words {
		args = binary.LittleEndian.AppendUint64(args, w)
	}
	r, err := d.readyState()
	if err != nil {
		return err
	}
	f, err := d.loadFunction(r, k, entry)
	if err != nil {
		return err
	}
	return d.withContext(func(s cudriver.Stream) error { return d.driver.LaunchKernel(f, grid, block, 0, s, args) })
}

// gridFor returns the one-dimensional grid and block for at least n threads, in blocks of 256.
func gridFor(n int) (grid, block [3]uint32) {
	return [3]uint32{uint32((n + threads - 1) / threads), 1, 1}, [3]uint32{threads, 1, 1}
}
