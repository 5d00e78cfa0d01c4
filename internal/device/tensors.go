package device

// Tensors is what package tensor does for the packages of this module that compute on devices, or
// bring one: users do not see it. P is *tensor.Tensor, and T its dtypes.
type Tensors[P, T any] struct {
	// Computer returns the device that tensors are on, and nil for the host. Of one that cannot
	// compute, and of several devices, it panics with an error that wraps tensor.ErrUnsupported or
	// tensor.ErrDevices.
	Computer func(ts ...P) Computer[T]

	// Operand returns a tensor as a Computer sees it, which is borrowed: the tensor must stay open
	// and reachable until the device was asked.
	Operand func(t P) Operand[T]

	// Memory returns the memory of a tensor on a device, nil of one on the host.
	Memory func(t P) Memory

	// Over returns a tensor over memory of a device that is there: the first element is offset
	// elements from its start; strides are in elements, and nil is row-major. It takes m, which
	// ends with the tensor, and at once on an error. That wraps tensor.ErrDType or
	// tensor.ErrLayout.
	Over func(m Memory, dt T, shape, strides []int, offset int) (P, error)

	// Reduce returns what r makes of dimensions of t, by default all, in the dtype that it is
	// computed in.
	Reduce func(r Reduction, t P, dims ...int) P
}

var tensors any

// Provide gives them to OfTensors. Package tensor does, when it is initialized.
func Provide[P, T any](t Tensors[P, T]) { tensors = t }

// OfTensors returns what package tensor has provided; the caller imports that.
func OfTensors[P, T any]() Tensors[P, T] { return tensors.(Tensors[P, T]) }
