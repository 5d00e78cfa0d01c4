package device

// A Reduction reduces a row of elements to one element.
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

// String returns the name of the function of package tensor that applies the reduction. Var
// also serves Std. String panics for a value that is not one of the reductions.
func (r Reduction) String() string { return reductionNames[r] }
