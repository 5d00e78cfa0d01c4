package device

// Tensors holds functions of package tensor for this module's other packages. They are not
// exported to users. [OfTensors] returns it. P is *tensor.Tensor, and T is tensor.DType.
type Tensors[P, T any] struct {
	// Computer returns the device of the tensors, or nil for the host. It panics with an error that
	// wraps tensor.ErrUnsupported if the device cannot compute, or tensor.ErrDevices if the tensors
	// are on several devices.
	Computer func(ts ...P) Computer[T]

	// Operand returns a tensor as an [Operand]. The operand borrows the memory: the tensor must
	// stay open and reachable until the work is queued.
	Operand func(t P) Operand[T]

	// Memory returns the memory of a tensor on a device, or nil if the tensor is on the host.
	Memory func(t P) Memory

	// Over returns a tensor over existing device memory. Its first element is offset elements from
	// the start of the memory; strides are in elements, and nil means row-major. Over takes
	// ownership of m: it ends with the tensor, or immediately if Over returns an error. The error
	// wraps tensor.ErrDType or tensor.ErrLayout.
	Over func(m Memory, dt T, shape, strides []int, offset int) (P, error)

	// Reduce reduces the given dimensions of t, by default all. The result has the dtype of the
	// computation.
	Reduce func(r Reduction, t P, dims ...int) P

	// Block returns the handle of the block of this process's domain that contains a tensor, and
	// the tensor's offset in the block in bytes. The handle is 0 if the tensor is elsewhere.
	Block func(t P) (handle uint64, offset int)

	// Vector returns the elements of a contiguous tensor on the host as a vector of another dtype,
	// which has no larger elements. It is a view, and the caller must close it.
	Vector func(t P, dt T) P

	// OpenBlock returns a tensor of n elements at offset bytes of a block that another participant
	// of this process's domain holds. The caller must close the tensor, which holds the block.
	// OpenBlock returns arena.ErrStale if the block has been freed, and an error that wraps
	// tensor.ErrLayout or tensor.ErrAlign if the elements are not within the block.
	OpenBlock func(handle uint64, dt T, offset, n int) (P, error)
}

var tensors any

// Provide sets the functions that [OfTensors] returns. Package tensor must call it during
// initialization.
func Provide[P, T any](t Tensors[P, T]) { tensors = t }

// OfTensors returns the functions that package tensor has provided. The caller must import
// package tensor and pass its types as P and T; otherwise OfTensors panics.
func OfTensors[P, T any]() Tensors[P, T] { return tensors.(Tensors[P, T]) }
