package torch

import (
	"errors"
	"sync"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// limbo holds the tensors on GPUs that were sent and not released by their receivers. As in
// PyTorch, their release is detected by polling the counters: see Note [Tensors on a GPU].
var limbo struct {
	sync.Mutex
	counters *region // the file of counters for the next messages
	next     int     // the next free slot
	parked   []parked
}

type parked struct {
	hold     *tensor.Tensor
	done     func() error
	counters *region
	slot     int
}

// releaseTensor calls the tensor's done function and drops the reference to its memory. It must
// be called once, when the receiver has released the tensor.
func (p parked) releaseTensor() error { return errors.Join(p.done(), p.hold.Close()) }

func (p parked) counterValue() int64 { return int64(sys.Words(p.counters.data())[p.slot].Load()) }

// parkTensor retains the memory of t, a tensor on a GPU, until the counter of a new slot is 0,
// and then calls done. The counter starts at 1. On an error, done is not called.
func parkTensor(t *tensor.Tensor, done func() error) (p parked, err error) {
	limbo.Lock()
	defer limbo.Unlock()
	if err := releaseParked(); err != nil {
		return p, err
	}
	if limbo.counters == nil || limbo.next == counterSlots {
		fresh, err := newRegion(8*counterSlots, true)
		if err != nil {
			return p, err
		}
		if err := dropCounters(); err != nil {
			return p, errors.Join(err, fresh.discardRegion())
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

// decrementCounter decrements the counter of a message that was not sent, in place of its
// receiver.
func (p parked) decrementCounter() { sys.Words(p.counters.data())[p.slot].Add(^uint64(0)) }

// releaseParked releases the tensors that their receivers have released, and files of counters
// that are no longer used. The caller must hold limbo's lock.
func releaseParked() (err error) {
	left := limbo.parked[:0]
	old := map[*region]int{}
	for _, p := range limbo.parked {
		if p.counterValue() > 0 {
			left = append(left, p)
			old[p.counters]++
			continue
		}
		err = errors.Join(err, p.releaseTensor())
		old[p.counters] += 0
	}
	clear(limbo.parked[len(left):])
	limbo.parked = left
	for r, n := range old {
		if n == 0 && r != limbo.counters {
			err = errors.Join(err, r.discardRegion())
		}
	}
	return err
}

// dropCounters retires the current file of counters, so that the next message gets a new one.
// The file is removed now if no message uses it, and otherwise by releaseParked. The caller must
// hold limbo's lock.
func dropCounters() error {
	r := limbo.counters
	limbo.counters = nil
	for _, p := range limbo.parked {
		if p.counters == r {
			return nil // releaseParked removes it after its last message
		}
	}
	if r == nil {
		return nil
	}
	return r.discardRegion()
}

// CollectCUDA releases the tensors on GPUs that this process sent and that their receivers have
// released, like torch.cuda.ipc_collect. Sending a tensor does the same. It returns the number of
// tensors that are still in use. A program should not end before that number is 0, because its
// receivers would lose the memory.
func CollectCUDA() (out int, err error) {
	limbo.Lock()
	defer limbo.Unlock()
	err = releaseParked()
	if len(limbo.parked) == 0 {
		err = errors.Join(err, dropCounters())
	}
	return len(limbo.parked), err
}

// deviceTensors gives access to the memory of tensors on devices.
var deviceTensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// shareCUDA shares the memory of a tensor on a device, and encodes rebuild_cuda_tensor. learned
// is the value of requires_grad. The memory is retained until the receiver releases it.
func (e *exporter) shareCUDA(t *tensor.Tensor, class python.Global, learned bool) (any, error) {
	by, err := e.opts.deviceIPC()
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
	if c.StorageBytes == 0 { // PyTorch would not decrement its counter
		low, err := e.encodeCUDATensor(c)
		return low, errors.Join(err, done())
	}
	p, err := parkTensor(t, done)
	if err != nil {
		return nil, errors.Join(err, done())
	}
	e.undoing = append(e.undoing, p.decrementCounter)
	c.Handle, c.StorageOffset, c.Counters, c.Slot, c.Event = handle[:], off, p.counters.name, p.slot, event
	return e.encodeCUDATensor(c)
}
