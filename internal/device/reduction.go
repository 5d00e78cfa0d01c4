package device

// A Reduction makes one element of a row of them.
type Reduction uint8

// The reductions.
const (
	Sum Reduction = iota
	Prod
	Max
	Min
	Argmax
	Argmin
	Var

	Reductions = iota
)

var reductionNames = [Reductions]string{"Sum", "Prod", "Amax", "Amin", "Argmax", "Argmin", "Var"}

// String returns the name of the function of package tensor that applies it; of Var and Std it is
// Var.
func (r Reduction) String() string { return reductionNames[r] }
