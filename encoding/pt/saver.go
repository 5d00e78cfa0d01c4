package pt

import (
	"fmt"
	"strconv"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// saver builds the pickle of a file and collects the storages. newSaver makes it, for one value.
// One goroutine may use it.
type saver struct {
	value.Lowerer
	storages map[*tensor.Storage]*origin
	order    []*origin
}

// origin is the part of a storage that is saved: the elements from lo up to, but not including,
// hi. The saver makes one for each storage and extends it for each tensor.
type origin struct {
	tensor *tensor.Tensor // a tensor on the storage
	lo, hi int
	calls  []*pickle.Object // calls that create its tensors
	id     *pickle.Persistent
}

func newSaver() *saver {
	s := &saver{storages: map[*tensor.Storage]*origin{}}
	s.Lowerer.Own, s.Lowerer.NameOf = s.lowerOwn, codec.TypeName
	return s
}

// lowerValue converts v to a pickle tree. Tensor offsets are relative to the saved parts of the
// storages, which are then in s.order. It must be called once. The error wraps [ErrUnsupported]
// or [tensor.ErrClosed].
func (s *saver) lowerValue(v any) (any, error) {
	tree, err := s.Lower(v)
	if err != nil {
		return nil, err
	}
	for i, o := range s.order {
		class, size := o.storageClass()
		o.id.ID = value.Tuple{"storage", class, strconv.Itoa(i), tensor.Place{Device: o.tensor.Device()}.String(), size}
		for _, call := range o.calls {
			call.Args[1] = max(0, call.Args[1].(int)-o.lo)
		}
	}
	return tree, nil
}

// storageClass returns PyTorch's storage class and the size of the saved part. The size is in
// elements if the class has a dtype, and in bytes otherwise.
func (o *origin) storageClass() (class value.Global, size int) {
	if name, ok := classOf(o.tensor.DType()); ok {
		return value.Named("torch." + name), o.hi - o.lo
	}
	return value.Named(untyped), (o.hi - o.lo) * o.tensor.DType().Size()
}

// classOf returns the name of the storage class of a dtype. ok is false if the dtype has none.
func classOf(dt tensor.DType) (name string, ok bool) {
	for name, other := range value.StorageTypes {
		if other == dt {
			return name, true
		}
	}
	return "", false
}

// tensors gives access to the memory of tensors on devices.
var tensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// savedBytes returns the elements to be saved. The slice aliases the storage, except that
// elements on a device are copied; it must not be modified, and is valid while the tensors are
// open. The error is one of reading a device.
func (o *origin) savedBytes() (b []byte, err error) {
	size := o.tensor.DType().Size()
	part := o.tensor.AsStrided([]int{o.hi - o.lo}, []int{1}, o.lo)
	defer part.Close()
	if m := tensors.Memory(part); m != nil {
		b = make([]byte, part.Nbytes())
		return b, m.Read(b, part.Offset()*size)
	}
	return tensor.Bytes(part)[: (o.hi-o.lo)*size : (o.hi-o.lo)*size], nil
}

// lowerOwn is the [value.Lowerer] hook for tensors, parameters and packed sequences, and refuses
// Python objects. low is the form of v that can be pickled. ok is false for all other values.
func (s *saver) lowerOwn(v any) (low any, ok bool, err error) {
	switch v := v.(type) {
	case *tensor.Tensor:
		if v == nil {
			return nil, true, nil
		}
		low, err = s.lowerTensor(v)
	case *autograd.Param:
		if v == nil {
			return nil, true, nil
		}
		if low, err = s.lowerTensor(v.T); err != nil {
			return nil, true, fmt.Errorf("parameter %q: %w", v.Name, err)
		}
		low = &pickle.Object{Class: value.Named(rebuildParameter),
			Args: value.Tuple{low, !v.Frozen, &value.Dict{Ordered: true}}}
	case *PackedSequence:
		if v != nil {
			low, err = s.Packed(v.Data, v.BatchSizes, v.SortedIndices, v.UnsortedIndices)
		}
	case *python.Record, *pickle.Object:
		err = fmt.Errorf("%w: %T, which only Python can create: save its StateDict", ErrUnsupported, v)
	default:
		return nil, false, nil
	}
	return low, true, err
}

// lowerTensor returns the call _rebuild_tensor_v2(storage, offset, size, stride, requires_grad,
// hooks). It is _rebuild_tensor_v3, with the dtype as an additional argument, if the dtype has
// no storage class. The error wraps [tensor.ErrClosed] if t is nil or closed, and
// [ErrUnsupported] if tensors of different dtypes share its storage.
func (s *saver) lowerTensor(t *tensor.Tensor) (*pickle.Object, error) {
	if err := foreignTensors.Check(t); err != nil {
		return nil, fmt.Errorf("save a tensor: %w", err)
	}
	o := s.storages[t.Storage()]
	if o == nil {
		o = &origin{tensor: t, id: new(pickle.Persistent)}
		s.storages[t.Storage()] = o
		s.order = append(s.order, o)
	}
	if o.tensor.DType() != t.DType() {
		return nil, fmt.Errorf("%w: tensors of %v and of %v on one storage; clone one", ErrUnsupported,
			o.tensor.DType(), t.DType())
	}
	offset := t.Offset()
	if o.extendSaved(t); t.Numel() == 0 {
		offset = 0 // the offset of an empty tensor may exceed the storage
	}
	call := &pickle.Object{Class: value.Named(rebuildTensor),
		Args: value.Tuple{o.id, offset, value.Sizes(t.Shape()), value.Sizes(t.Strides()), false,
			&value.Dict{Ordered: true}}}
	if _, ok := classOf(t.DType()); !ok {
		call.Class = value.Named(rebuildOther)
		call.Args = append(call.Args, value.Named("torch."+t.DType().String()))
	}
	o.calls = append(o.calls, call)
	return call, nil
}

// extendSaved extends the saved part of the storage, from o.lo to o.hi, to all elements of t.
func (o *origin) extendSaved(t *tensor.Tensor) {
	if t.Numel() == 0 {
		return
	}
	last := t.Offset()
	for i, n := range t.Shape() {
		last += (n - 1) * t.Strides()[i]
	}
	if o.lo == o.hi {
		o.lo, o.hi = t.Offset(), last+1
	}
	o.lo, o.hi = min(o.lo, t.Offset()), max(o.hi, last+1)
}
