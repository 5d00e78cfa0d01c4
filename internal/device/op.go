package device

// An Op is an elementwise operation as a device sees it: its row in the table of package tensor,
// without what only the host needs.
type Op struct {
	Name  string // of the function of package tensor that applies it, such as Add
	Torch string // of the function of PyTorch
	Arity int    // how many operands it has

	// Truths is set where the result is Bool, whatever the operands are.
	Truths bool

	// NoGradient says why package autograd has no function of this name.
	NoGradient string

	// Apply is a func(in ...*tensor.Tensor) *tensor.Tensor, which returns a new tensor. Of what
	// only moves elements (Copy, Where, AddAtomic) it is nil.
	Apply any
}

// String returns the name.
func (o *Op) String() string { return o.Name }

var ops []*Op

// Define adds a row. Package tensor does for each of its operations, when it is initialized.
func Define(o *Op) { ops = append(ops, o) }

// Ops returns all operations that compute, in the order of the table. A program that does not
// import package tensor has none.
func Ops() []*Op { return ops }
