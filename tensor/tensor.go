package tensor

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// A Tensor is an n-dimensional array: a dtype, a shape and strides over a storage, which other
// tensors may share. Several goroutines may read a tensor at once. A goroutine that writes needs a
// lock, as with a slice, or AddAtomic.
//
// The zero Tensor is closed. Tensors are used by pointer: do not copy them.
type Tensor struct {
	dtype   DType
	given   bool   // the next message takes it
	few     uint8  // dimensions, unless there are more
	life    uint32 // of the storage, which t views
	offset  int
	storage atomic.Pointer[Storage]
	sizes   [2][fewDims]int // shape and strides of few dimensions
	more    *[2][]int       // of more than few, or nil
}

// fewDims is up to how many dimensions a tensor needs no memory besides its own. The tensor has no
// slices of shape and strides: these would make it half as large again, and the collector would
// follow them.
const fewDims = 4

// newTensor returns a tensor that owns one of the views which s counts, with copies of the sizes
// and strides.
func newTensor(s *Storage, dt DType, shape, strides []int, offset int) *Tensor {
	t := &Tensor{dtype: dt, offset: offset}
	t.lay(shape, strides)
	t.hold(s)
	return t
}

// newContiguous is newTensor of row-major elements from the first byte on of a storage that nobody
// else has yet.
func newContiguous(s *Storage, dt DType, shape []int) *Tensor {
	t := s.shell
	if s.shell = nil; t == nil {
		t = new(Tensor)
	}
	t.dtype = dt
	t.room(len(shape))
	copy(t.Shape(), shape)
	rowMajorInto(t.Strides(), shape)
	t.hold(s)
	return t
}

// hold makes one of the views which s counts that of t, which is new.
//
// unsafe: an atomic.Pointer is a pointer behind fields without size. As long as nobody else has t,
// a plain store does, and an atomic one would take as long as all the rest.
func (t *Tensor) hold(s *Storage) {
	t.life = s.number()
	*(**Storage)(unsafe.Pointer(&t.storage)) = s
}

// lay gives t copies of sizes and strides, of which there are as many.
func (t *Tensor) lay(shape, strides []int) {
	t.room(len(shape))
	copy(t.Shape(), shape)
	copy(t.Strides(), strides)
}

// room gives t so many sizes and strides, to be set.
func (t *Tensor) room(n int) {
	if n <= fewDims {
		t.few = uint8(n)
		return
	}
	if n > maxDims {
		misuse(ErrShape, "a tensor of %d dimensions: it may have %d", n, maxDims)
	}
	t.more = &[2][]int{make([]int, n), make([]int, n)}
}

// view returns another tensor of the same storage.
func (t *Tensor) view(shape, strides []int, offset int) *Tensor {
	s := t.store()
	if !s.retain(t.life) {
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

// open returns the storage of a tensor that is not closed, or nil. What is under way while another
// goroutine closes the tensor sees the storage of another life.
func (t *Tensor) open() *Storage {
	if s := t.storage.Load(); s != nil && s.number() == t.life {
		return s
	}
	return nil
}

// bytes returns the memory of the storage, which is borrowed: the caller keeps t alive.
func (t *Tensor) bytes() []byte {
	m := t.store().mem.Load()
	if f, ok := m.file(); ok {
		f.check()
	}
	if l, ok := m.lease.(*onDevice); ok {
		misuse(ErrMisuse, "the tensor is on %v: CPU copies it to the host", l.Memory.Device())
	}
	return m.bytes
}

// span returns the bytes of a contiguous tensor, borrowed.
func (t *Tensor) span() []byte {
	n := t.Nbytes()
	if n == 0 { // the offset of an empty view may be anywhere
		return nil
	}
	from := t.offset * t.dtype.Size()
	return t.bytes()[from : from+n]
}

// DType returns the dtype of the elements.
func (t *Tensor) DType() DType { return t.dtype }

// Shape returns the sizes of the dimensions. The slice is a part of the tensor: do not change it. A
// program that keeps the slice keeps an open tensor from the garbage collector.
func (t *Tensor) Shape() []int {
	if t.more != nil {
		return t.more[0]
	}
	return t.sizes[0][:t.few:t.few]
}

// Strides returns the distance of neighbours along each dimension, in elements. The slice is a part
// of the tensor, as that of Shape is.
func (t *Tensor) Strides() []int {
	if t.more != nil {
		return t.more[1]
	}
	return t.sizes[1][:t.few:t.few]
}

// Offset returns how many elements of the storage stand before the first element.
func (t *Tensor) Offset() int { return t.offset }

// Dim returns the size of dimension i. A negative i counts from the end.
func (t *Tensor) Dim(i int) int { return t.Shape()[t.axis(i)] }

// Dims returns the number of dimensions.
func (t *Tensor) Dims() int { return len(t.Shape()) }

// Numel returns the number of elements.
func (t *Tensor) Numel() int { return product(t.Shape()) }

// Nbytes returns the bytes of all elements.
func (t *Tensor) Nbytes() int { return t.Numel() * t.dtype.Size() }

// IsShared reports whether the storage is shared memory, or a file that other processes can map.
func (t *Tensor) IsShared() bool {
	m := t.store().mem.Load()
	f, ok := m.file()
	return m.lease != nil && (!ok || f.shared)
}

// IsContiguous reports whether the elements follow one another in memory in row-major order.
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

// SameStorage reports whether t and o view the same storage.
func (t *Tensor) SameStorage(o *Tensor) bool { return t.store() == o.store() }

// Version returns how often operations of this process have written to the storage. A write through
// Data counts only if Touch is called.
func (t *Tensor) Version() uint64 { return t.store().version.Load() }

// Touch says that the caller wrote to the storage through Data: it adds 1 to Version.
func (t *Tensor) Touch() *Tensor {
	t.store().version.Add(1)
	return t
}

// Share moves the storage into shared memory, if it is not there yet, and with it all tensors that
// view it. Slices that Data returned before point at the old memory. A write during Share may be
// lost. The error wraps shm.ErrNoSpace if the domain is full, and then the tensor is unchanged.
func (t *Tensor) Share() error {
	s := t.open()
	if s == nil {
		return ErrClosed
	}
	if err := s.share(); err != nil {
		return err
	}
	t.describe()
	return nil
}

// Close lets go of the storage. This process releases shared memory when all of its tensors over it
// are closed or collected. A use of the tensor after Close panics. Close is idempotent.
func (t *Tensor) Close() error {
	s := t.storage.Swap(nil)
	if s == nil {
		return nil
	}
	return s.releaseOf(t.life, nil)
}

// Data returns the elements of a contiguous tensor as a slice. The slice is borrowed: t must stay
// open and reachable (runtime.KeepAlive) while the slice is used. After a Share the slice is the
// old memory. Data panics if t is not contiguous, as what was computed from x.T() is not, if its
// dtype is not that of T, or if t is on a device; see [Tensor.Contiguous] and [Tensor.CPU].
func Data[T Elem](t *Tensor) []T {
	t.want(DTypeOf[T]())
	if !t.IsContiguous() {
		misuse(ErrShape, "Data of a tensor that is not contiguous (strides %v): call Contiguous first", t.Strides())
	}
	return typed[T](t.span())
}

// At returns the element at idx, which has one index for each dimension. A negative index counts
// from the end. At panics if T is not the Go type of t's dtype.
func At[T Elem](t *Tensor, idx ...int) T {
	t.want(DTypeOf[T]())
	at := t.locate(idx)
	if m := t.deviceMemory(); m != nil {
		var v [1]T
		must(m.Read(raw(v[:]), at*t.dtype.Size()))
		return v[0]
	}
	v := typed[T](t.bytes())[at]
	runtime.KeepAlive(t)
	return v
}

// SetAt sets the element at idx, as At names it.
func SetAt[T Elem](t *Tensor, v T, idx ...int) {
	t.want(DTypeOf[T]())
	at := t.locate(idx)
	if m := t.deviceMemory(); m != nil {
		must(m.Write(at*t.dtype.Size(), raw([]T{v})))
	} else {
		typed[T](t.bytes())[at] = v
	}
	t.Touch()
}

func (t *Tensor) want(d DType) {
	if t.dtype != d {
		misuse(ErrOperand, "elements of %v wanted from a tensor of %v", d, t.dtype)
	}
}

// locate returns where in the storage the element at idx is.
func (t *Tensor) locate(idx []int) int {
	if len(idx) != len(t.Shape()) {
		misuse(ErrIndex, "index %v for a tensor of %d dimensions", idx, len(t.Shape()))
	}
	at := t.offset
	for d, i := range idx {
		at += t.Strides()[d] * wrap(i, t.Shape()[d], "index")
	}
	return at
}

// Item returns the element of a tensor that has only one; of a complex number, the real part. At
// returns integers beyond 2^53 and complex numbers exactly.
func (t *Tensor) Item() float64 {
	if t.Numel() != 1 {
		misuse(ErrShape, "Item of a tensor of %d elements", t.Numel())
	}
	defer runtime.KeepAlive(t)
	if t.Device() == nil {
		switch at := t.offset; t.dtype { // of the other dtypes the number is an object
		case Float32:
			return float64(typed[float32](t.bytes())[at])
		case Float64:
			return typed[float64](t.bytes())[at]
		case Int64:
			return float64(typed[int64](t.bytes())[at])
		}
	}
	t, done := t.near()
	defer done()
	var v float64
	b := unsafe.Slice((*byte)(unsafe.Pointer(&v)), 8)
	caster(Float64, t.dtype)(b, 1, t.bytes()[t.offset*t.dtype.Size():], 1, 1)
	return v
}

// become returns v, which was made of t, for a t that nobody else gets to see.
func (t *Tensor) become(v *Tensor) *Tensor {
	if v != t {
		t.release()
	}
	return v
}

// as is To for a t that nobody else gets to see: it is the result itself if it has the dtype.
func (t *Tensor) as(dt DType) *Tensor {
	if dt == t.dtype {
		return t
	}
	return t.become(t.To(dt))
}

// shaped gives t, which is contiguous and which nobody else gets to see, another shape.
func (t *Tensor) shaped(shape ...int) *Tensor {
	t.more = nil
	t.room(len(shape))
	copy(t.Shape(), shape)
	rowMajorInto(t.Strides(), t.Shape())
	return t
}

// release closes a tensor that nobody else has, of the heap or with a storage that others keep: it
// cannot fail. The tensor itself is used again.
func (t *Tensor) release() {
	s, life := t.storage.Swap(nil), t.life
	if s == nil {
		return
	}
	*t = Tensor{}
	if err := s.releaseOf(life, t); err != nil {
		panic(err)
	}
}

// peek is view for use inside one call, while t is open: it is not counted and not closed. The call
// may let go of it by forget, to be used again.
func (t *Tensor) peek(shape, strides []int, offset int) *Tensor {
	v := peeks.Get().(*Tensor)
	v.dtype, v.offset = t.dtype, offset
	v.lay(shape, strides)
	v.hold(t.store())
	return v
}

// peeks are tensors that calls have forgotten.
var peeks = sync.Pool{New: func() any { return new(Tensor) }}

func (t *Tensor) forget() {
	*t = Tensor{}
	peeks.Put(t)
}
