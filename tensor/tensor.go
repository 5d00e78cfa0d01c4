package tensor

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Tensor is an n-dimensional array: a dtype, a shape and strides over a storage, which other
// tensors may share. Several goroutines may read a tensor concurrently. Goroutines that write must
// use a lock, as with a slice, or [Tensor.AddAtomic].
//
// The zero Tensor is closed. Tensors must not be copied: use pointers.
type Tensor struct {
	dtype      DType
	given      bool   // the next message takes over the reference, see Give
	number     bool   // returned by Number
	few        uint8  // number of dimensions if more is nil
	generation uint32 // generation of the storage
	offset     int
	storage    atomic.Pointer[Storage]
	sizes      [2][fewDims]int // shape and strides of at most fewDims dimensions
	more       *[2][]int       // shape and strides of more dimensions, or nil
}

// fewDims is the maximum number of dimensions of a tensor that needs no further allocation. A
// Tensor does not store slices for its shape and strides: they would make it half as large again,
// and the garbage collector would follow them.
const fewDims = 4

// newTensor returns a tensor that takes over one reference to s, with copies of shape and strides.
func newTensor(s *Storage, dt DType, shape, strides []int, offset int) *Tensor {
	t := &Tensor{dtype: dt, offset: offset}
	t.setLayout(shape, strides)
	t.setStorage(s)
	return t
}

// newContiguous returns a row-major tensor that starts at the first byte of s and takes over the
// only reference to it. The storage must not be visible to others yet.
func newContiguous(s *Storage, dt DType, shape []int) *Tensor {
	t := s.shell
	if s.shell = nil; t == nil {
		t = new(Tensor)
	}
	t.dtype = dt
	t.reserveDims(len(shape))
	copy(t.Shape(), shape)
	rowMajorInto(t.Strides(), shape)
	t.setStorage(s)
	return t
}

// setStorage makes t take over one reference to s. t must be new.
//
// unsafe: an atomic.Pointer is a pointer after fields of size 0. No other goroutine can see t yet,
// so a plain store suffices. An atomic store would take as long as all the rest.
func (t *Tensor) setStorage(s *Storage) {
	t.generation = s.generation()
	*(**Storage)(unsafe.Pointer(&t.storage)) = s
}

// setLayout copies shape and strides into t. They must have the same length.
func (t *Tensor) setLayout(shape, strides []int) {
	t.reserveDims(len(shape))
	copy(t.Shape(), shape)
	copy(t.Strides(), strides)
}

// reserveDims reserves n sizes and strides in t. The caller must set them.
func (t *Tensor) reserveDims(n int) {
	if n <= fewDims {
		t.few = uint8(n)
		return
	}
	if n > maxDims {
		misuse(ErrShape, "got a tensor of %d dimensions, want at most %d", n, maxDims)
	}
	t.more = &[2][]int{make([]int, n), make([]int, n)}
}

// view returns another tensor of the same storage, with the given strides and offset in elements.
// The caller must close it. view panics with ErrClosed if t is closed.
func (t *Tensor) view(shape, strides []int, offset int) *Tensor {
	s := t.store()
	if !s.retain(t.generation) {
		misuse(ErrClosed, "use of a closed tensor")
	}
	return newTensor(s, t.dtype, shape, strides, offset)
}

func (t *Tensor) store() *Storage {
	s := t.open()
	if s == nil {
		misuse(ErrClosed, "use of a closed tensor")
	}
	return s
}

// open returns the storage, or nil if t is closed. A storage that was recycled by a concurrent
// Close has another generation, so it counts as closed.
func (t *Tensor) open() *Storage {
	if s := t.storage.Load(); s != nil && s.generation() == t.generation {
		return s
	}
	return nil
}

// bytes returns the memory of the whole storage. It is borrowed: the caller must keep t
// reachable. bytes panics if t is closed or on a device, or if its file has been truncated.
func (t *Tensor) bytes() []byte {
	m := t.store().mem.Load()
	if f, ok := m.mappedFile(); ok {
		f.check()
	}
	if l, ok := m.lease.(*onDevice); ok {
		misuse(ErrMisuse, "tensor is on %v: copy it to the host with CPU", l.Memory.Device())
	}
	return m.bytes
}

// contiguousBytes returns the bytes of the elements of t, which must be contiguous. They are
// borrowed: the caller must keep t reachable. It panics under the same conditions as bytes.
func (t *Tensor) contiguousBytes() []byte {
	n := t.Nbytes()
	if n == 0 { // an empty view may have any offset
		return nil
	}
	from := t.offset * t.dtype.Size()
	return t.bytes()[from : from+n]
}

// DType returns the dtype of the elements.
func (t *Tensor) DType() DType { return t.dtype }

// Shape returns the sizes of the dimensions. The slice is a part of the tensor: the caller must not
// modify it. A reference to it keeps the tensor from being collected.
func (t *Tensor) Shape() []int {
	if t.more != nil {
		return t.more[0]
	}
	return t.sizes[0][:t.few:t.few]
}

// Strides returns the distance between neighbors along each dimension, in elements. The slice is a
// part of the tensor: the caller must not modify it.
func (t *Tensor) Strides() []int {
	if t.more != nil {
		return t.more[1]
	}
	return t.sizes[1][:t.few:t.few]
}

// Offset returns the position of the first element in the storage, in elements.
func (t *Tensor) Offset() int { return t.offset }

// Dim returns the size of dimension i. A negative i counts from the end.
func (t *Tensor) Dim(i int) int { return t.Shape()[t.resolveDim(i)] }

// Dims returns the number of dimensions.
func (t *Tensor) Dims() int { return len(t.Shape()) }

// Numel returns the number of elements.
func (t *Tensor) Numel() int { return product(t.Shape()) }

// Nbytes returns the total size of the elements in bytes.
func (t *Tensor) Nbytes() int { return t.Numel() * t.dtype.Size() }

// IsShared reports whether the storage is outside of this process's own memory: in shared memory,
// in a file that other processes can map, on a device, or in memory of another program.
func (t *Tensor) IsShared() bool {
	s := t.store()
	m := s.mem.Load()
	f, ok := m.mappedFile()
	return m.lease != nil && (!ok || f.shared) && !s.early.Load()
}

// IsContiguous reports whether the elements are adjacent in memory, in row-major order.
func (t *Tensor) IsContiguous() bool {
	want := 1
	for i, n := range slices.Backward(t.Shape()) {
		if n == 0 {
			return true
		}
		if n != 1 && t.Strides()[i] != want {
			return false
		}
		want *= n
	}
	return true
}

// SameStorage reports whether t and o view the same storage. Both must be open.
func (t *Tensor) SameStorage(o *Tensor) bool { return t.store() == o.store() }

// Version returns the number of writes to the storage by operations of this process since it was
// created. Writes through [Data] do not count unless the caller calls [Tensor.Touch].
func (t *Tensor) Version() uint64 { return t.store().version.Load() }

// Touch adds 1 to [Tensor.Version]. It should be called after a write through [Data].
func (t *Tensor) Touch() *Tensor {
	t.store().version.Add(1)
	return t
}

// Share moves the storage into shared memory, together with all tensors that view it, unless it
// is shared already. Slices that [Data] returned earlier still point to the old memory, so
// callers must call Data again. A concurrent write may be lost. Share returns [ErrClosed] if t is
// closed, and an error that wraps shm.ErrNoSpace if the domain is full, or [ErrForeign] if the
// memory belongs to another program; t is unchanged then. Share does nothing for a tensor on a
// device.
func (t *Tensor) Share() error {
	s := t.open()
	if s == nil {
		return ErrClosed
	}
	if err := s.share(); err != nil {
		return err
	}
	t.describeBlock()
	return nil
}

// Close releases the reference to the storage. This process releases shared memory when all of its
// tensors over it are closed or collected. The tensor must not be used after Close: its methods
// panic. Close is idempotent.
func (t *Tensor) Close() error {
	s := t.storage.Swap(nil)
	if s == nil {
		return nil
	}
	return s.releaseView(t.generation, nil)
}

// Data returns the elements of a contiguous tensor as a slice. The slice is borrowed: t must stay
// open and reachable ([runtime.KeepAlive]) while the slice is used. After [Tensor.Share] the slice
// still points to the old memory. Data panics if t is not contiguous (for example, the result of an
// operation on x.T()), if t has another dtype than T's, or if t is on a device; see
// [Tensor.Contiguous] and [Tensor.CPU].
func Data[T Elem](t *Tensor) []T {
	t.requireDType(DTypeOf[T]())
	if !t.IsContiguous() {
		misuse(ErrShape, "Data: tensor with strides %v is not contiguous: call Contiguous first", t.Strides())
	}
	return bytesAs[T](t.contiguousBytes())
}

// At returns the element at idx, which must have one index for each dimension. A negative index
// counts from the end. At panics if T is not the Go type of t's dtype.
func At[T Elem](t *Tensor, idx ...int) T {
	t.requireDType(DTypeOf[T]())
	at := t.elementOffset(idx)
	if m := t.deviceMemory(); m != nil {
		var v [1]T
		must(m.Read(rawBytes(v[:]), at*t.dtype.Size()))
		return v[0]
	}
	v := bytesAs[T](t.bytes())[at]
	runtime.KeepAlive(t)
	return v
}

// SetAt sets the element at idx to v. It interprets idx and T as [At] does.
func SetAt[T Elem](t *Tensor, v T, idx ...int) {
	t.requireDType(DTypeOf[T]())
	at := t.elementOffset(idx)
	if m := t.deviceMemory(); m != nil {
		must(m.Write(at*t.dtype.Size(), rawBytes([]T{v})))
	} else {
		bytesAs[T](t.bytes())[at] = v
	}
	t.Touch()
}

func (t *Tensor) requireDType(d DType) {
	if t.dtype != d {
		misuse(ErrOperand, "want elements of %v, got a tensor of %v", d, t.dtype)
	}
}

// elementOffset returns the position in the storage of the element at idx, in elements.
func (t *Tensor) elementOffset(idx []int) int {
	if len(idx) != len(t.Shape()) {
		misuse(ErrIndex, "index %v does not match a tensor of %d dimensions", idx, len(t.Shape()))
	}
	at := t.offset
	for d, i := range idx {
		at += t.Strides()[d] * wrapIndex(i, t.Shape()[d], "index")
	}
	return at
}

// Item returns the only element of t. It panics if t has more or fewer. It returns the real part of
// a complex number. [At] returns integers above 2^53 and complex numbers exactly.
func (t *Tensor) Item() float64 {
	if t.Numel() != 1 {
		misuse(ErrShape, "Item: got a tensor of %d elements, want 1", t.Numel())
	}
	defer runtime.KeepAlive(t)
	if t.Device() == nil {
		switch at := t.offset; t.dtype { // faster than the path below, which allocates
		case Float32:
			return float64(bytesAs[float32](t.bytes())[at])
		case Float64:
			return bytesAs[float64](t.bytes())[at]
		case Int64:
			return float64(bytesAs[int64](t.bytes())[at])
		}
	}
	t, done := t.hostTensor()
	defer done()
	var v float64
	b := unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8)
	castFuncFor(Float64, t.dtype)(b, 1, t.bytes()[t.offset*t.dtype.Size():], 1, 1)
	return v
}

// replaceWith returns v, a result computed from t, and closes t unless it is v itself. No other
// code may have a reference to t.
func (t *Tensor) replaceWith(v *Tensor) *Tensor {
	if v != t {
		t.release()
	}
	return v
}

// convertOwned converts t to dt in place of [Tensor.To]: it returns t itself if t has this dtype,
// and closes t otherwise. No other code may have a reference to t.
func (t *Tensor) convertOwned(dt DType) *Tensor {
	if dt == t.dtype {
		return t
	}
	return t.replaceWith(t.To(dt))
}

// setShape changes the shape of t and returns t. t must be contiguous, the number of elements
// must stay the same, and no other code may have a reference to t.
func (t *Tensor) setShape(shape ...int) *Tensor {
	t.more = nil
	t.reserveDims(len(shape))
	copy(t.Shape(), shape)
	rowMajorInto(t.Strides(), t.Shape())
	return t
}

// release closes t and recycles the Tensor itself. No other code may have a reference to t. The
// storage must be on the heap or have other references, so that releasing it cannot fail.
func (t *Tensor) release() {
	s, generation := t.storage.Swap(nil), t.generation
	if s == nil {
		return
	}
	*t = Tensor{}
	if err := s.releaseView(generation, t); err != nil {
		panic(err)
	}
}

// borrowView returns a view for use inside one call, which must not outlive t. It is not counted
// as a reference and must not be closed. The call may recycle it with releaseView.
func (t *Tensor) borrowView(shape, strides []int, offset int) *Tensor {
	v := peeks.Get().(*Tensor)
	v.dtype, v.offset = t.dtype, offset
	v.setLayout(shape, strides)
	v.setStorage(t.store())
	return v
}

// peeks contains recycled views, see releaseView.
var peeks = sync.Pool{New: func() any { return new(Tensor) }}

func (t *Tensor) releaseView() {
	*t = Tensor{}
	peeks.Put(t)
}
