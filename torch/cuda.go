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

// Note [Tensors on a GPU] A message for a tensor on a GPU carries a handle with which the CUDA
// driver opens the memory of the sender. The sender must keep the memory until the receiver has
// decremented the message's slot in a file of counters in /dev/shm. If the sender has not
// synchronized its stream, the message carries an event as well. This package does not load the
// CUDA driver; package cuda does if the program imports it. See
// https://github.com/pytorch/pytorch/blob/v2.9.0/torch/csrc/CudaIPCTypes.cpp.

// deviceIPC returns the functions that open and share GPU memory. The error wraps
// [ErrUnsupported] if [Options.CUDA] is not set or the program does not import package cuda.
func (o Options) deviceIPC() (device.IPC, error) {
	if !o.CUDA {
		return nil, unsupported("tensor is on a GPU: set Options.CUDA")
	}
	b, _ := device.Find("cuda")
	if b.IPC == nil {
		return nil, unsupported("Options.CUDA is set, but the program does not import package cuda: import it")
	}
	return b.IPC, nil
}

// A CUDATensor describes a tensor in GPU memory, in the terms of a message. The memory is not
// opened. The receiver must close the CUDATensor when it no longer uses the memory; the sender can
// then reuse it.
type CUDATensor struct {
	DType          tensor.DType
	Shape, Strides []int // in elements
	Offset         int   // in elements, from the start of the storage
	Parameter      bool  // an nn.Parameter
	RequiresGrad   bool
	Device         int    // a device index of the sender
	Handle         []byte // of the memory that contains the storage, see CUDAHandle; nil if it is empty
	StorageBytes   int
	StorageOffset  int    // in bytes, from the start of the memory to the storage
	Counters       string // the name of the sender's file of counters
	Slot           int    // the index of this message's counter
	Event          []byte // cudaIpcEventHandle_t to wait for before reading; nil if not needed

	received bool
	closed   atomic.Bool
}

// counterSlots is the number of counters in a file. The file starts with a header of headerSize
// bytes, followed by one counter per message. The first 4 bytes of the header count the processes
// that have the file open.
const counterSlots = 10_000

// Close decrements the counter of the message. It returns nil if the sender has ended. For a
// CUDATensor that was not received, Close does nothing. Close is idempotent.
func (c *CUDATensor) Close() error {
	if !c.received || c.Handle == nil || c.closed.Swap(true) {
		return nil
	}
	f, err := openNamed(c.Counters)
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("release CUDA memory: %w", err)
	}
	defer f.Close()
	const size = headerSize + 8*counterSlots
	if _, have, err := sys.Identify(f); err != nil || have < size {
		return errors.Join(err,
			fmt.Errorf("release CUDA memory: file of reference counters has only %d bytes: %w", have, ErrTruncated))
	}
	mem, err := sys.Map(f, size)
	if err != nil {
		return fmt.Errorf("release CUDA memory: %w", err)
	}
	openers := sys.Counter(mem)
	err = guardFaults(func(addr uintptr) bool { return sys.Contains(mem, addr) }, func() {
		openers.Add(1)
		sys.Words(mem[headerSize:])[c.Slot].Add(^uint64(0))
		if openers.Add(-1) == 0 {
			os.Remove(shmDir + c.Counters)
		}
	})
	return errors.Join(err, sys.Unmap(mem))
}

// CUDAHandle returns the cudaIpcMemHandle_t in the handle of a [CUDATensor]. All versions of
// PyTorch accept the result as a handle. The error wraps [ErrUnsupported] for memory in expandable
// segments and for unknown versions of the format, and [ErrProtocol] if b is not a handle.
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
		return memory, unsupported("CUDA handle has version %d, want at most 3", version)
	case kind == 'e':
		return memory, unsupported(
			"CUDA memory is in expandable segments: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False in the " +
				"sending process")
	case kind != 'c' || len(rest) != len(memory):
		return memory, protocolError("malformed CUDA handle of %d bytes", len(b))
	}
	return [64]byte(rest), nil
}

var (
	rebuildCUDA  = named("torch.multiprocessing.reductions.rebuild_cuda_tensor")
	typedStorage = named("torch.storage.TypedStorage")
)

// decodeCUDAForm decodes rebuild_cuda_tensor(class, size, stride, offset, storage class, dtype,
// device, handle, storage bytes, storage offset, requires_grad, counters, slot, event, whether
// the receiver must wait for the event):
// https://github.com/pytorch/pytorch/blob/v2.9.0/torch/multiprocessing/reductions.py. It does
// not open the memory. The caller must close the CUDATensor.
func (i *importer) decodeCUDAForm(o *pickle.Object) (*CUDATensor, error) {
	class, err := value.Arg[python.Global](o, 0)
	if err != nil || len(o.Args) != 15 || class != tensorClass && class != parameterClass {
		return nil, protocolError("CUDA tensor has %d parts and class %s, want 15 parts and a Tensor or Parameter",
			len(o.Args), class)
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
	if c.StorageOffset%c.DType.Size() != 0 { // a misaligned access would end the CUDA context
		return nil, protocolError("CUDA storage of %v begins at misaligned byte %d", c.DType, c.StorageOffset)
	}
	if o.Args[7] == nil && c.StorageBytes == 0 {
		return c, nil // the other arguments are None too
	}
	return c, c.readHandles(o)
}

// decodeCUDATensor decodes a tensor on a GPU. If [Options.CUDA] is set, it opens the memory and
// returns a *tensor.Tensor or *autograd.Param, and otherwise a *[CUDATensor].
func (i *importer) decodeCUDATensor(o *pickle.Object) (any, error) {
	c, err := i.decodeCUDAForm(o)
	if err != nil {
		return nil, err
	}
	i.fetched[o] = true
	if !i.opts.CUDA {
		return c, nil
	}
	return c.open(i.ctx, i.opts)
}

// open opens the memory and returns a *tensor.Tensor, or an *autograd.Param if c.Parameter is
// set. Closing the tensor closes c; on an error, c is closed at once.
func (c *CUDATensor) open(ctx context.Context, o Options) (any, error) {
	memory, err := c.openMemory(ctx, o)
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

// openMemory opens the GPU memory. Closing the result closes c; on an error, the caller must
// close c.
func (c *CUDATensor) openMemory(ctx context.Context, o Options) (device.Memory, error) {
	by, err := o.deviceIPC()
	if err != nil {
		return nil, err
	}
	var handle [64]byte
	if c.Handle != nil {
		if handle, err = CUDAHandle(c.Handle); err != nil {
			return nil, err
		}
	}
	return by.Open(ctx, c.Device, handle, c.StorageOffset, c.StorageBytes, c.Event, c.senderPID(), c.Close)
}

// senderPID returns the process ID of the sender, which the name of the counters contains in
// PyTorch and in this package. It returns 0 if the name has another form.
func (c *CUDATensor) senderPID() int {
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

// readHandles sets the handle, the counter and the event of c. o has these arguments only if the
// storage is not empty.
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
		return protocolError("slot %d of reference counters %q is out of range", c.Slot, c.Counters)
	}
	wait, err := value.Arg[bool](o, 14)
	if err == nil && wait {
		c.Event, err = value.Arg[[]byte](o, 13)
	}
	return err
}

// encodeCUDATensor encodes the form that [importer.decodeCUDAForm] decodes. The caller must keep
// the memory and the counters valid until the message is released. The error wraps [ErrUnsupported]
// if the tensor was received from another process.
func (e *exporter) encodeCUDATensor(c *CUDATensor) (any, error) {
	if c.received {
		return nil, unsupported(
			"CUDA tensor was received from another process, and PyTorch cannot open its memory twice: send a clone")
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
