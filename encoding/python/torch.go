package python

// A Size is a torch.Size.
type Size []int

// A Device is a torch.device, such as "cpu" or "cuda:0".
type Device string

// An Array is a numpy.ndarray: its elements are in Data, in the order of C, or of Fortran.
type Array struct {
	DType   string // as numpy's dtype.str: byte order, kind, bytes, such as "<f4" or "|b1"
	Shape   []int
	Fortran bool
	Data    []byte
}

// A Scalar is a number of a numpy type.
type Scalar struct {
	DType string // as in Array
	Data  []byte
}
