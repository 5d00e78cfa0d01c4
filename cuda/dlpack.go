package cuda

import (
	"fmt"
	"math/bits"
	"sync"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/dl"
	"github.com/shoal-mp/shoal/tensor"
)

// These types mirror the structs of dlpack.h, version 1, with the layout of 64-bit C:
// https://dmlc.github.io/dlpack/latest/c_api.html.
type (
	dlTensor struct {
		data       uintptr
		deviceType int32
		deviceID   int32
		ndim       int32
		code, bits uint8
		lanes      uint16
		shape      *int64
		strides    *int64 // in elements; nil means row-major
		offset     uint64 // in bytes
	}
	dlManaged struct { // DLManagedTensor
		tensor  dlTensor
		context uintptr
		deleter uintptr // void (*)(DLManagedTensor *), or NULL
	}
	dlVersioned struct { // DLManagedTensorVersioned
		major, minor uint32
		context      uintptr
		deleter      uintptr
		flags        uint64
		tensor       dlTensor
	}
)

const (
	dlCUDA     = 2 // kDLCUDA
	dlMajor    = 1
	dlReadOnly = 1 // DLPACK_FLAG_BITMASK_READ_ONLY
)

// dlCodes maps dtypes to DLDataTypeCode values.
var dlCodes = map[tensor.DType]uint8{
	tensor.Bool: 6, tensor.Uint8: 1, tensor.Int8: 0, tensor.Int16: 0, tensor.Int32: 0, tensor.Int64: 0,
	tensor.Float16: 2, tensor.BFloat16: 4, tensor.Float32: 2, tensor.Float64: 2, tensor.Complex64: 5,
	tensor.Complex128: 5,
}

// exported holds the exported structs by address. It keeps memory alive that C code points to.
var exported = struct {
	sync.Mutex
	m map[uintptr]*export
}{m: map[uintptr]*export{}}

// deleter returns the C function that deletes an export. All exports share it.
var deleter = sync.OnceValue(func() uintptr { return dl.Callback(deleteExport) })

type export struct {
	managed dlVersioned
	numbers []int64
	hold    *tensor.Tensor
}

func deleteExport(p uintptr) {
	exported.Lock()
	e := exported.m[p]
	delete(exported.m, p)
	exported.Unlock()
	if e != nil {
		e.hold.Close()
	}
}

// ToDLPack exports a tensor to another library in this process, as a pointer to a
// DLManagedTensorVersioned. It waits until the device has written the tensor. The consumer must
// call the struct's deleter exactly once. Until then the memory stays valid, even if t is closed.
// The error wraps [ErrDevice] if the tensor is on the host.
func ToDLPack(t *tensor.Tensor) (unsafe.Pointer, error) {
	m, err := memoryOf(t)
	if err != nil {
		return nil, err
	}
	if err := m.dev.Synchronize(); err != nil {
		return nil, err
	}
	hold, err := t.ToDevice(t.Device())
	if err != nil {
		return nil, err
	}
	at, off := uintptr(m.deviceAddress()), t.Offset()*t.DType().Size()
	if t.Numel() == 0 {
		at, off = 0, 0 // NULL
	}
	dims := len(t.Shape())
	e := &export{hold: hold, numbers: make([]int64, 2*dims+1)}
	for i := range dims {
		e.numbers[i], e.numbers[dims+i] = int64(t.Dim(i)), int64(t.Strides()[i])
	}
	e.managed = dlVersioned{major: dlMajor, deleter: deleter(), tensor: dlTensor{
		data: at, deviceType: dlCUDA, deviceID: int32(m.dev.ordinal), ndim: int32(dims),
		code: dlCodes[t.DType()], bits: uint8(8 * t.DType().Size()), lanes: 1,
		shape: &e.numbers[0], strides: &e.numbers[dims], offset: uint64(off),
	}}
	p := unsafe.Pointer(&e.managed)
	exported.Lock()
	defer exported.Unlock()
	exported.m[uintptr(p)] = e
	return p, nil
}

// FromDLPack imports the struct of a Python DLPack capsule as a tensor over the same memory. The
// argument capsule is the capsule's name: "dltensor_versioned" if p points to a
// DLManagedTensorVersioned, or "dltensor" if it points to a DLManagedTensor. The producer's device
// must have finished writing the memory. When the tensor and its last view are closed, the struct's
// deleter is called; if FromDLPack returns an error, it has not called the deleter. The error wraps
// [ErrArray] if the array is invalid or read-only, [ErrDevice], or [ErrRange].
func FromDLPack(capsule string, p unsafe.Pointer) (*tensor.Tensor, error) {
	switch capsule {
	case "dltensor":
		v := (*dlManaged)(p)
		return v.tensor.adoptTensor(uintptr(p), v.deleter)
	case "dltensor_versioned":
	default:
		return nil, fmt.Errorf("%w: capsule is named %q", ErrArray, capsule)
	}
	v := (*dlVersioned)(p)
	if v.major != dlMajor {
		return nil, fmt.Errorf("%w: DLPack %d.%d", ErrArray, v.major, v.minor)
	}
	if v.flags&dlReadOnly != 0 {
		return nil, fmt.Errorf("%w: array is read-only", ErrArray)
	}
	return v.tensor.adoptTensor(uintptr(p), v.deleter)
}

func (v *dlTensor) adoptTensor(self, deleter uintptr) (*tensor.Tensor, error) {
	if v.deviceType != dlCUDA {
		return nil, fmt.Errorf("%w: DLPack device type %d", ErrDevice, v.deviceType)
	}
	d, err := Get(int(v.deviceID))
	if err != nil {
		return nil, err
	}
	dt, err := v.dtype()
	if err != nil {
		return nil, err
	}
	const most = 64
	if v.ndim < 0 || v.ndim > most {
		return nil, fmt.Errorf("%w: %d dimensions", ErrArray, v.ndim)
	}
	var strides []int
	if v.strides != nil {
		strides = int64Slice(v.strides, v.ndim)
	}
	return d.adoptForeign(uint64(v.data)+v.offset, dt, int64Slice(v.shape, v.ndim), strides, func() error {
		if deleter != 0 {
			dl.Call(deleter, self)
		}
		return nil
	})
}

func (v *dlTensor) dtype() (tensor.DType, error) {
	for dt, code := range dlCodes {
		if code == v.code && dt.Size()*8 == int(v.bits) && v.lanes == 1 {
			return dt, nil
		}
	}
	return 0, fmt.Errorf("%w: DLPack type %d of %d bits and %d lanes", ErrArray, v.code, v.bits, v.lanes)
}

func int64Slice(p *int64, n int32) []int {
	all := []int{}
	for _, v := range unsafe.Slice(p, n) {
		all = append(all, int(v))
	}
	return all
}

var _ = [1]struct{}{}[bits.UintSize-64] // the struct layouts are valid on 64-bit platforms only
