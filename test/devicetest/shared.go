package devicetest

import (
	"errors"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// shared holds the Shared devices of this process.
var shared sync.Map // *Device by name

// Shared returns the device with a name, which must begin with "test:"; all calls with one name
// return the same device. Its memory is in the default domain of this process, so other
// processes can map it. [tensor.ParseDevice] finds it.
func Shared(name string) *Device {
	d, _ := shared.LoadOrStore(name, &Device{name: name, shared: true})
	return d.(*Device)
}

// key identifies memory: equal keys mean the same memory.
type key struct {
	domain *arena.Domain
	block  arena.Handle
}

// inBlock returns the first n bytes of a block as memory of d. It takes over the caller's
// reference to the block, also if it returns an error. The error is [tensor.ErrLayout] if the
// block is smaller.
func (d *Device) inBlock(domain *arena.Domain, block arena.Handle, n int) (*memory, error) {
	b, err := domain.Bytes(block)
	if err == nil && len(b) < n {
		err = tensor.ErrLayout
	}
	if err != nil {
		return nil, errors.Join(err, domain.Release(block))
	}
	m := &memory{dev: d, bytes: b[:n:n], domain: domain, block: block}
	m.storage = foreignTensors.Adopt(m.bytes, noOwner{})
	d.use(n)
	return m, nil
}

// read decodes memory encoded by Marshal. The memory has a reference of its own to its block.
func read(dec *codec.Decoder) (device.Memory, error) {
	domain, err := arena.Default()
	if err != nil {
		return nil, err
	}
	if err := dec.OnlyTag(memoryTags); err != nil {
		return nil, err
	}
	block, err := dec.Block()
	if err != nil {
		return nil, err
	}
	name, err := dec.String()
	if err != nil {
		return nil, errors.Join(err, domain.Release(block))
	}
	n, err := dec.Uint()
	if err != nil {
		return nil, errors.Join(err, domain.Release(block))
	}
	return Shared(name).inBlock(domain, block, int(min(n, 1<<40)))
}

func init() {
	device.Register("test", device.Backend{
		Parse: func(name string) (device.Device, error) { return Shared(name), nil },
		Engine: func(d device.Device) device.Engine {
			if mine, ok := d.(*Device); ok {
				return mine
			}
			return nil
		},
		Read: read,
	})
}
