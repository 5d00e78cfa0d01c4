package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/tensor"
)

// An ArrayInterface is a __cuda_array_interface__ of version 3, the protocol for libraries in
// one process to exchange device memory:
// https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html. Its JSON form is the
// Python dict; Python code must convert the lists to tuples. The address is valid in this process
// only.
type ArrayInterface struct {
	Shape    []int
	Typestr  string // numpy type string, such as <f4
	Data     uint64 // device address; 0 if the array has no elements
	ReadOnly bool
	Strides  []int // in bytes; nil means row-major
	// Stream is the stream that a consumer must wait for before it uses the memory: 1 is the legacy
	// default stream, 2 the per-thread default stream, and any other value a CUstream. If Stream is
	// nil, the memory is ready.
	Stream *uint64
}

// dict is the Python dict of the CUDA Array Interface in its JSON form, which [ArrayInterface]
// encodes and decodes.
type dict struct {
	Shape   []int     `json:"shape"`
	Typestr string    `json:"typestr"`
	Data    [2]any    `json:"data"`
	Strides []int     `json:"strides"`
	Version int       `json:"version"`
	Stream  *uint64   `json:"stream"`
	Mask    any       `json:"mask,omitempty"`
	Descr   *[][2]any `json:"descr,omitempty"`
}

// MarshalJSON encodes the array as the protocol's Python dict.
func (a ArrayInterface) MarshalJSON() ([]byte, error) {
	shape := append([]int{}, a.Shape...) // encodes as [] rather than null
	return json.Marshal(dict{Shape: shape, Typestr: a.Typestr, Data: [2]any{a.Data, a.ReadOnly},
		Strides: a.Strides, Version: 3, Stream: a.Stream})
}

// UnmarshalJSON decodes the protocol's Python dict, version 2 or 3. The error wraps [ErrArray].
func (a *ArrayInterface) UnmarshalJSON(b []byte) error {
	var d struct {
		dict
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return fmt.Errorf("%w: %w", ErrArray, err)
	}
	switch {
	case d.Version < 2 || d.Version > 3:
		return fmt.Errorf("%w: version %d", ErrArray, d.Version)
	case d.Mask != nil:
		return fmt.Errorf("%w: array is masked", ErrArray)
	case d.Shape == nil:
		return fmt.Errorf("%w: no shape", ErrArray)
	case len(d.Data) != 2:
		return fmt.Errorf("%w: data has %d elements, want 2", ErrArray, len(d.Data))
	}
	got := ArrayInterface{Shape: d.Shape, Typestr: d.Typestr, Strides: d.Strides, Stream: d.Stream}
	if err := errors.Join(json.Unmarshal(d.Data[0], &got.Data), json.Unmarshal(d.Data[1], &got.ReadOnly)); err != nil {
		return fmt.Errorf("%w: %w", ErrArray, err)
	}
	*a = got
	return nil
}

// ArrayInterfaceOf describes a tensor on a device to another library in this process. The caller
// must keep the tensor open while the library uses it. The error wraps [ErrDevice] if the tensor is
// on the host, and [tensor.ErrDType] if it is bfloat16, which numpy does not have.
func ArrayInterfaceOf(t *tensor.Tensor) (a ArrayInterface, err error) {
	m, err := memoryOf(t)
	if err != nil {
		return a, err
	}
	a = ArrayInterface{Shape: slices.Clone(t.Shape()), Typestr: numpy.Descr(t.DType().String())}
	if a.Typestr == "" {
		return a, fmt.Errorf("__cuda_array_interface__ of %v: %w", t.DType(), tensor.ErrDType)
	}
	if t.Numel() > 0 {
		a.Data = m.deviceAddress() + uint64(t.Offset()*t.DType().Size())
	}
	if !t.IsContiguous() {
		for _, s := range t.Strides() {
			a.Strides = append(a.Strides, s*t.DType().Size())
		}
	}
	r, err := m.dev.readyState()
	if err == nil {
		stream := uint64(r.stream)
		a.Stream = &stream
	}
	return a, err
}

// Tensor returns a tensor over device memory owned by another library in this process. The caller
// must close the tensor. Work on the tensor waits for the interface's stream. When the tensor and
// its last view are closed, done is called. If an open tensor has the same memory already, Tensor
// calls done at once, and returns its error. If Tensor returns another error, it has not called
// done. The error wraps [ErrArray] if the description is invalid or the memory read-only,
// [tensor.ErrLayout], or [ErrRange] if the memory is not within a single allocation of the driver.
func (a ArrayInterface) Tensor(d *Device, done func() error) (*tensor.Tensor, error) {
	name, swapped := numpy.Parse(a.Typestr)
	dt, err := tensor.ParseDType(name)
	if err != nil || swapped {
		return nil, errors.Join(fmt.Errorf("%w: typestr %q", ErrArray, a.Typestr), err)
	}
	switch {
	case a.ReadOnly:
		return nil, fmt.Errorf("%w: array is read-only", ErrArray)
	case a.Stream != nil && *a.Stream == 0:
		return nil, fmt.Errorf("%w: stream 0, which is ambiguous", ErrArray)
	}
	var strides []int
	for _, s := range a.Strides {
		if s%dt.Size() != 0 {
			return nil, fmt.Errorf("%w: stride of %d bytes is no multiple of the size of %v", ErrArray, s, dt)
		}
		strides = append(strides, s/dt.Size())
	}
	if a.Stream != nil {
		if err := d.waitStream(cudriver.Stream(*a.Stream)); err != nil {
			return nil, err
		}
	}
	return d.adoptForeign(a.Data, dt, a.Shape, strides, done)
}

// adoptForeign returns a tensor over the memory from the device address at to the end of the
// driver allocation that contains it. strides are in elements; nil means row-major. done and
// the errors are as in [ArrayInterface.Tensor]. adoptForeign does not wait for the work of
// other streams.
func (d *Device) adoptForeign(at uint64, dt tensor.DType, shape, strides []int, done func() error) (*tensor.Tensor,
	error) {
	n := 0
	if at%uint64(dt.Size()) != 0 { // a misaligned access on the GPU would invalidate its context
		return nil, fmt.Errorf("%w: address %#x of %v", ErrArray, at, dt)
	}
	if !slices.Contains(shape, 0) {
		err := d.withContext(func(cudriver.Stream) error {
			base, size, err := d.driver.MemGetAddressRange(cudriver.Ptr(at))
			n = int(uint64(base) + size - at)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%w: address %#x on %v: %w", ErrRange, at, d, err)
		}
	}
	early := false
	end := func() error { early = true; return nil }
	t, err := tensors.Over(d.foreignMemory(cudriver.Ptr(at), 0, n, func() error { return end() }), dt,
		shape, strides, 0)
	if err != nil {
		return nil, err
	}
	// Over has ended this memory already, because an earlier tensor holds the same.
	if end = done; early {
		if err := done(); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// waitStream makes the device's stream wait for all work queued on s so far.
func (d *Device) waitStream(s cudriver.Stream) error {
	e, err := d.recordEvent(s)
	if err != nil {
		return err
	}
	return d.withContext(func(s cudriver.Stream) error { return d.driver.StreamWaitEvent(s, e.id) })
}
