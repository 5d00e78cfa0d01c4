package cuda

import (
	"encoding/binary"
	"sync"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// code is the kernels that a device's context has. They are written, and translated by the driver,
// when they are needed first.
type code struct {
	sync.Mutex
	modules   map[string]cudriver.Module
	functions map[string]cudriver.Function
}

// function returns an entry of a kernel.
func (d *Device) function(r *ready, k ptx.Kernel, entry string) (f cudriver.Function, err error) {
	c := &r.code
	c.Lock()
	defer c.Unlock()
	name := k.Name + ":" + entry
	if f, ok := c.functions[name]; ok {
		return f, nil
	}
	err = d.settled(r, func() (err error) {
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

// threads is how many a block has that goes through memory.
const threads = 256

// launch queues an entry.
func (d *Device) launch(k ptx.Kernel, entry string, grid, block [3]uint32, words []uint64) error {
	args := make([]byte, 0, 8*len(words))
	for _, w := range words {
		args = binary.LittleEndian.AppendUint64(args, w)
	}
	r, err := d.use()
	if err != nil {
		return err
	}
	f, err := d.function(r, k, entry)
	if err != nil {
		return err
	}
	return d.do(func(s cudriver.Stream) error { return d.driver.LaunchKernel(f, grid, block, 0, s, args) })
}

// lines returns a grid and blocks for n threads.
func lines(n int) (grid, block [3]uint32) {
	return [3]uint32{uint32((n + threads - 1) / threads), 1, 1}, [3]uint32{threads, 1, 1}
}
