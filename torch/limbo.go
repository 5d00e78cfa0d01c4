package torch

import (
	"errors"
	"sync"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// limbo has the tensors on a GPU that were sent and are not given back. This process notices that
// they were given back when it looks, as PyTorch does.
var limbo struct {
	sync.Mutex
	counters *region // the counters of the next messages
	next     int     // the next free slot
	parked   []parked
}

type parked struct {
	hold     *tensor.Tensor
	done     func() error
	counters *region
	slot     int
}

// end lets go of a tensor that was given back.
func (p parked) end() error { return errors.Join(p.done(), p.hold.Close()) }

func (p parked) count() int64 { return int64(sys.Words(p.counters.data())[p.slot].Load()) }

// park keeps the memory of t until a slot of the counters is 0, and calls done then.
func park(t *tensor.Tensor, done func() error) (p parked, err error) {
	limbo.Lock()
	defer limbo.Unlock()
	if err := collect(); err != nil {
		return p, err
	}
	if limbo.counters == nil || limbo.next == counterSlots {
		fresh, err := newRegion(8*counterSlots, true)
		if err != nil {
			return p, err
		}
		if err := dropCounters(); err != nil {
			return p, errors.Join(err, fresh.discard())
		}
		limbo.counters, limbo.next = fresh, 0
	}
	hold, err := t.ToDevice(t.Device())
	if err != nil {
		return p, err
	}
	p = parked{hold, done, limbo.counters, limbo.next}
	limbo.next++
	sys.Words(p.counters.data())[p.slot].Store(1)
	limbo.parked = append(limbo.parked, p)
	return p, nil
}

// giveBack counts down a message that was not sent, in its receiver's place.
func (p parked) giveBack() { sys.Words(p.counters.data())[p.slot].Add(^uint64(0)) }

// collect lets go of the tensors that were given back. It is called with the lock.
func collect() (err error) {
	left := limbo.parked[:0]
	old := map[*region]int{}
	for _, p := range limbo.parked {
		if p.count() > 0 {
			left = append(left, p)
			old[p.counters]++
			continue
		}
		err = errors.Join(err, p.end())
		old[p.counters] += 0
	}
	clear(limbo.parked[len(left):])
	limbo.parked = left
	for r, n := range old {
		if n == 0 && r != limbo.counters {
			err = errors.Join(err, r.discard())
		}
	}
	return err
}

// dropCounters ends the present counters if no message waits for one of them. It is called with the
// lock.
func dropCounters() error {
	r := limbo.counters
	limbo.counters = nil
	for _, p := range limbo.parked {
		if p.counters == r {
			return nil // the counters go with the last message that has one
		}
	}
	if r == nil {
		return nil
	}
	return r.discard()
}

// CollectCUDA lets go of tensors on a GPU that this process has sent and that their receivers have
// given back, as torch.cuda.ipc_collect does. The next send does so as well. CollectCUDA returns
// how many tensors are not yet given back. If a program ends before all of them are, their
// receivers lose the memory.
func CollectCUDA() (out int, err error) {
	limbo.Lock()
	defer limbo.Unlock()
	err = collect()
	if len(limbo.parked) == 0 {
		err = errors.Join(err, dropCounters())
	}
	return len(limbo.parked), err
}

// deviceTensors reaches the memory of tensors on devices.
var deviceTensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// shareCUDA writes rebuild_cuda_tensor for a tensor that is on a device.
func (e *exporter) shareCUDA(t *tensor.Tensor, class python.Global, learned bool) (any, error) {
	by, err := e.opts.ipc()
	if err != nil {
		return nil, err
	}
	memory := deviceTensors.Memory(t)
	number, handle, off, event, done, err := by.Share(memory)
	if err != nil {
		return nil, err
	}
	c := &CUDATensor{
		DType: t.DType(), Shape: t.Shape(), Strides: t.Strides(), Offset: t.Offset(),
		Parameter: class == parameterClass, RequiresGrad: learned,
		Device: number, StorageBytes: memory.Size(),
	}
	if c.StorageBytes == 0 { // PyTorch would not count it down
		low, err := e.cudaTensor(c)
		return low, errors.Join(err, done())
	}
	p, err := park(t, done)
	if err != nil {
		return nil, errors.Join(err, done())
	}
	e.undoing = append(e.undoing, p.giveBack)
	c.Handle, c.StorageOffset, c.Counters, c.Slot, c.Event = handle[:], off, p.counters.name, p.slot, event
	return e.cudaTensor(c)
}
