package device

// An Op is an elementwise operation: the part of its entry in package tensor's table that devices
// need.
type Op struct {
	Name  string // name of the function of package tensor, such as Add
	Torch string // name of PyTorch's function
	Arity int    // number of operands

	// Truths is set if the result is Bool for all operand dtypes.
	Truths bool

	// NoGradient is the reason why package autograd has no function of this name.
	NoGradient string

	// Apply is a func(in ...*tensor.Tensor) *tensor.Tensor, which returns a new tensor. It is nil
	// for operations that only move elements (Copy, Where, AddAtomic).
	Apply any
}

// String returns the operation's name.
func (o *Op) String() string { return o.Name }

var ops []*Op

// Define adds an operation to the table. It must be called during initialization only; package
// tensor calls it for each of its operations that computes and has a name in PyTorch.
func Define(o *Op) { ops = append(ops, o) }

// Ops returns the operations added by [Define], in the order of definition: those that compute,
// not those that only move elements. It returns none if the program does not import package
// tensor. The caller must not modify the result.
func Ops() []*Op { return ops }
