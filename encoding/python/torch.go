package python

// A Size is a torch.Size.
type Size []int

// A Device is a torch.device, such as "cpu" or "cuda:0".
type Device string

// An Array is a numpy.ndarray. Data has the bytes of its elements, in C's order, or in Fortran's if
// Fortran is set.
type Array struct {
	DType   string // as numpy's dtype.str: byte order, kind, bytes, such as "<f4" or "|b1"
	Shape   []int
	Fortran bool
	Data    []byte
}

// A Scalar is a number of a numpy type, such as numpy.float32(1).
type Scalar struct {
	DType string // as in Array
	Data  []byte
}
