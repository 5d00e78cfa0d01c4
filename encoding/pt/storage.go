package pt

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// place is a decoded persistent ID of a storage: ('storage', class, key, location, elements).
// location is the device, and dtype is uint8 for a storage without a dtype.
type place struct {
	dtype    tensor.DType
	key      string
	location string
	elements int64
}

// untyped is the class of storages without a dtype.
const untyped = "torch.storage.UntypedStorage"

// maxElements is the maximum number of elements of a storage. It exceeds any memory.
const maxElements = 1 << 47

func parsePlace(p *pickle.Persistent) (at place, err error) {
	id, _ := p.ID.(value.Tuple)
	if len(id) < 5 || id[0] != "storage" {
		return at, malformed("a persistent id of %d parts", len(id))
	}
	class, ok1 := id[1].(value.Global)
	key, ok2 := id[2].(string)
	location, ok3 := id[3].(string)
	n, ok4 := id[4].(int64)
	if !ok1 || !ok2 || !ok3 || !ok4 || n < 0 || n > maxElements {
		return at, malformed("a persistent id of %T, %T, %T, %v", id[1], id[2], id[3], id[4])
	}
	if len(id) > 5 && id[5] != nil {
		return at, fmt.Errorf("%w: a view of a storage, as PyTorch 0.3 saved it", ErrUnsupported)
	}
	dt, known := value.StorageTypes[class.Name]
	// An untyped storage is counted in bytes; its tensors have dtypes of their own.
	if class == value.Named(untyped) || class == value.Named("torch.UntypedStorage") {
		dt, known = tensor.Uint8, true
	}
	if value.QuantizedStorage(class) {
		return at, fmt.Errorf("%w: a quantized tensor; save %s", ErrUnsupported, value.Dequantize)
	}
	if !known {
		return at, fmt.Errorf("%w: a storage of class %s", ErrUnsupported, class)
	}
	return place{dt, key, location, n}, nil
}

// coverStorage returns a tensor that covers the storage p, and the dtype of the tensors on it:
// said if it is not nil, and the dtype of the storage class otherwise. Each storage is loaded
// once. The loader owns the returned tensor. The error wraps [ErrLocation] if the device of the
// storage does not exist, and otherwise is an error of [Load].
func (l *loader) coverStorage(p *pickle.Persistent, said *tensor.DType) (h *tensor.Tensor, dt tensor.DType, err error) {
	at, err := parsePlace(p)
	if err != nil {
		return nil, 0, err
	}
	if dt = at.dtype; said != nil {
		dt = *said
	}
	h, err = l.coverStorageAt(at, dt)
	return h, dt, err
}

func (l *loader) coverStorageAt(at place, dt tensor.DType) (*tensor.Tensor, error) {
	if l.opts.MapLocation != nil {
		at.location = cmp.Or(l.opts.MapLocation(at.location), at.location)
	}
	dev, err := tensor.ParseDevice(at.location)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w as %q: map the location to \"cpu\"", ErrLocation, at.location), err)
	}
	size := at.elements * int64(at.dtype.Size())
	if h, ok := l.holds[at.key]; ok {
		if int64(h.Nbytes()) != size {
			return nil, malformed("storage %q has %d bytes and later %d", at.key, h.Nbytes(), size)
		}
		if h.dtype != dt {
			return h.Tensor, cleanBools(h.Tensor, dt)
		}
		return h.Tensor, nil
	}
	t, err := l.from.openStorage(at.key, dt, size)
	if err != nil {
		return nil, err
	}
	numpy.Clean(dt.String(), tensor.Bytes(t))
	if dev != nil {
		near := t
		if t, err = near.ToDevice(dev); err != nil {
			return nil, errors.Join(err, near.Close())
		}
		near.Close()
	}
	l.holds[at.key] = held{t, dt}
	return t, nil
}

// cleanBools normalizes the bytes of the storage that t covers to 0 and 1 if dt is bool, in
// place. The storage may be on a device. The error is one of the device.
func cleanBools(t *tensor.Tensor, dt tensor.DType) error {
	near, err := t.CPU()
	if err != nil {
		return err
	}
	defer near.Close()
	if numpy.Clean(dt.String(), tensor.Bytes(near)); dt == tensor.Bool && t.Device() != nil {
		t.CopyFrom(near)
	}
	return nil
}

// convertBareStorage converts a storage that was saved on its own to a one-dimensional
// *[tensor.Tensor], which becomes part of the result of liftTree. It returns the same errors as
// coverStorage.
func (l *loader) convertBareStorage(p *pickle.Persistent) (any, error) {
	h, dt, err := l.coverStorage(p, nil)
	if err != nil {
		return nil, err
	}
	return l.viewStorage(h, dt, []int{h.Nbytes() / dt.Size()}, []int{1}, 0)
}

func (l *loader) viewStorage(h *tensor.Tensor, dt tensor.DType, shape, strides []int, offset int64) (*tensor.Tensor,
	error) {
	if offset < 0 || offset > maxElements {
		return nil, malformed("a tensor at element %d", offset)
	}
	t, err := h.Storage().View(dt, shape, strides, int(offset))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	l.made = append(l.made, t)
	return t, nil
}
