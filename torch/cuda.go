package torch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
)

// Note [Tensors on a GPU] A message has a handle by which the CUDA driver opens the sender's
// memory, and has no memory itself. The sender keeps the memory until the receiver has counted down
// the message's slot in a file of counters in /dev/shm. If the sender has not waited for its
// stream, an event comes with the message. This package loads no driver: package cuda does, if a
// program imports it.

// ipc returns the functions that open and share the memory of GPUs.
func (o Options) ipc() (device.IPC, error) {
	if !o.CUDA {
		return nil, unsupported("a tensor on a GPU without Options.CUDA")
	}
	b, _ := device.Find("cuda")
	if b.IPC == nil {
		return nil, unsupported("Options.CUDA in a program that does not import package cuda")
	}
	return b.IPC, nil
}

// A CUDATensor describes a tensor in the memory of a GPU, as a message does. Nothing is opened. The
// receiver closes it when it no longer uses the memory, which gives that memory back to its sender.
type CUDATensor struct {
	DType          tensor.DType
	Shape, Strides []int // in elements
	Offset         int   // in elements, from the beginning of the storage
	Parameter      bool  // an nn.Parameter
	RequiresGrad   bool
	Device         int    // in the sender's numbering of the devices that it sees
	Handle         []byte // of the memory that has the storage, see CUDAHandle; nil if the storage is empty
	StorageBytes   int
	StorageOffset  int    // in bytes, from the begin of the handle's memory to the storage
	Counters       string // the name of the shared memory with the sender's counters
	Slot           int    // of this message among the counters
	Event          []byte // cudaIpcEventHandle_t to wait for before the memory is read; nil if the sender has waited

	received bool
	closed   atomic.Bool
}

// A file of counters begins with 64 bytes, of which the first 4 count the processes that have the
// file. One counter for each message follows.
const counterSlots = 10_000

// Close counts the message down. If the sender has ended meanwhile, Close returns no error. A
// CUDATensor that was not received has nothing to close. Close is idempotent.
func (c *CUDATensor) Close() error {
	if !c.received || c.Handle == nil || c.closed.Swap(true) {
		return nil
	}
	f, err := openNamed(c.Counters)
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("give CUDA memory back: %w", err)
	}
	defer f.Close()
	const size = headerSize + 8*counterSlots
	if _, have, err := sys.Identify(f); err != nil || have < size {
		return errors.Join(err, fmt.Errorf("give CUDA memory back: counters of %d bytes: %w", have, ErrTruncated))
	}
	mem, err := sys.Map(f, size)
	if err != nil {
		return fmt.Errorf("give CUDA memory back: %w", err)
	}
	openers := sys.Counter(mem)
	err = guard(func(addr uintptr) bool { return sys.Contains(mem, addr) }, func() {
		openers.Add(1)
		sys.Words(mem[headerSize:])[c.Slot].Add(^uint64(0))
		if openers.Add(-1) == 0 {
			os.Remove(shmDir + c.Counters)
		}
	})
	return errors.Join(err, sys.Unmap(mem))
}

// CUDAHandle returns the cudaIpcMemHandle_t in the handle of a CUDATensor, which all versions of
// PyTorch take as a handle. The error wraps ErrUnsupported for memory of expandable segments and
// for unknown versions. It wraps ErrProtocol for bytes that are no handle.
func CUDAHandle(b []byte) (memory [64]byte, err error) {
	version, kind, rest := 0, byte('c'), b
	switch {
	case len(b) == len(memory): // PyTorch up to 2.4
	case len(b) == 1+len(memory): // development versions between 2.4 and 2.5
		kind, rest = b[0], b[1:]
	case len(b) >= 2:
		version, kind, rest = int(b[0]), b[1], b[2:]
	}
	switch {
	case version > 3:
		return memory, unsupported("a CUDA handle of version %d", version)
	case kind == 'e':
		return memory, unsupported(
			"CUDA memory in expandable segments; set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False where it is sent")
	case kind != 'c' || len(rest) != len(memory):
		return memory, protocolError("a CUDA handle of %d bytes", len(b))
	}
	return [64]byte(rest), nil
}

var (
	rebuildCUDA  = named("torch.multiprocessing.reductions.rebuild_cuda_tensor")
	typedStorage = named("torch.storage.TypedStorage")
)

// cudaForm reads rebuild_cuda_tensor(class, size, stride, offset, storage class, dtype, device,
// handle, storage bytes, storage offset, requires_grad, counters, slot, event, whether the receiver
// has to wait for the event).
func (i *importer) cudaForm(o *pickle.Object) (*CUDATensor, error) {
	class, err := value.Arg[python.Global](o, 0)
	if err != nil || len(o.Args) != 15 || class != tensorClass && class != parameterClass {
		return nil, protocolError("a CUDA tensor of %d parts, of class %s", len(o.Args), class)
	}
	c := &CUDATensor{Parameter: class == parameterClass, received: true}
	if c.Shape, err = value.Numbers(o.Args[1]); err == nil {
		c.Strides, err = value.Numbers(o.Args[2])
	}
	if err != nil {
		return nil, err
	}
	if c.DType, err = value.DTypeOf(o.Args[5]); err != nil {
		return nil, err
	}
	if c.RequiresGrad, err = value.Arg[bool](o, 10); err != nil {
		return nil, err
	}
	for at, dst := range map[int]*int{3: &c.Offset, 6: &c.Device, 8: &c.StorageBytes, 9: &c.StorageOffset} {
		if *dst, err = storageSize(o, at); err != nil {
			return nil, err
		}
	}
	if c.StorageOffset%c.DType.Size() != 0 { // on a GPU it would be an error that ends its context
		return nil, protocolError("a CUDA storage of %v at byte %d", c.DType, c.StorageOffset)
	}
	if o.Args[7] == nil && c.StorageBytes == 0 {
		return c, nil // the rest is nil as well
	}
	return c, c.readHandles(o)
}

// cudaTensor opens the memory that the form describes, if Options.CUDA says so.
func (i *importer) cudaTensor(o *pickle.Object) (any, error) {
	c, err := i.cudaForm(o)
	if err != nil {
		return nil, err
	}
	i.fetched[o] = true
	if !i.opts.CUDA {
		return c, nil
	}
	return c.open(i.ctx, i.opts)
}

// open makes a tensor or a parameter of it. The CUDATensor is closed with that tensor, or on an
// error.
func (c *CUDATensor) open(ctx context.Context, o Options) (any, error) {
	memory, err := c.memory(ctx, o)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	bytes, err := deviceTensors.Over(memory, tensor.Uint8, []int{memory.Size()}, nil, 0)
	if err != nil {
		return nil, errors.Join(err, memory.End())
	}
	t, err := bytes.Storage().View(c.DType, c.Shape, c.Strides, c.Offset)
	if err = errors.Join(err, bytes.Close()); err != nil || !c.Parameter {
		return t, err
	}
	return &autograd.Param{T: t, Frozen: !c.RequiresGrad}, nil
}

// memory opens the memory. The memory is given back when c is closed.
func (c *CUDATensor) memory(ctx context.Context, o Options) (device.Memory, error) {
	by, err := o.ipc()
	if err != nil {
		return nil, err
	}
	var handle [64]byte
	if c.Handle != nil {
		if handle, err = CUDAHandle(c.Handle); err != nil {
			return nil, err
		}
	}
	return by.Open(ctx, c.Device, handle, c.StorageOffset, c.StorageBytes, c.Event, c.sender(), c.Close)
}

// sender returns the process that has sent the message. The name of the counters has its number, in
// PyTorch's names and in this package's. sender returns 0 if the name has another form.
func (c *CUDATensor) sender() int {
	rest, pytorch := strings.CutPrefix(c.Counters, "/torch_")
	if !pytorch {
		rest, _ = strings.CutPrefix(c.Counters, "/"+namePrefix)
	}
	number, _, _ := strings.Cut(rest, "_")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return pid
}

// readHandles reads the handles, if there is memory.
func (c *CUDATensor) readHandles(o *pickle.Object) (err error) {
	if c.Handle, err = value.Arg[[]byte](o, 7); err != nil {
		return err
	}
	counters, err := value.Arg[[]byte](o, 11)
	if err != nil {
		return err
	}
	c.Counters = string(counters)
	if c.Slot, err = storageSize(o, 12); err != nil {
		return err
	}
	if c.Slot >= counterSlots {
		return protocolError("slot %d of the counters %q", c.Slot, c.Counters)
	}
	wait, err := value.Arg[bool](o, 14)
	if err == nil && wait {
		c.Event, err = value.Arg[[]byte](o, 13)
	}
	return err
}

// cudaTensor writes the form that importer.cudaForm reads. The memory and the counters are the
// caller's.
func (e *exporter) cudaTensor(c *CUDATensor) (any, error) {
	if c.received {
		return nil, unsupported(
			"a CUDA tensor that came from another process: PyTorch does not open such memory twice; send a clone")
	}
	class := tensorClass
	if c.Parameter {
		class = parameterClass
	}
	var handle, counters any
	if c.Handle != nil {
		memory, err := CUDAHandle(c.Handle)
		if err != nil {
			return nil, err
		}
		handle, counters = memory[:], []byte(c.Counters)
	}
	event := append([]byte{}, c.Event...)
	size := &pickle.Object{Class: named("torch.Size"), Args: python.Tuple{value.Sizes(c.Shape)}}
	return &pickle.Object{Class: rebuildCUDA,
		Args: python.Tuple{class, size, value.Sizes(c.Strides), c.Offset, typedStorage,
			named("torch." + c.DType.String()), c.Device, handle, c.StorageBytes, c.StorageOffset, c.RequiresGrad,
			counters, c.Slot, event, len(event) > 0}}, nil
}
